/// \file
/// What a handler of HTTP requests sees: the request, and where its answer
/// goes. Knows no socket.
#ifndef LATHE_RUNTIME_SERVE_HTTP_HTTP_H
#define LATHE_RUNTIME_SERVE_HTTP_HTTP_H

#include "kernels/abi/Types.h"

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lathe::runtime::http {

/// A header; names compare without case.
using Header = std::pair<std::string, std::string>;

/// Equal but for the case of ASCII letters, as header names compare.
bool equalsNoCase(std::string_view a, std::string_view b);

struct Request {
  std::string method; ///< "GET"
  std::string path;   ///< Decoded, without the query: "/v1/models".
  std::string query;  ///< As sent, without the '?'; empty if there is none.
  std::vector<Header> headers = {};
  std::string body = {};
  /// Of this request in logs and answers (x-request-id): the client's own, if
  /// it is short and harmless, or one made here.
  std::string id = {};

  /// The value of the first header of that name, or empty.
  std::string_view header(std::string_view name) const;
};

/// A whole answer.
struct Reply {
  u32 status = 200;
  std::string body = {};
  std::string contentType = "application/json";
  std::vector<Header> headers = {};
};

/// Takes the answer to one request, from any thread: either reply(), or
/// startStream(), write() as often as wanted and finish(). What comes after the
/// client has gone is dropped. Destroyed without an answer, it replies 500; in
/// the middle of a stream, the connection is cut, so that the client sees that
/// the end is missing. May outlive the server.
class Responder {
public:
  virtual ~Responder() = default;

  virtual void reply(Reply reply) = 0;

  /// Begins an answer with status 200 whose end is not known yet.
  virtual void startStream(std::string_view contentType) = 0;

  /// The next bytes of the stream. Never waits: a client that reads too slowly
  /// is disconnected once more than HttpLimits::unsentBytes wait for it.
  virtual void write(std::string bytes) = 0;

  /// Ends the stream.
  virtual void finish() = 0;

  /// `gone` is called once, on a thread of the server, if the client goes away
  /// before the answer is complete; at once, within onGone, if it has already.
  /// To be set at most once. It is dropped when the answer is complete or the
  /// client gone; until then it must not keep this responder alive, or an
  /// answer that is never given goes unnoticed.
  virtual void onGone(std::function<void()> gone) = 0;
};

/// Answers a request, on a thread of the server, which it must not hold up for
/// long: what takes time is answered later from elsewhere. The request is there
/// only until it returns. If it throws, the answer is a 500.
using Handler =
    std::function<void(const Request &request, std::shared_ptr<Responder>)>;

} // namespace lathe::runtime::http

#endif // LATHE_RUNTIME_SERVE_HTTP_HTTP_H
