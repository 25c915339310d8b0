/// \file
/// The status line and headers of an answer.
#ifndef LATHE_RUNTIME_SERVE_HTTP_REPLYHEAD_H
#define LATHE_RUNTIME_SERVE_HTTP_REPLYHEAD_H

#include "runtime/serve/http/Http.h"

#include <optional>

namespace lathe::runtime::http {

struct ReplyHead {
  u32 status = 200;
  std::string_view contentType = {};
  std::optional<u64> contentLength = {}; ///< None: ends otherwise.
  bool isChunked = false;
  bool isHttp10 = false;
  bool keepsAlive = true;
  std::string_view requestId = {};
};

/// The bytes up to and with the empty line. Control characters in `headers`
/// are sent as spaces: no value can begin another header.
std::string printHead(const ReplyHead &head,
                      const std::vector<Header> &headers = {});

} // namespace lathe::runtime::http

#endif // LATHE_RUNTIME_SERVE_HTTP_REPLYHEAD_H
