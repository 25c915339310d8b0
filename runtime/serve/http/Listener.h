/// \file
/// Accepts connections.
#ifndef LATHE_RUNTIME_SERVE_HTTP_LISTENER_H
#define LATHE_RUNTIME_SERVE_HTTP_LISTENER_H

#include "runtime/serve/http/ListenSocket.h"

#include <functional>
#include <memory>

namespace boost::asio {
class io_context;
}

namespace lathe::runtime::http {

/// Accepts on an event loop until it is closed.
class Listener {
public:
  /// `accepted` gets each socket, non-blocking, and owns it.
  Listener(boost::asio::io_context &loop, ListenSocket socket,
           std::function<void(int)> accepted);
  ~Listener();

  /// Accepts no more and frees the port; returns when that is done. While the
  /// loop runs, not from its thread.
  void close();

private:
  class Impl;
  std::shared_ptr<Impl> impl;
};

} // namespace lathe::runtime::http

#endif // LATHE_RUNTIME_SERVE_HTTP_LISTENER_H
