/// \file
/// A client of plain sockets, which can also send what no HTTP library would.
#ifndef LATHE_TESTS_UNIT_HTTP_CLIENT_H
#define LATHE_TESTS_UNIT_HTTP_CLIENT_H

#include "kernels/abi/Types.h"

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lathe::tests {

/// An answer as it came over the wire.
struct Answer {
  u32 status = 0; ///< 0: the connection ended before a whole answer.
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body; ///< Without chunk framing.
  u32 chunks = 0;
  bool hasEnd = false; ///< False: a chunked body broke off.

  /// The value of a header (compared without case), or empty.
  std::string header(std::string_view name) const;
};

/// One connection to 127.0.0.1. No call waits longer than `patience`.
class Client {
public:
  static constexpr std::chrono::milliseconds patience{5000};

  /// `receiveBuffer`: bytes that the kernel may keep for us; 0: as it likes.
  explicit Client(u16 port, int receiveBuffer = 0);
  ~Client() { close(); }
  Client(const Client &) = delete;
  Client &operator=(const Client &) = delete;

  bool isConnected() const { return socket >= 0; }

  /// False if the server has closed.
  bool send(std::string_view bytes);
  /// Reads one answer; one to HEAD has no body.
  Answer receive(bool isHead = false);
  /// send() and receive().
  Answer ask(std::string_view bytes, bool isHead = false);

  /// Bytes that are there within `most`; none: closed, or nothing came.
  std::string receiveSome(std::chrono::milliseconds most = patience);
  /// All bytes until the server closes.
  std::string receiveAll();
  /// True if the server closes (or resets) within `most`; eats what comes.
  bool isClosed(std::chrono::milliseconds most = patience);

  void shutdownSending();
  void close();
  void reset(); ///< Closes with RST.

private:
  /// One line without its CRLF; empty at the end.
  std::string line();
  std::string take(size_t count);
  bool fill();

  int socket = -1;
  std::string buffer;
};

/// "GET path HTTP/1.1" with a Host and `headers` (each ended by CRLF).
std::string get(std::string_view path, std::string_view headers = {});
std::string post(std::string_view path, std::string_view body,
                 std::string_view headers = {});

} // namespace lathe::tests

#endif // LATHE_TESTS_UNIT_HTTP_CLIENT_H
