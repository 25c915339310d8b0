#include "runtime/text/Tokenizer.h"

#include "runtime/text/PieceTable.h"
#include "runtime/text/SegmentEncoder.h"
#include "runtime/text/SpecialTokens.h"
#include "runtime/text/StreamDecoder.h"
#include "runtime/text/TextIndex.h"

#include <algorithm>
#include <cmath>

namespace lathe::runtime {

struct Tokenizer::Parts {
  Parts(TokenizerSpec spec, PieceTable pieces)
      : spec(std::move(spec)), pieces(std::move(pieces)), specials(this->spec) {
    ends = this->spec.endIds;
    std::ranges::sort(ends);
  }

  bool has(int32_t id) const {
    return id >= 0 && static_cast<size_t>(id) < spec.tokens.size();
  }

  /// Encodes with control tokens inside the trusted ranges.
  Result<std::vector<int32_t>>
  encode(std::string_view text,
         std::span<const SpecialTokens::Range> trusted) const {
    if (text.size() > kMaxTextBytes)
      return fail(ErrorKind::Exhausted,
                  "tokenizer: a text of {} bytes; the limit is {}", text.size(),
                  kMaxTextBytes);
    std::vector<int32_t> ids;
    for (const auto &[range, id] : specials.cut(text, trusted)) {
      if (id != kNoToken) {
        ids.push_back(id);
        continue;
      }
      bool prefix = spec.addSpacePrefix &&
                    (spec.spacePrefixAfterSpecial || range.begin == 0);
      auto part = text.substr(range.begin, range.end - range.begin);
      if (auto r = encoder->encode(part, prefix, ids); !r)
        return failFrom(r);
    }
    return ids;
  }

