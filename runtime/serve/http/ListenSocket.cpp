#include "runtime/serve/http/ListenSocket.h"
#include "runtime/support/Quote.h"

#include <cerrno>
#include <cstring>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace lathe::runtime::http {

ListenSocket::ListenSocket(ListenSocket &&other) noexcept
    : socket(std::exchange(other.socket, -1)), taken(other.taken),
      address(std::move(other.address)) {}

void ListenSocket::close() {
  if (socket >= 0)
    ::close(std::exchange(socket, -1));
}

static std::string whyNot(int error, u16 port) {
  switch (error) {
  case EADDRINUSE:
    return "the port is in use; stop what listens there or choose another one "
           "with --port";
  case EACCES:
    return port < 1024 ? "ports below 1024 need root or CAP_NET_BIND_SERVICE; "
                         "choose a higher one with --port"
                       : "it is not permitted here; choose another port with "
                         "--port";
  case EADDRNOTAVAIL:
    return "this machine does not have this address; choose one that it has "
           "with --host, or 127.0.0.1";
  default:
    return std::strerror(error);
  }
}

/// Binds and listens; an errno, or 0.
static int listenOn(int socket, const addrinfo &address) {
  int yes = 1, no = 0;
  // A port whose last connections still linger in the kernel is free.
  ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  // "::" means IPv4 too, whatever the system's default is.
  if (address.ai_family == AF_INET6)
    ::setsockopt(socket, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
  if (::bind(socket, address.ai_addr, address.ai_addrlen) != 0 ||
      ::listen(socket, SOMAXCONN) != 0)
    return errno;
  return 0;
}

static u16 portOf(int socket) {
  sockaddr_storage name{};
  socklen_t size = sizeof(name);
  if (::getsockname(socket, reinterpret_cast<sockaddr *>(&name), &size) != 0)
    return 0;
  // sin_port and sin6_port lie at the same place.
  return ntohs(reinterpret_cast<const sockaddr_in *>(&name)->sin_port);
}

Result<ListenSocket> ListenSocket::open(std::string host, u16 port) {
  if (host.starts_with('[') && host.ends_with(']'))
    host = host.substr(1, host.size() - 2);
  bool isV6 = host.find(':') != host.npos;
  std::string shown = displayPath(isV6 ? '[' + host + ']' : host);
  if (host.empty() || host.find('\0') != host.npos)
    return fail(ErrorKind::Environment,
                "cannot listen: no host is named; give one with --host, such "
                "as 127.0.0.1, or 0.0.0.0 for all addresses");

  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo *found = nullptr;
  if (int error = ::getaddrinfo(host.c_str(), nullptr, &hints, &found))
    return fail(ErrorKind::Environment,
                "cannot listen on {}:{}: the host is not known ({}); give an "
                "address with --host, such as 127.0.0.1",
                shown, port, ::gai_strerror(error));
  std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> list(found,
                                                            ::freeaddrinfo);
  std::vector<const addrinfo *> addresses;
  for (int family : {AF_INET, AF_INET6})
    for (const addrinfo *at = found; at; at = at->ai_next)
      if (at->ai_family == family)
        addresses.push_back(at);

  int firstError = 0;
  for (const addrinfo *at : addresses) {
    sockaddr_storage name{};
    std::memcpy(&name, at->ai_addr, at->ai_addrlen);
    reinterpret_cast<sockaddr_in *>(&name)->sin_port = htons(port);
    addrinfo there = *at;
    there.ai_addr = reinterpret_cast<sockaddr *>(&name);
    ListenSocket self;
    self.socket =
        ::socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int error = self.socket < 0 ? errno : listenOn(self.socket, there);
    if (error == 0) {
      self.taken = portOf(self.socket);
      self.address = fmt::format("http://{}:{}", shown, self.taken);
      return self;
    }
    if (firstError == 0)
      firstError = error;
  }
  return fail(ErrorKind::Environment, "cannot listen on {}:{}: {}", shown, port,
              whyNot(firstError ? firstError : EADDRNOTAVAIL, port));
}

} // namespace lathe::runtime::http
