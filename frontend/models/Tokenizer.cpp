#include "frontend/models/Tokenizer.h"

#include "runtime/text/PieceTable.h"
#include "runtime/text/PreTokenizer.h"

#include <algorithm>
#include <array>
#include <set>
#include <unordered_map>

namespace lathe::frontend {
namespace {

using runtime::ErrorKind;
using runtime::fail;
using runtime::failFrom;
using runtime::kNoToken;
using runtime::Result;
using runtime::TokenizerModel;
using runtime::TokenizerSpec;
using runtime::TokenType;

// Texts by which tokens are known that files do not name by key, from
// llama.cpp's vocabulary loader. The first that exists is the one.
constexpr std::string_view kEndOfTurn[] = {
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "<｜end▁of▁sentence｜>",
    "<end_of_utterance>",
};
constexpr std::string_view kEndOfMessage[] = {"<|eom_id|>"};
// Code models are trained to write these where an answer ends.
constexpr std::string_view kFillPad[] = {"<|fim_pad|>", "<fim-pad>",
                                         "<fim_pad>", "<PAD>", "[PAD]"};
constexpr std::string_view kFillRepository[] = {
    "<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"};
constexpr std::string_view kFillFile[] = {"<|file_sep|>"};
// These end generation besides all of the above.
constexpr std::string_view kOtherEnds[] = {"</s>", "[EOS]", "<eos>"};

// Families whose texts begin with BOS if the file does not say.
constexpr std::string_view kBeginWithBos[] = {"falcon-h1", "falcon3",  "lfm2",
                                              "llama-bpe", "llama-v3", "llama3",
                                              "midm-2.0",  "pixtral"};

class Reader {
public:
  explicit Reader(const GgufFile &file) : file_(file) {}

  Result<TokenizerSpec> read() {
    auto done = readModel()
                    .and_then([&] { return readArrays(); })
                    .and_then([&] { return readIds(); })
                    .and_then([&] { return readFlags(); });
    if (!done)
      return failFrom(done);
    if (spec_.types.empty())
      inferTypes();
    nameEnds();
    return std::move(spec_);
  }

private:
  Result<void> readModel() {
    auto model = file_.getString("tokenizer.ggml.model");
    if (!model)
      return failFrom(model);
    if (*model == "gpt2")
      spec_.model = TokenizerModel::ByteLevelBpe;
    else if (*model == "llama")
      spec_.model = TokenizerModel::SentencePieceBpe;
    else if (*model == "t5")
      spec_.model = TokenizerModel::Unigram;
    else
      return fail(ErrorKind::Unsupported,
                  "{}: tokenizer.ggml.model is '{}'; known are gpt2, llama, t5",
                  file_.path(), *model);
    if (spec_.model != TokenizerModel::ByteLevelBpe)
      return {};
    auto pre = file_.getString("tokenizer.ggml.pre");
    if (!pre)
      return failFrom(pre);
    spec_.preTokenizer = *pre;
    auto known = runtime::PreTokenizer::create(*pre);
    if (!known)
      return failFrom(known, file_.path() + ": tokenizer.ggml.pre");
    return {};
  }

