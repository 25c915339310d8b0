// SentencePiece's unigram model (Kudo 2018): of all ways to cut the normalized
// text into tokens the one with the highest sum of scores, found by Viterbi.

#include "runtime/text/Charsmap.h"
#include "runtime/text/SegmentEncoder.h"
#include "runtime/text/TokenTrie.h"
#include "runtime/text/Utf8.h"

#include <algorithm>
#include <limits>

namespace lathe::runtime {
namespace {

/// How much worse than the worst token an unknown character is (SentencePiece's
/// kUnkPenalty).
constexpr double kUnknownPenalty = 10.0;

class Unigram final : public SegmentEncoder {
public:
  Unigram(const TokenizerSpec &spec, const PieceTable &pieces,
          Charsmap charsmap)
      : spec(spec), pieces(pieces), charsmap(std::move(charsmap)),
        byteFallback(pieces.hasAllBytes()) {
    std::vector<TokenTrie::Entry> all, whole;
    double lowest = std::numeric_limits<float>::max();
    for (int32_t id = 0; id < static_cast<int32_t>(spec.tokens.size()); ++id) {
      TokenType type = typeOf(spec, id);
      if (type == TokenType::Normal)
        lowest = std::min<double>(lowest, spec.scores[id]);
      if (type == TokenType::UserDefined)
        whole.emplace_back(spec.tokens[id], id);
      if (type == TokenType::Normal || type == TokenType::UserDefined ||
          type == TokenType::Unused)
        all.emplace_back(spec.tokens[id], id);
    }
    unknownScore = lowest - kUnknownPenalty;
    tokens = TokenTrie(std::move(all));
    userDefined = TokenTrie(std::move(whole));
  }

  Result<void> encode(std::string_view text, bool spacePrefix,
                      std::vector<int32_t> &ids) const override {
    std::string normalized = normalize(text, spacePrefix);
    if (!normalized.empty())
      cut(normalized, ids);
    return {};
  }

private:
  /// The best way to reach a place in the text.
  struct Best {
    double score = -std::numeric_limits<double>::max();
    uint32_t from = 0;
    int32_t id = kNoToken; ///< kNoToken: an unknown character.
  };

  void cut(std::string_view text, std::vector<int32_t> &ids) const {
    std::vector<Best> best(text.size() + 1);
    best[0].score = 0;
    for (size_t at = 0; at < text.size();) {
      std::string_view rest = text.substr(at);
      Utf8Unit unit = readUtf8(rest);
      size_t step = unit.kind == Utf8Kind::Valid ? unit.size : 1;
      bool known = false;
      auto offer = [&](size_t length, double score, int32_t id) {
        Best &there = best[at + length];
        if (best[at].score + score > there.score)
          there = {best[at].score + score, static_cast<uint32_t>(at), id};
      };
      tokens.eachPrefix(rest, [&](size_t length, int32_t id) {
        known |= length == step;
        bool free = typeOf(spec, id) == TokenType::UserDefined;
        offer(length, free ? 0.0 : spec.scores[id], id);
      });
      if (!known)
        offer(step, unknownScore, kNoToken);
      at += step;
    }

    std::vector<uint32_t> ends;
    for (size_t at = text.size(); at > 0; at = best[at].from)
      ends.push_back(static_cast<uint32_t>(at));
    bool afterUnknown = false;
    for (auto end = ends.rbegin(); end != ends.rend(); ++end) {
      const Best &step = best[*end];
      if (step.id != kNoToken) {
        ids.push_back(step.id);
      } else if (byteFallback) {
        for (char c : text.substr(step.from, *end - step.from))
          ids.push_back(pieces.byteToken(static_cast<uint8_t>(c)));
      } else if (!afterUnknown) {
        // A run of unknown characters is one unknown token.
        ids.push_back(spec.unkId);
      }
      afterUnknown = step.id == kNoToken;
    }
  }

  std::string normalize(std::string_view text, bool spacePrefix) const {
    const std::string_view mark = "\xE2\x96\x81";
    bool prepend = spacePrefix && !spec.spaceAsSuffix;
    bool inWord = false, prepended = false;
    std::string out;
    out.reserve(text.size() + text.size() / 2 + 2 * mark.size());
    auto add = [&](std::string_view part) {
      for (char c : part) {
        if (c == ' ') {
          inWord = false;
          if (!spec.removeExtraSpaces)
            out.append(mark);
          continue;
        }
        if (!inWord) {
          inWord = true;
          if ((prepend && !prepended) || spec.removeExtraSpaces) {
            out.append(mark);
            prepended = true;
          }
        }
        out.push_back(c);
      }
    };

    while (!text.empty()) {
      size_t taken = 0;
      userDefined.eachPrefix(text,
                             [&](size_t length, int32_t) { taken = length; });
      if (taken) {
        add(text.substr(0, taken));
      } else if (auto match = charsmap.longestPrefix(text); match.length) {
        taken = match.length;
        add(match.replacement);
      } else if (Utf8Unit unit = readUtf8(text); unit.kind == Utf8Kind::Valid) {
        taken = unit.size;
        add(text.substr(0, taken));
      } else {
        // With byte pieces the byte can be kept, otherwise nobody could tell
        // it from any other.
        taken = 1;
        add(byteFallback ? text.substr(0, 1) : "\xEF\xBF\xBD");
      }
      text.remove_prefix(taken);
    }
    if (spacePrefix && spec.spaceAsSuffix)
      out.append(mark);
    return out;
  }

  const TokenizerSpec &spec;
  const PieceTable &pieces;
  Charsmap charsmap;
  TokenTrie tokens, userDefined;
  bool byteFallback;
  double unknownScore;
};

} // namespace

Result<std::unique_ptr<SegmentEncoder>> makeUnigram(const TokenizerSpec &spec,
                                                    const PieceTable &pieces) {
  auto charsmap = Charsmap::create(spec.charsmap);
  if (!charsmap)
    return failFrom(charsmap);
  return std::make_unique<Unigram>(spec, pieces, std::move(*charsmap));
}

} // namespace lathe::runtime
