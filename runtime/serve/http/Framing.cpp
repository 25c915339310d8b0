#include "runtime/serve/http/Framing.h"
#include "runtime/serve/http/ReplyHead.h"

#include <fmt/format.h>
#include <iterator>

namespace lathe::runtime::http {

void Framing::appendWhole(std::string &out, Reply reply, bool &keepsAlive) {
  // 204 and 304 have no body and no length (RFC 9110, 8.6).
  bool canHaveBody = reply.status != 204 && reply.status != 304;
  ReplyHead head{.status = reply.status,
                 .isHttp10 = about.isHttp10,
                 .keepsAlive = keepsAlive,
                 .requestId = about.requestId};
  if (canHaveBody) {
    head.contentType = reply.contentType;
    head.contentLength = reply.body.size();
  }
  out += printHead(head, reply.headers);
  sentStatus = reply.status;
  if (canHaveBody && !about.isHead) {
    out += reply.body;
    bytes = reply.body.size();
  }
  hasEnd = true;
}

void Framing::append(std::string &out, Answer::Taken taken, bool &keepsAlive) {
  if (taken.whole)
    return appendWhole(out, std::move(*taken.whole), keepsAlive);
  if (taken.streamType) {
    isChunked = !about.isHttp10;
    keepsAlive = keepsAlive && (isChunked || about.isHead);
    sentStatus = 200;
    out += printHead({.contentType = *taken.streamType,
                      .isChunked = isChunked,
                      .isHttp10 = about.isHttp10,
                      .keepsAlive = keepsAlive,
                      .requestId = about.requestId});
  }
  if (!about.isHead && !taken.bytes.empty()) {
    bytes += taken.bytes.size();
    if (isChunked)
      fmt::format_to(std::back_inserter(out), "{:x}\r\n", taken.bytes.size());
    out += taken.bytes;
    if (isChunked)
      out += "\r\n";
  }
  if (taken.isCut)
    keepsAlive = false;
  else if (taken.hasEnded && isChunked && !about.isHead)
    out += "0\r\n\r\n";
  hasEnd = taken.hasEnded && !taken.isCut;
}

} // namespace lathe::runtime::http