  TokenizerSpec spec;
  PieceTable pieces;
  SpecialTokens specials;
  std::vector<int32_t> ends;
  std::unique_ptr<SegmentEncoder> encoder; ///< Refers to spec and pieces.
};

static_assert(Tokenizer::kMaxTokens <= TextIndex::kMaxIds &&
              Tokenizer::kMaxTokenBytes <= TextIndex::kMaxTextBytes);

namespace {

/// Checks lengths and limits of the arrays.
Result<void> checkArrays(const TokenizerSpec &spec) {
  size_t count = spec.tokens.size();
  if (count == 0)
    return fail(ErrorKind::InvalidInput, "tokenizer: the vocabulary is empty");
  if (count > Tokenizer::kMaxTokens)
    return fail(ErrorKind::InvalidInput,
                "tokenizer: {} tokens; the limit is {}", count,
                Tokenizer::kMaxTokens);
  size_t bytes = 0;
  for (size_t id = 0; id < count; ++id) {
    if (spec.tokens[id].size() > Tokenizer::kMaxTokenBytes)
      return fail(ErrorKind::InvalidInput,
                  "tokenizer: token {} has {} bytes; the limit is {}", id,
                  spec.tokens[id].size(), Tokenizer::kMaxTokenBytes);
    bytes += spec.tokens[id].size();
  }
  if (bytes > Tokenizer::kMaxVocabularyBytes)
    return fail(ErrorKind::InvalidInput,
                "tokenizer: {} bytes of tokens; the limit is {}", bytes,
                Tokenizer::kMaxVocabularyBytes);
  if (!spec.types.empty() && spec.types.size() != count)
    return fail(ErrorKind::InvalidInput,
                "tokenizer: {} tokens but {} token types", count,
                spec.types.size());
  for (size_t id = 0; id < spec.types.size(); ++id)
    if (spec.types[id] > TokenType::Byte)
      return fail(ErrorKind::InvalidInput,
                  "tokenizer: token {} has the unknown type {}", id,
                  static_cast<int>(spec.types[id]));
  bool scored = spec.model != TokenizerModel::ByteLevelBpe;
  if (spec.scores.size() != count && (scored || !spec.scores.empty()))
    return fail(ErrorKind::InvalidInput, "tokenizer: {} tokens but {} scores",
                count, spec.scores.size());
  for (size_t id = 0; id < spec.scores.size(); ++id)
    if (!std::isfinite(spec.scores[id]))
      return fail(ErrorKind::InvalidInput,
                  "tokenizer: the score of token {} is not a finite number",
                  id);
  if (scored && !spec.merges.empty())
    return fail(ErrorKind::InvalidInput,
                "tokenizer: merges belong to byte-level BPE only");
  if (spec.merges.size() > Tokenizer::kMaxTokens)
    return fail(ErrorKind::InvalidInput,
                "tokenizer: {} merges; the limit is {}", spec.merges.size(),
                Tokenizer::kMaxTokens);
  return {};
}

/// Checks the ids of special tokens.
Result<void> checkIds(const TokenizerSpec &spec) {
  auto inRange = [&](int32_t id) {
    return id >= 0 && static_cast<size_t>(id) < spec.tokens.size();
  };
  const std::pair<const char *, int32_t> named[] = {
      {"begin (BOS)", spec.bosId}, {"end (EOS)", spec.eosId},
      {"end-of-turn", spec.eotId}, {"end-of-message", spec.eomId},
      {"unknown", spec.unkId},     {"padding", spec.padId}};
  for (auto [name, id] : named)
    if (id != kNoToken && !inRange(id))
      return fail(ErrorKind::InvalidInput,
                  "tokenizer: the {} token is {}, outside the vocabulary of "
                  "{} tokens",
                  name, id, spec.tokens.size());
  for (int32_t id : spec.endIds)
    if (!inRange(id))
      return fail(ErrorKind::InvalidInput,
                  "tokenizer: {} is listed as ending generation, outside the "
                  "vocabulary of {} tokens",
                  id, spec.tokens.size());
  if (spec.addBos && spec.bosId == kNoToken)
    return fail(ErrorKind::InvalidInput,
                "tokenizer: a begin token is to be added but there is none");
  if (spec.addEos && spec.eosId == kNoToken)
    return fail(ErrorKind::InvalidInput,
                "tokenizer: an end token is to be added but there is none");
  return {};
}

} // namespace

Tokenizer::Tokenizer(std::shared_ptr<const Parts> parts)
    : parts(std::move(parts)) {}

Result<Tokenizer> Tokenizer::create(TokenizerSpec spec) {
  if (auto r = checkArrays(spec); !r)
    return failFrom(r);
  if (auto r = checkIds(spec); !r)
    return failFrom(r);
  auto pieces = PieceTable::create(spec);
  if (!pieces)
    return failFrom(pieces);
  if (spec.model != TokenizerModel::ByteLevelBpe && spec.unkId == kNoToken &&
      !pieces->hasAllBytes())
    return fail(ErrorKind::InvalidInput,
                "tokenizer: the vocabulary has neither a token for every byte "
                "nor an unknown token");

  auto parts = std::make_shared<Parts>(std::move(spec), std::move(*pieces));
  switch (parts->spec.model) {
  case TokenizerModel::ByteLevelBpe: {
    auto encoder = makeByteLevelBpe(parts->spec, parts->pieces);
    if (!encoder)
      return failFrom(encoder);
    parts->encoder = std::move(*encoder);
    break;
  }
  case TokenizerModel::SentencePieceBpe:
    parts->encoder = makeSentencePieceBpe(parts->spec, parts->pieces);
    break;
  case TokenizerModel::Unigram: {
    auto encoder = makeUnigram(parts->spec, parts->pieces);
    if (!encoder)
      return failFrom(encoder);
    parts->encoder = std::move(*encoder);
    break;
  }
  default:
    return fail(ErrorKind::InvalidInput, "tokenizer: unknown model kind {}",
                static_cast<int>(parts->spec.model));
  }
  return Tokenizer(std::move(parts));
}

Result<std::vector<int32_t>> Tokenizer::encode(std::string_view text,
                                               EncodeOptions options) const {
  SpecialTokens::Range whole{0, text.size()};
  auto ids =
      parts->encode(text, {&whole, options.parseSpecial ? size_t{1} : 0});
  if (!ids || !options.addSpecial)
    return ids;
  const TokenizerSpec &spec = parts->spec;
  if (spec.addBos && (ids->empty() || ids->front() != spec.bosId))
    ids->insert(ids->begin(), spec.bosId);
  // The end of an empty text is not the begin token, even if they are one.
  bool onlyBos = ids->size() == 1 && spec.addBos && text.empty();
  if (spec.addEos && (ids->empty() || onlyBos || ids->back() != spec.eosId))
    ids->push_back(spec.eosId);
  return ids;
}

Result<std::vector<int32_t>>
Tokenizer::encodeSegments(std::span<const PromptSegment> segments) const {
  std::string text;
  std::vector<SpecialTokens::Range> trusted;
  for (const PromptSegment &segment : segments) {
    size_t begin = text.size();
    text += segment.text;
    if (!segment.trusted)
      continue;
    // Neighbours become one range: a template may print a marker in parts.
    if (!trusted.empty() && trusted.back().end == begin)
      trusted.back().end = text.size();
    else
      trusted.push_back({begin, text.size()});
  }
  return parts->encode(text, trusted);
}

std::string Tokenizer::decode(std::span<const int32_t> ids,
                              DecodeOptions options) const {
  std::string text;
  StreamDecoder decoder(*this, options);
  for (int32_t id : ids)
    decoder.push(id, text);
  decoder.flush(text);
  return text;
}

std::string Tokenizer::decodeBytes(std::span<const int32_t> ids,
                                   DecodeOptions options) const {
  std::string bytes;
  StreamDecoder decoder(*this, options);
  for (int32_t id : ids)
    decoder.appendBytes(id, bytes);
  return bytes;
}

std::string_view Tokenizer::tokenBytes(int32_t id) const {
  return parts->has(id) ? parts->pieces[id] : std::string_view{};
}

bool Tokenizer::isSpecial(int32_t id) const {
  if (!parts->has(id))
    return false;
  TokenType type = typeOf(parts->spec, id);
  return type == TokenType::Control || type == TokenType::Unknown;
}

bool Tokenizer::isUserDefined(int32_t id) const {
  return parts->has(id) && typeOf(parts->spec, id) == TokenType::UserDefined;
}

bool Tokenizer::isEnd(int32_t id) const {
  return std::ranges::binary_search(parts->ends, id);
}

bool Tokenizer::spellsBos(std::string_view text) const {
  const TokenizerSpec &spec = parts->spec;
  if (!spec.addBos)
    return false;
  const std::string &bos = spec.tokens[spec.bosId];
  SpecialTokens::Range start{0, std::min(text.size(), 2 * kMaxTokenBytes)};
  auto fragments = parts->specials.cut(text.substr(0, start.end), {&start, 1});
  return !bos.empty() && !fragments.empty() && fragments[0].id == spec.bosId;
}

std::optional<int32_t> Tokenizer::findSpecial(std::string_view text) const {
  return parts->specials.find(text);
}

int32_t Tokenizer::vocabularySize() const {
  return static_cast<int32_t>(parts->spec.tokens.size());
}

const TokenizerSpec &Tokenizer::spec() const { return parts->spec; }

} // namespace lathe::runtime
