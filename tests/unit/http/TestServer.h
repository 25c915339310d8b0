/// \file
/// A server with a few routes that answer in every way there is.
#ifndef LATHE_TESTS_UNIT_HTTP_TESTSERVER_H
#define LATHE_TESTS_UNIT_HTTP_TESTSERVER_H

#include "runtime/serve/http/HttpServer.h"
#include "tests/unit/http/Client.h"

#include <condition_variable>
#include <mutex>

namespace lathe::tests {

namespace http = runtime::http;

/// Routes:
/// - GET /hello: "hello"; open to all
/// - GET /page: "page"; a browser asks its user for the key
/// - POST /echo: the body, with method, path, query and id as headers
/// - GET /id: the request's id
/// - GET, POST /hold: answered by the test, which gets the responder by held()
/// - GET /throws, GET /forgets: a handler that fails
class TestServer {
public:
  explicit TestServer(http::HttpOptions options = {});

  u16 port() const { return server->port(); }
  Client connect() const { return Client(port()); }

  /// The responder of the next request to /hold; null if none comes. `gone`
  /// counts clients that left.
  std::shared_ptr<http::Responder> held();
  u32 gone() const;
  /// Until so many clients have left; false if that takes over `most`.
  bool waitForGone(u32 count, std::chrono::milliseconds most) const;

  /// A line per request: "GET /hello 200 5 whole".
  std::vector<std::string> log() const;
  bool waitForLog(size_t lines) const;

private:
  mutable std::mutex mutex;
  mutable std::condition_variable changed;
  std::vector<std::shared_ptr<http::Responder>> waiting;
  u32 goneCount = 0;
  std::vector<std::string> lines;

public:
  /// Goes first: its threads use the others.
  std::unique_ptr<http::HttpServer> server;
};

http::Routes testRoutes(http::Handler hold);

} // namespace lathe::tests

#endif // LATHE_TESTS_UNIT_HTTP_TESTSERVER_H
