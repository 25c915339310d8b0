#include "runtime/serve/http/ServerState.h"

namespace lathe::runtime::http {

void ConnectionList::add(const std::shared_ptr<Connection> &connection) {
  std::lock_guard lock(mutex);
  there.emplace(connection.get(), connection);
}

void ConnectionList::remove(Connection *connection) {
  std::lock_guard lock(mutex);
  there.erase(connection);
  if (there.empty())
    isEmpty.notify_all();
}

size_t ConnectionList::count() const {
  std::lock_guard lock(mutex);
  return there.size();
}

std::vector<std::shared_ptr<Connection>> ConnectionList::all() const {
  std::vector<std::shared_ptr<Connection>> connections;
  std::lock_guard lock(mutex);
  for (const auto &[key, weak] : there)
    if (auto connection = weak.lock())
      connections.push_back(std::move(connection));
  return connections;
}

bool ConnectionList::waitUntilEmpty(std::chrono::milliseconds most) const {
  std::unique_lock lock(mutex);
  return isEmpty.wait_for(lock, most, [this] { return there.empty(); });
}

void ConnectionList::waitUntilEmpty() const {
  std::unique_lock lock(mutex);
  isEmpty.wait(lock, [this] { return there.empty(); });
}

} // namespace lathe::runtime::http
