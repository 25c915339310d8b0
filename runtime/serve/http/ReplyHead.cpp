#include "runtime/serve/http/ReplyHead.h"

#include <boost/beast/http/status.hpp>
#include <fmt/format.h>
#include <iterator>

namespace lathe::runtime::http {

static void appendHeader(std::string &out, std::string_view name,
                         std::string_view value) {
  auto append = [&](std::string_view text) {
    for (char c : text)
      out += u8(c) < 0x20 || c == 0x7f ? ' ' : c;
  };
  append(name);
  out += ": ";
  append(value);
  out += "\r\n";
}

std::string printHead(const ReplyHead &head,
                      const std::vector<Header> &headers) {
  namespace http = boost::beast::http;
  auto reason = http::obsolete_reason(http::int_to_status(head.status));
  std::string out =
      fmt::format("HTTP/1.1 {} {}\r\nServer: lathe\r\n", head.status,
                  std::string_view(reason.data(), reason.size()));
  if (!head.requestId.empty())
    appendHeader(out, "x-request-id", head.requestId);
  if (!head.contentType.empty())
    appendHeader(out, "Content-Type", head.contentType);
  if (head.contentLength)
    fmt::format_to(std::back_inserter(out), "Content-Length: {}\r\n",
                   *head.contentLength);
  if (head.isChunked)
    out += "Transfer-Encoding: chunked\r\n";
  if (!head.keepsAlive)
    out += "Connection: close\r\n";
  else if (head.isHttp10)
    out += "Connection: keep-alive\r\n";
  for (const Header &header : headers)
    appendHeader(out, header.first, header.second);
  return out + "\r\n";
}

} // namespace lathe::runtime::http
