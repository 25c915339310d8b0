#include "runtime/serve/http/Listener.h"

#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <boost/asio/post.hpp>

#include <cerrno>
#include <chrono>
#include <future>
#include <sys/socket.h>
#include <unistd.h>

namespace lathe::runtime::http {

namespace asio = boost::asio;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;
using Executor = asio::io_context::executor_type;

/// So many are accepted before others get their turn.
static constexpr u32 acceptsAtOnce = 64;
/// Until the next try when descriptors or memory have run out.
static constexpr std::chrono::milliseconds backoff{100};

class Listener::Impl : public std::enable_shared_from_this<Impl> {
public:
  Impl(asio::io_context &loop, ListenSocket socket,
       std::function<void(int)> accepted)
      : loop(loop), socket(std::move(socket)), accepted(std::move(accepted)),
        descriptor(loop), timer(loop) {}

  void wait() {
    if (!descriptor.is_open())
      descriptor.assign(socket.handle());
    descriptor.async_wait(asio::posix::descriptor_base::wait_read,
                          [self = shared_from_this()](error_code error) {
                            if (!error && !self->isClosed)
                              self->accept();
                          });
  }

  void closeNow() {
    isClosed = true;
    timer.cancel();
    if (descriptor.is_open())
      descriptor.release();
    socket.close();
  }

  asio::io_context &loop;

private:
  void accept() {
    for (u32 i = 0; i < acceptsAtOnce; ++i) {
      int client = ::accept4(socket.handle(), nullptr, nullptr,
                             SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (client >= 0) {
        accepted(client);
        continue;
      }
      if (errno == EAGAIN || errno == EWOULDBLOCK)
        break;
      // The others are troubles of a single client.
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
          errno == ENOMEM) {
        timer.expires_after(backoff);
        timer.async_wait([self = shared_from_this()](error_code error) {
          if (!error && !self->isClosed)
            self->accept();
        });
        return;
      }
    }
    wait();
  }

  ListenSocket socket;
  std::function<void(int)> accepted;
  asio::posix::basic_stream_descriptor<Executor> descriptor;
  asio::basic_waitable_timer<Clock, asio::wait_traits<Clock>, Executor> timer;
  bool isClosed = false;
};

Listener::Listener(asio::io_context &loop, ListenSocket socket,
                   std::function<void(int)> accepted)
    : impl(std::make_shared<Impl>(loop, std::move(socket),
                                  std::move(accepted))) {
  asio::post(loop, [impl = impl] { impl->wait(); });
}

Listener::~Listener() = default;

void Listener::close() {
  std::promise<void> closed;
  asio::post(impl->loop, [&] {
    impl->closeNow();
    closed.set_value();
  });
  closed.get_future().wait();
}

} // namespace lathe::runtime::http
