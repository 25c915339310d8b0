/// \file
/// Stop strings in generated text, wherever the tokens' borders lie.
#ifndef LATHE_RUNTIME_TEXT_STOPMATCHER_H
#define LATHE_RUNTIME_TEXT_STOPMATCHER_H

#include "runtime/support/Result.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace lathe::runtime {

/// Passes text on until a stop string occurs, and holds back what could still
/// become one. The occurrence that starts first ends the text, and of two that
/// start together the shorter one; so the result depends on the text alone,
/// not on how it arrives. A stop that is found while one that starts earlier
/// is still open waits for that one to be decided.
///
/// A control token's text is not in the decoded text. If a stop is the text of
/// a control token (Tokenizer::findSpecial), its id is to be treated as one
/// that ends generation.
///
/// One sequence, one thread at a time. Work per byte is constant on average.
class StopMatcher {
public:
  static constexpr size_t kMaxStops = 16;
  static constexpr size_t kMaxStopBytes = 1024;

  /// Fails with InvalidInput on an empty stop, on more than kMaxStops, on one
  /// longer than kMaxStopBytes or not UTF-8. No stops: all text passes.
  /// `includeStop`: the text ends with the stop string instead of before it.
  static Result<StopMatcher> create(const std::vector<std::string> &stops,
                                    bool includeStop = false);

  /// Takes the next text (whole characters) and appends to `out` what is
  /// certain to be part of the answer. True once a stop string has ended the
  /// text; everything after that is ignored.
  bool push(std::string_view text, std::string &out);

  /// Generation ended for another reason: appends what was held back, up to
  /// a stop string if a complete one was waiting. Returns as push.
  bool flush(std::string &out);

  /// Which of the stops ended the text; meaningful once push returned true.
  size_t matched() const { return matchStop; }

private:
  static constexpr uint32_t kNone = ~uint32_t{0};

  /// A state of the Aho-Corasick automaton: the longest end of the text that
  /// starts a stop string.
  struct State {
    uint32_t depth = 0; ///< Bytes of that end.
    uint32_t fallback = 0;
    uint32_t stop = kNone; ///< The longest stop string that ends here.
    uint32_t stopBytes = 0;
  };

  StopMatcher() = default;

  uint32_t next(uint32_t state, uint8_t byte) const;
  bool finish(std::string &out);

  std::vector<State> states{State{}};
  std::unordered_map<uint32_t, uint32_t> edges; ///< state * 256 + byte.
  bool includeStop = false;

  uint32_t current = 0;
  std::string held; ///< Text not passed on yet.
  /// The best complete occurrence so far, as offsets into held.
  size_t matchBegin = 0, matchEnd = 0;
  size_t matchStop = 0;
  bool found = false, done = false;
};

} // namespace lathe::runtime

#endif // LATHE_RUNTIME_TEXT_STOPMATCHER_H
