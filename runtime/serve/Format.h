/// \file
/// How answers are written down: one form per API.
#ifndef LATHE_RUNTIME_SERVE_FORMAT_H
#define LATHE_RUNTIME_SERVE_FORMAT_H

#include "runtime/schedule/Request.h"
#include "runtime/serve/AnswerText.h"
#include "runtime/serve/ApiError.h"
#include "runtime/serve/http/Http.h"

#include <span>
#include <string>
#include <string_view>

namespace lathe::runtime::serve {

/// What an answer, or all answers of a call, took.
struct Usage {
  u32 promptTokens = 0; ///< Each prompt once.
  u32 cachedTokens = 0;
  u32 answerTokens = 0;
  /// Of the first prompt: when it came, left the queue, had its first token,
  /// had its last.
  Instant submitted = 0, started = 0, firstToken = 0, ended = 0;
};

/// One answer of a stream, and what it took so far.
struct Progress {
  u32 choice;
  u32 promptTokens;
  u32 answerTokens;
};

/// A complete answer. Views hold during the call.
struct Choice {
  std::string_view text;
  std::span<const TokenEntry> entries;
  bool isStop; ///< Ended by a stop string or token; else by length.
};

/// How an API shows an error.
using ErrorShape = http::Reply (*)(const ApiError &error);

/// Writes the answers of one call. Called by one thread at a time.
class Format {
public:
  virtual ~Format() = default;

  /// The whole answer of a call that is not streamed.
  virtual std::string whole(std::span<const Choice> choices,
                            const Usage &usage) = 0;

  virtual std::string_view streamType() const = 0;

  /// Appends what a stream says before the first piece of an answer.
  virtual void begin(std::string &out, const Progress &at) = 0;

  /// Appends a piece of an answer: text, or entries of tokens, or both.
  virtual void piece(std::string &out, const Progress &at,
                     std::string_view text,
                     std::span<const TokenEntry> entries) = 0;

  /// Appends the end of an answer.
  virtual void end(std::string &out, const Progress &at, bool isStop) = 0;

  /// Appends the end of the stream.
  virtual void close(std::string &out, const Usage &usage) = 0;

  /// Appends the end of a stream that has failed.
  virtual void fail(std::string &out, const ApiError &error) = 0;

  /// How an error is shown before anything else was said.
  virtual ErrorShape errorShape() const = 0;
};

} // namespace lathe::runtime::serve

#endif // LATHE_RUNTIME_SERVE_FORMAT_H
