/// \file
/// A port, taken.
#ifndef LATHE_RUNTIME_SERVE_HTTP_LISTENSOCKET_H
#define LATHE_RUNTIME_SERVE_HTTP_LISTENSOCKET_H

#include "kernels/abi/Types.h"
#include "runtime/support/Result.h"

#include <string>

namespace lathe::runtime::http {

/// A listening TCP socket, non-blocking; closed with the object.
class ListenSocket {
public:
  /// Listens on the first address of `host` (IPv4 before IPv6) that can be
  /// taken. `host` is an address, in brackets or not, or a name; port 0 is any
  /// free one. Errors: Environment.
  static Result<ListenSocket> open(std::string host, u16 port);

  ListenSocket(ListenSocket &&other) noexcept;
  ListenSocket &operator=(ListenSocket &&) = delete;
  ~ListenSocket() { close(); }

  void close();

  int handle() const { return socket; }
  u16 port() const { return taken; }
  const std::string &url() const { return address; }

private:
  ListenSocket() = default;

  int socket = -1;
  u16 taken = 0;
  std::string address;
};

} // namespace lathe::runtime::http

#endif // LATHE_RUNTIME_SERVE_HTTP_LISTENSOCKET_H
