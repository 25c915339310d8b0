/// \file
/// An answer as the bytes that go over the wire.
#ifndef LATHE_RUNTIME_SERVE_HTTP_FRAMING_H
#define LATHE_RUNTIME_SERVE_HTTP_FRAMING_H

#include "runtime/serve/http/Answer.h"

namespace lathe::runtime::http {

/// Frames one answer. One thread at a time.
class Framing {
public:
  /// About the request that is answered.
  struct About {
    bool isHead = false; ///< Gets no body.
    bool isHttp10 = false;
    std::string requestId = {};
  };

  explicit Framing(About about) : about(std::move(about)) {}

  /// Appends what has been taken to `out`. `keepsAlive` is what the client is
  /// told; it may come out false.
  void append(std::string &out, Answer::Taken taken, bool &keepsAlive);

  u32 status() const { return sentStatus; } ///< 0: no answer has begun.
  u64 bodyBytes() const { return bytes; }
  bool isComplete() const { return hasEnd; } ///< With its proper end.

private:
  void appendWhole(std::string &out, Reply reply, bool &keepsAlive);

  const About about;
  u32 sentStatus = 0;
  u64 bytes = 0;
  bool isChunked = false;
  bool hasEnd = false;
};

} // namespace lathe::runtime::http

#endif // LATHE_RUNTIME_SERVE_HTTP_FRAMING_H