  Result<void> readArrays() {
    auto tokens = file_.getStringArray("tokenizer.ggml.tokens");
    if (!tokens)
      return failFrom(tokens);
    if (tokens->empty())
      return fail(ErrorKind::InvalidInput, "{}: tokenizer.ggml.tokens is empty",
                  file_.path());
    spec_.tokens.assign(tokens->begin(), tokens->end());
    if (spec_.model == TokenizerModel::ByteLevelBpe) {
      auto merges = file_.getStringArray("tokenizer.ggml.merges");
      if (!merges)
        return failFrom(merges);
      spec_.merges.assign(merges->begin(), merges->end());
    } else {
      auto scores = file_.getF32Array("tokenizer.ggml.scores");
      if (!scores)
        return failFrom(scores);
      spec_.scores = std::move(*scores);
      if (auto r = checkLength("scores", spec_.scores.size()); !r)
        return r;
    }
    if (file_.has("tokenizer.ggml.token_type")) {
      auto types = file_.getI32Array("tokenizer.ggml.token_type");
      if (!types)
        return failFrom(types);
      if (auto r = checkLength("token_type", types->size()); !r)
        return r;
      for (size_t id = 0; id < types->size(); ++id) {
        int32_t type = (*types)[id];
        if (type < 0 || type > static_cast<int32_t>(TokenType::Byte))
          return fail(ErrorKind::InvalidInput,
                      "{}: tokenizer.ggml.token_type of token {} is {}",
                      file_.path(), id, type);
        spec_.types.push_back(static_cast<TokenType>(type));
      }
    }
    if (const GgufValue *map =
            file_.find("tokenizer.ggml.precompiled_charsmap")) {
      if (map->type != GgufType::Array || (map->elementType != GgufType::U8 &&
                                           map->elementType != GgufType::I8))
        return fail(ErrorKind::InvalidInput,
                    "{}: tokenizer.ggml.precompiled_charsmap is {}, not an "
                    "array of bytes",
                    file_.path(), describeType(*map));
      spec_.charsmap.assign(map->bytes.begin(), map->bytes.end());
    }
    return {};
  }

  Result<void> checkLength(const char *key, size_t length) {
    if (length == spec_.tokens.size())
      return {};
    return fail(ErrorKind::InvalidInput,
                "{}: tokenizer.ggml.{} has {} entries for {} tokens",
                file_.path(), key, length, spec_.tokens.size());
  }

  /// Reads "tokenizer.ggml.NAME_token_id" if it is there.
  Result<void> readId(const char *name, int32_t &id) {
    std::string key = std::string("tokenizer.ggml.") + name + "_token_id";
    if (!file_.has(key))
      return {};
    auto value = file_.getU32(key);
    if (!value)
      return failFrom(value);
    if (*value >= spec_.tokens.size())
      return fail(ErrorKind::InvalidInput,
                  "{}: {} is {}, outside the vocabulary of {} tokens",
                  file_.path(), key, *value, spec_.tokens.size());
    id = static_cast<int32_t>(*value);
    return {};
  }

  Result<void> readIds() {
    if (spec_.model == TokenizerModel::SentencePieceBpe) {
      spec_.unkId = 0;
      spec_.bosId = ifToken(1);
      spec_.eosId = ifToken(2);
    } else if (spec_.model == TokenizerModel::Unigram) {
      spec_.padId = 0;
      spec_.eosId = ifToken(1);
      spec_.unkId = ifToken(2);
    }
    return readId("bos", spec_.bosId)
        .and_then([&] { return readId("eos", spec_.eosId); })
        .and_then([&] { return readId("eot", spec_.eotId); })
        .and_then([&] { return readId("eom", spec_.eomId); })
        .and_then([&] { return readId("unknown", spec_.unkId); })
        .and_then([&] { return readId("padding", spec_.padId); })
        .and_then([&] { return readId("fim_pad", fillPad_); })
        .and_then([&] { return readId("fim_rep", fillRepository_); })
        .and_then([&] { return readId("fim_sep", fillFile_); });
  }

  int32_t ifToken(int32_t id) const {
    return static_cast<size_t>(id) < spec_.tokens.size() ? id : kNoToken;
  }

