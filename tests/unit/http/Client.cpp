#include "tests/unit/http/Client.h"

#include <arpa/inet.h>
#include <cerrno>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace lathe::tests {

using Clock = std::chrono::steady_clock;

std::string Answer::header(std::string_view name) const {
  for (const auto &[other, value] : headers)
    if (::strcasecmp(other.c_str(), std::string(name).c_str()) == 0)
      return value;
  return {};
}

Client::Client(u16 port, int receiveBuffer) {
  socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (receiveBuffer)
    ::setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &receiveBuffer,
                 sizeof(receiveBuffer));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket, reinterpret_cast<sockaddr *>(&address),
                sizeof(address)) != 0)
    close();
}

bool Client::send(std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t count = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count < 0)
      return false;
    bytes.remove_prefix(size_t(count));
  }
  return true;
}

std::string Client::receiveSome(std::chrono::milliseconds most) {
  if (!buffer.empty())
    return std::exchange(buffer, {});
  pollfd state{socket, POLLIN, 0};
  if (::poll(&state, 1, int(most.count())) <= 0)
    return {};
  char bytes[16384];
  ssize_t count = ::recv(socket, bytes, sizeof(bytes), 0);
  return count > 0 ? std::string(bytes, size_t(count)) : std::string();
}

bool Client::fill() {
  std::string had = std::exchange(buffer, {});
  std::string more = receiveSome();
  buffer = had + more;
  return !more.empty();
}

std::string Client::line() {
  size_t end;
  while ((end = buffer.find("\r\n")) == buffer.npos)
    if (!fill())
      return {};
  std::string line = buffer.substr(0, end);
  buffer.erase(0, end + 2);
  return line;
}

std::string Client::take(size_t count) {
  while (buffer.size() < count && fill())
    ;
  std::string taken = buffer.substr(0, count);
  buffer.erase(0, count);
  return taken;
}

Answer Client::receive(bool isHead) {
  Answer answer;
  std::string first = line();
  if (!first.starts_with("HTTP/1.1 "))
    return answer;
  u32 status = u32(std::stoul(first.substr(9)));
  for (std::string header; !(header = line()).empty();) {
    size_t colon = header.find(": ");
    if (colon == header.npos)
      return answer;
    answer.headers.emplace_back(header.substr(0, colon),
                                header.substr(colon + 2));
  }
  answer.hasEnd = true;
  if (isHead || status == 100 || status == 204) {
    answer.status = status;
    return answer;
  }
  if (std::string length = answer.header("content-length"); !length.empty()) {
    answer.body = take(std::stoul(length));
    if (answer.body.size() != std::stoul(length))
      return answer;
  } else if (answer.header("transfer-encoding") == "chunked") {
    for (;;) {
      std::string sizeLine = line();
      size_t size = sizeLine.empty() ? 0 : std::stoul(sizeLine, nullptr, 16);
      answer.hasEnd = !sizeLine.empty();
      answer.body += take(size);
      if (answer.hasEnd)
        line();
      if (size == 0)
        break;
      ++answer.chunks;
    }
  } else {
    answer.body = receiveAll();
  }
  answer.status = status;
  return answer;
}

Answer Client::ask(std::string_view bytes, bool isHead) {
  send(bytes);
  return receive(isHead);
}

std::string Client::receiveAll() {
  std::string all;
  for (std::string some; !(some = receiveSome()).empty();)
    all += some;
  return all;
}

bool Client::isClosed(std::chrono::milliseconds most) {
  buffer.clear();
  for (auto until = Clock::now() + most; Clock::now() < until;) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        until - Clock::now());
    pollfd state{socket, POLLIN, 0};
    if (::poll(&state, 1, int(left.count()) + 1) <= 0)
      return false;
    char bytes[16384];
    if (::recv(socket, bytes, sizeof(bytes), 0) <= 0)
      return true;
  }
  return false;
}

void Client::shutdownSending() { ::shutdown(socket, SHUT_WR); }

void Client::close() {
  if (socket >= 0)
    ::close(std::exchange(socket, -1));
}

void Client::reset() {
  linger abortively{1, 0};
  ::setsockopt(socket, SOL_SOCKET, SO_LINGER, &abortively, sizeof(abortively));
  close();
}

std::string get(std::string_view path, std::string_view headers) {
  return fmt::format("GET {} HTTP/1.1\r\nHost: here\r\n{}\r\n", path, headers);
}

std::string post(std::string_view path, std::string_view body,
                 std::string_view headers) {
  return fmt::format(
      "POST {} HTTP/1.1\r\nHost: here\r\nContent-Length: {}\r\n{}\r\n{}", path,
      body.size(), headers, body);
}

} // namespace lathe::tests
