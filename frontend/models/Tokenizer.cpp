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
  explicit Reader(const GgufFile &file) : file(file) {}

  Result<TokenizerSpec> read() {
    auto done = readModel()
                    .and_then([&] { return readArrays(); })
                    .and_then([&] { return readIds(); })
                    .and_then([&] { return readFlags(); });
    if (!done)
      return failFrom(done);
    if (spec.types.empty())
      inferTypes();
    nameEnds();
    return std::move(spec);
  }

private:
  Result<void> readModel() {
    auto model = file.getString("tokenizer.ggml.model");
    if (!model)
      return failFrom(model);
    if (*model == "gpt2")
      spec.model = TokenizerModel::ByteLevelBpe;
    else if (*model == "llama")
      spec.model = TokenizerModel::SentencePieceBpe;
    else if (*model == "t5")
      spec.model = TokenizerModel::Unigram;
    else
      return fail(ErrorKind::Unsupported,
                  "{}: tokenizer.ggml.model is '{}'; known are gpt2, llama, t5",
                  file.path(), *model);
    if (spec.model != TokenizerModel::ByteLevelBpe)
      return {};
    auto pre = file.getString("tokenizer.ggml.pre");
    if (!pre)
      return failFrom(pre);
    spec.preTokenizer = *pre;
    auto known = runtime::PreTokenizer::create(*pre);
    if (!known)
      return failFrom(known, file.path() + ": tokenizer.ggml.pre");
    return {};
  }

  Result<void> readArrays() {
    auto tokens = file.getStringArray("tokenizer.ggml.tokens");
    if (!tokens)
      return failFrom(tokens);
    if (tokens->empty())
      return fail(ErrorKind::InvalidInput, "{}: tokenizer.ggml.tokens is empty",
                  file.path());
    spec.tokens.assign(tokens->begin(), tokens->end());
    if (spec.model == TokenizerModel::ByteLevelBpe) {
      auto merges = file.getStringArray("tokenizer.ggml.merges");
      if (!merges)
        return failFrom(merges);
      spec.merges.assign(merges->begin(), merges->end());
    } else {
      auto scores = file.getF32Array("tokenizer.ggml.scores");
      if (!scores)
        return failFrom(scores);
      spec.scores = std::move(*scores);
      if (auto r = checkLength("scores", spec.scores.size()); !r)
        return r;
    }
    if (file.has("tokenizer.ggml.token_type")) {
      auto types = file.getI32Array("tokenizer.ggml.token_type");
      if (!types)
        return failFrom(types);
      if (auto r = checkLength("token_type", types->size()); !r)
        return r;
      for (size_t id = 0; id < types->size(); ++id) {
        int32_t type = (*types)[id];
        if (type < 0 || type > static_cast<int32_t>(TokenType::Byte))
          return fail(ErrorKind::InvalidInput,
                      "{}: tokenizer.ggml.token_type of token {} is {}",
                      file.path(), id, type);
        spec.types.push_back(static_cast<TokenType>(type));
      }
    }
    if (const GgufValue *map =
            file.find("tokenizer.ggml.precompiled_charsmap")) {
      if (map->type != GgufType::Array || (map->elementType != GgufType::U8 &&
                                           map->elementType != GgufType::I8))
        return fail(ErrorKind::InvalidInput,
                    "{}: tokenizer.ggml.precompiled_charsmap is {}, not an "
                    "array of bytes",
                    file.path(), describeType(*map));
      spec.charsmap.assign(map->bytes.begin(), map->bytes.end());
    }
    return {};
  }

  Result<void> checkLength(const char *key, size_t length) {
    if (length == spec.tokens.size())
      return {};
    return fail(ErrorKind::InvalidInput,
                "{}: tokenizer.ggml.{} has {} entries for {} tokens",
                file.path(), key, length, spec.tokens.size());
  }

  /// Reads "tokenizer.ggml.NAME_token_id" if it is there.
  Result<void> readId(const char *name, int32_t &id) {
    std::string key = std::string("tokenizer.ggml.") + name + "_token_id";
    if (!file.has(key))
      return {};
    auto value = file.getU32(key);
    if (!value)
      return failFrom(value);
    if (*value >= spec.tokens.size())
      return fail(ErrorKind::InvalidInput,
                  "{}: {} is {}, outside the vocabulary of {} tokens",
                  file.path(), key, *value, spec.tokens.size());
    id = static_cast<int32_t>(*value);
    return {};
  }

  Result<void> readIds() {
    if (spec.model == TokenizerModel::SentencePieceBpe) {
      spec.unkId = 0;
      spec.bosId = ifToken(1);
      spec.eosId = ifToken(2);
    } else if (spec.model == TokenizerModel::Unigram) {
      spec.padId = 0;
      spec.eosId = ifToken(1);
      spec.unkId = ifToken(2);
    }
    return readId("bos", spec.bosId)
        .and_then([&] { return readId("eos", spec.eosId); })
        .and_then([&] { return readId("eot", spec.eotId); })
        .and_then([&] { return readId("eom", spec.eomId); })
        .and_then([&] { return readId("unknown", spec.unkId); })
        .and_then([&] { return readId("padding", spec.padId); })
        .and_then([&] { return readId("fim_pad", fillPad); })
        .and_then([&] { return readId("fim_rep", fillRepository); })
        .and_then([&] { return readId("fim_sep", fillFile); });
  }

  int32_t ifToken(int32_t id) const {
    return static_cast<size_t>(id) < spec.tokens.size() ? id : kNoToken;
  }

  Result<void> readFlags() {
    bool pieces = spec.model == TokenizerModel::SentencePieceBpe;
    bool unigram = spec.model == TokenizerModel::Unigram;
    bool family = std::ranges::find(kBeginWithBos, spec.preTokenizer) !=
                  std::end(kBeginWithBos);
    struct Flag {
      const char *key;
      bool fallback;
      bool &value;
    };
    const Flag flags[] = {
        {"add_bos_token", (pieces || family) && spec.bosId != kNoToken,
         spec.addBos},
        {"add_eos_token", unigram && spec.eosId != kNoToken, spec.addEos},
        {"add_space_prefix", pieces, spec.addSpacePrefix},
        {"remove_extra_whitespaces", false, spec.removeExtraSpaces},
    };
    for (const Flag &flag : flags) {
      auto value = file.getBool(std::string("tokenizer.ggml.") + flag.key,
                                flag.fallback);
      if (!value)
        return failFrom(value);
      flag.value = *value;
    }
    // Byte-level BPE has no such prefix; some files state the key all the same.
    if (spec.model == TokenizerModel::ByteLevelBpe)
      spec.addSpacePrefix = false;
    auto chat = file.getString("tokenizer.chat_template", "");
    if (!chat)
      return failFrom(chat);
    spec.chatTemplate = *chat;
    return {};
  }

  void inferTypes() {
    spec.types.assign(spec.tokens.size(), TokenType::Normal);
    if (spec.model == TokenizerModel::ByteLevelBpe)
      return;
    for (size_t id = 0; id < spec.tokens.size(); ++id)
      if (runtime::byteNamedBy(spec.tokens[id]) >= 0)
        spec.types[id] = TokenType::Byte;
    if (spec.unkId != kNoToken)
      spec.types[spec.unkId] = TokenType::Unknown;
  }

  /// Finds the tokens that end generation and makes all of them control tokens.
  void nameEnds() {
    // Only texts that look like markers are worth a place in the map.
    for (size_t id = 0; id < spec.tokens.size(); ++id) {
      std::string_view text = spec.tokens[id];
      if (text.size() <= 32 && (text.ends_with('>') || text.ends_with(']')))
        byText.try_emplace(text, static_cast<int32_t>(id));
    }
    // What merges yield is ordinary text: Qwen2 has "</s>" as a tag of HTML.
    for (const std::string &merge : spec.merges)
      if (merge.ends_with('>') || merge.ends_with(']')) {
        std::string joined = merge;
        std::erase(joined, ' ');
        byText.erase(joined);
      }
    std::set<int32_t> ends;
    auto resolve = [&](int32_t &id, std::span<const std::string_view> names) {
      for (std::string_view name : names)
        if (id == kNoToken)
          id = idOf(name);
      ends.insert(id);
    };
    resolve(spec.eotId, kEndOfTurn);
    resolve(spec.eomId, kEndOfMessage);
    resolve(fillPad, kFillPad);
    resolve(fillRepository, kFillRepository);
    resolve(fillFile, kFillFile);
    ends.insert(spec.eosId);
    for (std::string_view name : kEndOfTurn)
      ends.insert(idOf(name));
    for (std::string_view name : kOtherEnds) {
      int32_t id = idOf(name);
      // Gemma has "</s>" as a tag of HTML among its user-defined tokens.
      if (id != kNoToken && spec.types[id] != TokenType::UserDefined)
        ends.insert(id);
    }
    ends.erase(kNoToken);
    spec.endIds.assign(ends.begin(), ends.end());
    for (int32_t id : spec.endIds)
      spec.types[id] = TokenType::Control;
    if (spec.bosId != kNoToken)
      spec.types[spec.bosId] = TokenType::Control;
  }

  int32_t idOf(std::string_view text) const {
    auto at = byText.find(text);
    return at == byText.end() ? kNoToken : at->second;
  }

  const GgufFile &file;
  TokenizerSpec spec;
  int32_t fillPad = kNoToken, fillRepository = kNoToken, fillFile = kNoToken;
  std::unordered_map<std::string_view, int32_t> byText;
};

} // namespace

Result<TokenizerSpec> readTokenizer(const GgufFile &file) {
  return Reader(file).read();
}

} // namespace lathe::frontend