  Result<void> readFlags() {
    bool pieces = spec_.model == TokenizerModel::SentencePieceBpe;
    bool unigram = spec_.model == TokenizerModel::Unigram;
    bool family = std::ranges::find(kBeginWithBos, spec_.preTokenizer) !=
                  std::end(kBeginWithBos);
    struct Flag {
      const char *key;
      bool fallback;
      bool &value;
    };
    const Flag flags[] = {
        {"add_bos_token", (pieces || family) && spec_.bosId != kNoToken,
         spec_.addBos},
        {"add_eos_token", unigram && spec_.eosId != kNoToken, spec_.addEos},
        {"add_space_prefix", pieces, spec_.addSpacePrefix},
        {"remove_extra_whitespaces", false, spec_.removeExtraSpaces},
    };
    for (const Flag &flag : flags) {
      auto value = file_.getBool(std::string("tokenizer.ggml.") + flag.key,
                                 flag.fallback);
      if (!value)
        return failFrom(value);
      flag.value = *value;
    }
    // Byte-level BPE has no such prefix; some files state the key all the same.
    if (spec_.model == TokenizerModel::ByteLevelBpe)
      spec_.addSpacePrefix = false;
    auto chat = file_.getString("tokenizer.chat_template", "");
    if (!chat)
      return failFrom(chat);
    spec_.chatTemplate = *chat;
    return {};
  }

  void inferTypes() {
    spec_.types.assign(spec_.tokens.size(), TokenType::Normal);
    if (spec_.model == TokenizerModel::ByteLevelBpe)
      return;
    for (size_t id = 0; id < spec_.tokens.size(); ++id)
      if (runtime::byteNamedBy(spec_.tokens[id]) >= 0)
        spec_.types[id] = TokenType::Byte;
    if (spec_.unkId != kNoToken)
      spec_.types[spec_.unkId] = TokenType::Unknown;
  }

  /// Finds the tokens that end generation and makes all of them control tokens.
  void nameEnds() {
    // Only texts that look like markers are worth a place in the map.
    for (size_t id = 0; id < spec_.tokens.size(); ++id) {
      std::string_view text = spec_.tokens[id];
      if (text.size() <= 32 && (text.ends_with('>') || text.ends_with(']')))
        byText_.try_emplace(text, static_cast<int32_t>(id));
    }
    // What merges yield is ordinary text: Qwen2 has "</s>" as a tag of HTML.
    for (std::string joined : spec_.merges)
      if (joined.ends_with('>') || joined.ends_with(']')) {
        std::erase(joined, ' ');
        byText_.erase(joined);
      }
    std::set<int32_t> ends;
    auto resolve = [&](int32_t &id, std::span<const std::string_view> names) {
      for (std::string_view name : names)
        if (id == kNoToken)
          id = idOf(name);
      ends.insert(id);
    };
    resolve(spec_.eotId, kEndOfTurn);
    resolve(spec_.eomId, kEndOfMessage);
    resolve(fillPad_, kFillPad);
    resolve(fillRepository_, kFillRepository);
    resolve(fillFile_, kFillFile);
    ends.insert(spec_.eosId);
    for (std::string_view name : kEndOfTurn)
      ends.insert(idOf(name));
    for (std::string_view name : kOtherEnds) {
      int32_t id = idOf(name);
      // Gemma has "</s>" as a tag of HTML among its user-defined tokens.
      if (id != kNoToken && spec_.types[id] != TokenType::UserDefined)
        ends.insert(id);
    }
    ends.erase(kNoToken);
    spec_.endIds.assign(ends.begin(), ends.end());
    for (int32_t id : spec_.endIds)
      spec_.types[id] = TokenType::Control;
    if (spec_.bosId != kNoToken)
      spec_.types[spec_.bosId] = TokenType::Control;
  }

  int32_t idOf(std::string_view text) const {
    auto at = byText_.find(text);
    return at == byText_.end() ? kNoToken : at->second;
  }

  const GgufFile &file_;
  TokenizerSpec spec_;
  int32_t fillPad_ = kNoToken, fillRepository_ = kNoToken, fillFile_ = kNoToken;
  std::unordered_map<std::string_view, int32_t> byText_;
};

} // namespace

Result<TokenizerSpec> readTokenizer(const GgufFile &file) {
  return Reader(file).read();
}

} // namespace lathe::frontend
