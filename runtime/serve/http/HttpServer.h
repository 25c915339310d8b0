/// \file
/// An HTTP/1.1 server: sockets, limits, keys.
///
/// What it makes of the wire:
/// - HTTP/1.1 and 1.0 with keep-alive; pipelined requests are answered one by
///   one. Streams are chunked, to HTTP/1.0 they end with the connection.
/// - Paths are percent-decoded once and matched as a whole; an escape that is
///   malformed or stands for a slash or a control character is a 400, and dot
///   segments mean nothing. "http://host/path" counts as "/path".
/// - Headers are judged before the body is read. An answer given before that
///   closes the connection.
/// - A client that closes its side of the connection, if only the sending half,
///   before its answer is given has gone away (as nginx sees it). This shows at
///   once, unless more was sent ahead than the kernel holds (above 64 KiB).
/// - Whoever has no key learns nothing but that: every path that is not open
///   answers 401, also those that do not exist.
/// - A key that a browser has added by itself (HTTP Basic) is refused with 403
///   if the request is another page's.
/// - Each answer carries an x-request-id; no CORS headers are sent.
#ifndef LATHE_RUNTIME_SERVE_HTTP_HTTPSERVER_H
#define LATHE_RUNTIME_SERVE_HTTP_HTTPSERVER_H

#include "runtime/serve/http/Routes.h"
#include "runtime/support/Result.h"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace lathe::runtime::http {

/// What a client may take up. Beyond, it gets the status that is named.
struct HttpLimits {
  u64 bodyBytes = u64(16) << 20; ///< 413
  u32 headerBytes = 16 << 10;    ///< 431
  u32 connections = 1024;        ///< 503, and closed.
  /// 408; closed without a word if not one byte has come.
  std::chrono::milliseconds headerTime = std::chrono::seconds(10);
  std::chrono::milliseconds bodyTime = std::chrono::seconds(60); ///< 408
  /// Between requests; closed.
  std::chrono::milliseconds idleTime = std::chrono::seconds(75);
  /// Without progress; closed.
  std::chrono::milliseconds writeTime = std::chrono::seconds(60);
  u64 unsentBytes = u64(4) << 20; ///< Of a stream; closed.
};

/// A finished request, for logs.
struct AccessRecord {
  const Request &request;
  u32 status;
  u64 bytes;       ///< Of the body.
  f64 seconds;     ///< From the request's last byte to the answer's.
  bool isComplete; ///< False: the client went away before.
};

struct HttpOptions {
  std::string host = "127.0.0.1"; ///< An address or a name.
  u16 port = 0;                   ///< 0: any free one.
  u32 threads = 1;
  /// Accepted as "Authorization: Bearer KEY" and as the password of HTTP Basic,
  /// whoever the user; none: everybody is let in.
  std::vector<std::string> keys = {};
  HttpLimits limits = {};
  /// Called on the server's threads after each request; may be null.
  std::function<void(const AccessRecord &)> log = nullptr;
};

/// Listens from its creation, serves from serve() on, until it is destroyed.
class HttpServer {
public:
  /// Takes the port, so that a taken one is told before anything else is done.
  /// Errors: Environment (taken, no rights, an unknown host), with the address
  /// and what to do.
  static Result<std::unique_ptr<HttpServer>> listen(HttpOptions options);

  /// Closes everything at once; answers in progress lose their client. Waits
  /// for handlers that are running, so it must not be called from one.
  virtual ~HttpServer() = default;

  virtual u16 port() const = 0;
  /// "http://127.0.0.1:8080"
  virtual std::string url() const = 0;

  /// Starts the threads; returns at once. Once.
  virtual void serve(Routes routes) = 0;

  /// Takes no further connections, and closes each one after the answer in
  /// progress; idle ones at once. Returns when all are closed or `most` has
  /// passed; true: all are closed. May be called again, not from a handler.
  virtual bool drain(std::chrono::milliseconds most) = 0;
};

} // namespace lathe::runtime::http

#endif // LATHE_RUNTIME_SERVE_HTTP_HTTPSERVER_H
