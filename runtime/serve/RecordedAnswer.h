/// \file
/// One answer as a recording keeps it: a line of JSON with all that the answer
/// depends on.
#ifndef LATHE_RUNTIME_SERVE_RECORDEDANSWER_H
#define LATHE_RUNTIME_SERVE_RECORDEDANSWER_H

#include "runtime/schedule/Request.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lathe::runtime::serve {

struct RecordedAnswer {
  std::string time;     ///< Of its end, UTC: "2025-01-31T12:00:00.123Z".
  std::string callId;   ///< The call's x-request-id.
  std::string endpoint; ///< "/v1/completions"
  u32 promptIndex = 0;  ///< Among the prompts of the call.
  u32 branch = 0;       ///< Among the answers to its prompt.
  u32 branches = 1;

  std::string model;      ///< As the server's command line named it.
  std::string engineHash; ///< engineHash()
  std::string target;     ///< "cpu:avx512"

  std::vector<i32> prompt;
  /// The request's; this answer was drawn with seed + branch.
  SamplerOptions sampling;
  u32 maxTokens = ~0u;
  std::vector<i32> stopTokens;
  u32 stopStrings = 0;    ///< How many the request had.
  std::string saltDigest; ///< Stands for its cache salt; empty: it had none.

  std::vector<i32> answer;
  EndReason finish = EndReason::Length;

  /// Only if texts are recorded.
  std::optional<std::string> promptText, answerText;
};

/// The line, without its newline. Floats are written so that they read back to
/// the same bits.
std::string toLine(const RecordedAnswer &answer);

/// Errors: InvalidInput, naming the field that is missing or wrong, or
/// NotFound if the line is no whole JSON object at all (torn).
Result<RecordedAnswer> fromLine(std::string_view line);

/// "stop", "length", "cancelled", "deadline", "failed".
std::string_view nameOf(EndReason reason);

/// Of a request's cacheSalt: 16 hexadecimal digits of its SHA-256, or empty.
std::string saltDigest(std::string_view salt);

/// A recording, read whole.
struct Recording {
  struct Entry {
    u64 line; ///< From 1 on.
    RecordedAnswer answer;
  };
  std::vector<Entry> answers;
  /// Lines that a crash or a full disk cut off.
  std::vector<u64> tornLines;
};

/// Errors: NotFound, Environment (cannot be read), InvalidInput (a field is
/// missing or wrong, no line is whole), with file and line.
Result<Recording> readRecording(const std::string &path);

} // namespace lathe::runtime::serve

#endif // LATHE_RUNTIME_SERVE_RECORDEDANSWER_H
