/// \file
/// What all connections of a server share.
#ifndef LATHE_RUNTIME_SERVE_HTTP_SERVERSTATE_H
#define LATHE_RUNTIME_SERVE_HTTP_SERVERSTATE_H

#include "runtime/serve/http/HttpServer.h"
#include "runtime/serve/http/KeyRing.h"

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>

namespace lathe::runtime::http {

class Connection;

/// The connections that exist. For any thread.
class ConnectionList {
public:
  void add(const std::shared_ptr<Connection> &connection);
  /// The last thing that a connection does.
  void remove(Connection *connection);
  size_t count() const;
  std::vector<std::shared_ptr<Connection>> all() const;
  /// Until there is none; false if `most` passes before.
  bool waitUntilEmpty(std::chrono::milliseconds most) const;
  void waitUntilEmpty() const;

private:
  mutable std::mutex mutex;
  mutable std::condition_variable isEmpty;
  std::map<Connection *, std::weak_ptr<Connection>> there;
};

/// Immutable while serving, but for the marked.
struct ServerState {
  explicit ServerState(HttpOptions given)
      : options(std::move(given)), keys(options.keys) {}

  const HttpOptions options;
  const KeyRing keys;
  Routes routes; ///< Set before the threads start.
  std::atomic<bool> isDraining = false;
  ConnectionList connections;
};

} // namespace lathe::runtime::http

#endif // LATHE_RUNTIME_SERVE_HTTP_SERVERSTATE_H
