/// \file
/// One connection of a client: requests in, answers out, one after the other.
#ifndef LATHE_RUNTIME_SERVE_HTTP_CONNECTION_H
#define LATHE_RUNTIME_SERVE_HTTP_CONNECTION_H

#include "runtime/serve/http/Answer.h"
#include "runtime/serve/http/ServerState.h"

namespace boost::asio {
class io_context;
}

namespace lathe::runtime::http {

/// Lives on one event loop, kept alive by what it waits for there.
class Connection : public AnswerOwner {
public:
  /// Takes over an accepted, non-blocking socket and serves it on `loop`. One
  /// over the limit of connections is told so (503) and closed.
  static void open(boost::asio::io_context &loop, int socket,
                   std::shared_ptr<ServerState> server, bool isOverLimit);

  /// Closes it: if idle at once, else after the answer in progress. From any
  /// thread.
  virtual void drain() = 0;

  /// Closes it; the client counts as gone. From any thread.
  virtual void abort() = 0;
};

} // namespace lathe::runtime::http

#endif // LATHE_RUNTIME_SERVE_HTTP_CONNECTION_H
