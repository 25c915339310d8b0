/// \file
/// Bytes of a connection become requests. Knows no socket.
#ifndef LATHE_RUNTIME_SERVE_HTTP_REQUESTPARSER_H
#define LATHE_RUNTIME_SERVE_HTTP_REQUESTPARSER_H

#include "runtime/serve/http/Http.h"

#include <memory>
#include <string_view>

namespace lathe::runtime::http {

struct HttpLimits;

/// Why a request is refused.
struct Refusal {
  u32 status = 0;
  std::string_view message;
};

/// Parses one request after the other, with limits on their size. On top of
/// what Boost.Beast refuses, everything about which two servers could differ
/// (where a request ends, whom it is for) is an error. One thread at a time.
class RequestParser {
public:
  enum class Stage {
    Empty,   ///< Nothing of the request has been seen.
    Headers, ///< Within the line and the headers.
    Body,    ///< The headers are complete; the body is not.
    Done,
    Bad, ///< See refusal(); there is no way on.
  };

  explicit RequestParser(const HttpLimits &limits);
  ~RequestParser();

  /// Starts with the next request.
  void reset();

  /// Parses from the front of `bytes` and returns how many it is done with; the
  /// others must be there again in the next call, followed by more. Stops after
  /// the headers and after the request, so that both can be looked at.
  size_t parse(std::string_view bytes);

  Stage stage() const;
  const Refusal &refusal() const;

  /// What is known of it: the headers from Body on, the body from Done on.
  Request &request();

  bool keepsAlive() const; ///< From Body on: the client wants another turn.
  bool isHttp10() const;
  bool expectsContinue() const; ///< Waits to be told before it sends the body.

private:
  class Impl;
  std::unique_ptr<Impl> impl;
};

} // namespace lathe::runtime::http

#endif // LATHE_RUNTIME_SERVE_HTTP_REQUESTPARSER_H
