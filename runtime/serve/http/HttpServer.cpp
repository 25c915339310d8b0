#include "runtime/serve/http/HttpServer.h"
#include "runtime/serve/http/Connection.h"
#include "runtime/serve/http/Listener.h"
#include "runtime/serve/http/ServerState.h"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>

#include <algorithm>
#include <csignal>
#include <pthread.h>
#include <thread>
#include <unistd.h>

namespace lathe::runtime::http {

namespace asio = boost::asio;

/// So many connections over the limit are told so; further ones are just
/// closed.
static constexpr size_t refusedAtOnce = 64;

namespace {

/// A thread and what it waits for. Each connection stays on one.
class Loop {
public:
  Loop() : guard(context.get_executor()) {
    // Signals are for the program's own threads.
    sigset_t allSignals, before;
    sigfillset(&allSignals);
    pthread_sigmask(SIG_SETMASK, &allSignals, &before);
    thread = std::thread([this] { context.run(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    pthread_setname_np(thread.native_handle(), "lathe-http");
  }
  ~Loop() { stop(); }

  void stop() {
    context.stop();
    if (thread.joinable())
      thread.join();
  }

  asio::io_context context{1};

private:
  asio::executor_work_guard<asio::io_context::executor_type> guard;
  std::thread thread;
};

class BeastServer final : public HttpServer {
public:
  BeastServer(HttpOptions options, ListenSocket taken)
      : takenPort(taken.port()), address(taken.url()),
        state(std::make_shared<ServerState>(std::move(options))),
        socket(std::move(taken)) {}
  ~BeastServer() override;

  u16 port() const override { return takenPort; }
  std::string url() const override { return address; }
  void serve(Routes routes) override;
  bool drain(std::chrono::milliseconds most) override;

private:
  void accepted(int client);
  void closePort();

  const u16 takenPort;
  const std::string address;
  const std::shared_ptr<ServerState> state;
  std::optional<ListenSocket> socket; ///< Until it serves.
  std::vector<std::unique_ptr<Loop>> loops;
  size_t nextLoop = 0; ///< On the listener's thread.
  std::unique_ptr<Listener> listener;
};

void BeastServer::serve(Routes routes) {
  if (!socket)
    return;
  state->routes = std::move(routes);
  for (u32 i = 0; i < std::max(1u, state->options.threads); ++i)
    loops.push_back(std::make_unique<Loop>());
  listener =
      std::make_unique<Listener>(loops.front()->context, std::move(*socket),
                                 [this](int client) { accepted(client); });
  socket.reset();
}

void BeastServer::accepted(int client) {
  size_t count = state->connections.count();
  size_t most = state->options.limits.connections;
  if (count >= most + refusedAtOnce) {
    ::close(client);
    return;
  }
  Loop &loop = *loops[nextLoop++ % loops.size()];
  Connection::open(loop.context, client, state, count >= most);
}

void BeastServer::closePort() {
  state->isDraining = true;
  socket.reset();
  if (listener)
    listener->close();
  listener.reset();
}

bool BeastServer::drain(std::chrono::milliseconds most) {
  closePort();
  for (const auto &connection : state->connections.all())
    connection->drain();
  return state->connections.waitUntilEmpty(most);
}

BeastServer::~BeastServer() {
  closePort();
  for (const auto &connection : state->connections.all())
    connection->abort();
  state->connections.waitUntilEmpty();
  for (auto &loop : loops)
    loop->stop();
}

} // namespace

Result<std::unique_ptr<HttpServer>> HttpServer::listen(HttpOptions options) {
  auto socket = ListenSocket::open(options.host, options.port);
  if (!socket)
    return failFrom(socket);
  return std::make_unique<BeastServer>(std::move(options), std::move(*socket));
}

} // namespace lathe::runtime::http
