#include "runtime/text/PreTokenizer.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <array>
#include <fmt/ranges.h>
#include <span>

namespace lathe::runtime {
namespace {

// White_Space of the Unicode standard. PCRE2's own \s also takes U+180E, which
// the model families' regular expressions do not.
#define SPACES "\\p{Z}\\x09-\\x0D\\x{85}"
#define CONTRACTION "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define WORD "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+"
#define SYMBOLS " ?[^" SPACES "\\p{L}\\p{N}]+"
#define SPACE_RUNS "[" SPACES "]+(?![^" SPACES "])|[" SPACES "]+"
#define LINES "[" SPACES "]*[\\r\\n]+|" SPACE_RUNS

constexpr const char *kGpt2 =
    "'(?:[stmd]|re|ve|ll)| ?\\p{L}+| ?\\p{N}+|" SYMBOLS "|" SPACE_RUNS;
constexpr const char *kDigit = "\\p{N}";

// Each family's patterns are applied one after the other, each inside the
// pieces of the one before. Matches and what lies between them become pieces.
constexpr std::array kGpt2Patterns{kGpt2};
constexpr std::array kSmollmPatterns{kDigit, kGpt2};
constexpr std::array kLlama3Patterns{
    CONTRACTION "|" WORD "|\\p{N}{1,3}|" SYMBOLS "[\\r\\n]*|" LINES};
constexpr std::array kQwen2Patterns{CONTRACTION "|" WORD "|\\p{N}|" SYMBOLS
                                                "[\\r\\n]*|" LINES};
constexpr std::array kQwen35Patterns{
    CONTRACTION "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^" SPACES
                "\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" LINES};
constexpr std::array kDefaultPatterns{"[\\p{P}$+<=>^~|]+", kGpt2, "\\p{N}+",
                                      "[0-9][0-9][0-9]"};

struct Family {
  std::string_view name;
  std::span<const char *const> patterns;
  bool ignoresMerges = false;
};

// The names are those that llama.cpp's converter writes.
constexpr Family kFamilies[] = {
    {"a.x-4.0", kGpt2Patterns},
    {"chatglm-bpe", kLlama3Patterns},
    {"codeshell", kSmollmPatterns},
    {"command-r", kSmollmPatterns},
    {"dbrx", kLlama3Patterns},
    {"deepseek-r1-qwen", kQwen2Patterns},
    {"default", kDefaultPatterns},
    {"exaone", kSmollmPatterns},
    {"exaone4", kGpt2Patterns},
    {"falcon-h1", kLlama3Patterns, true},
    {"falcon3", kLlama3Patterns, true},
    {"gigachat", kGpt2Patterns},
    {"glm4", kLlama3Patterns, true},
    {"gpt-2", kGpt2Patterns},
    {"grok-2", kQwen2Patterns},
    {"hunyuan", kQwen2Patterns},
    {"jais", kGpt2Patterns},
    {"kormo", kQwen2Patterns},
    {"lfm2", kLlama3Patterns, true},
    {"llama-bpe", kLlama3Patterns, true},
    {"llama-v3", kLlama3Patterns, true},
    {"llama3", kLlama3Patterns, true},
    {"megrez", kQwen2Patterns},
    {"mellum", kGpt2Patterns},
    {"midm-2.0", kLlama3Patterns, true},
    {"minerva-7b", kSmollmPatterns},
    {"mpt", kGpt2Patterns},
    {"olmo", kGpt2Patterns},
    {"phi-2", kGpt2Patterns},
    {"pixtral", kLlama3Patterns, true},
    {"qwen2", kQwen2Patterns},
    {"qwen35", kQwen35Patterns},
    {"refact", kSmollmPatterns},
    {"smaug-bpe", kLlama3Patterns},
    {"smollm", kSmollmPatterns},
    {"stablelm2", kQwen2Patterns},
    {"starcoder", kSmollmPatterns},
    {"trillion", kGpt2Patterns},
};

std::string messageOf(int code) {
  std::array<char, 256> text{};
  pcre2_get_error_message(code, reinterpret_cast<PCRE2_UCHAR *>(text.data()),
                          text.size());
  return text.data();
}

struct MatchDataDeleter {
  void operator()(pcre2_match_data *data) const { pcre2_match_data_free(data); }
};

} // namespace

struct PreTokenizer::Pattern {
  explicit Pattern(pcre2_code *code) : code(code) {}
  Pattern(const Pattern &) = delete;
  Pattern &operator=(const Pattern &) = delete;
  ~Pattern() { pcre2_code_free(code); }

  Result<void> split(std::string_view text, uint32_t offset,
                     std::vector<uint32_t> &ends) const;

  pcre2_code *code;
};

Result<PreTokenizer> PreTokenizer::create(std::string_view name) {
  const Family *family = std::ranges::find(kFamilies, name, &Family::name);
  if (family == std::end(kFamilies))
    return fail(ErrorKind::Unsupported,
                "tokenizer: unknown pre-tokenizer '{}'; known are {}", name,
                fmt::join(knownNames(), ", "));

  PreTokenizer result;
  result.takesWholeTokens = family->ignoresMerges;
  for (const char *source : family->patterns) {
    int error = 0;
    PCRE2_SIZE at = 0;
    pcre2_code *code = pcre2_compile(
        reinterpret_cast<PCRE2_SPTR>(source), PCRE2_ZERO_TERMINATED,
        PCRE2_UTF | PCRE2_UCP, &error, &at, nullptr);
    if (!code)
      return fail(ErrorKind::Internal,
                  "tokenizer: pattern of pre-tokenizer '{}', column {}: {}",
                  name, at, messageOf(error));
    result.patterns.push_back(std::make_shared<Pattern>(code));
    // Without JIT (a hardened kernel may forbid it) the interpreter matches
    // the same, only slower.
    pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
  }
  return result;
}

std::vector<std::string> PreTokenizer::knownNames() {
  std::vector<std::string> names;
  for (const Family &family : kFamilies)
    names.emplace_back(family.name);
  return names;
}

Result<void> PreTokenizer::Pattern::split(std::string_view text,
                                          uint32_t offset,
                                          std::vector<uint32_t> &ends) const {
  std::unique_ptr<pcre2_match_data, MatchDataDeleter> match(
      pcre2_match_data_create(1, nullptr));
  if (!match)
    return fail(ErrorKind::Exhausted, "tokenizer: out of memory");
  auto subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  size_t done = 0;
  while (done < text.size()) {
    int code = pcre2_match(this->code, subject, text.size(), done,
                           PCRE2_NO_UTF_CHECK, match.get(), nullptr);
    // JIT has a small fixed stack; the interpreter keeps its state on the heap.
    if (code == PCRE2_ERROR_JIT_STACKLIMIT)
      code =
          pcre2_match(this->code, subject, text.size(), done,
                      PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, match.get(), nullptr);
    if (code == PCRE2_ERROR_NOMATCH)
      break;
    if (code < 0)
      return fail(ErrorKind::Exhausted, "tokenizer: splitting the text: {}",
                  messageOf(code));
    const PCRE2_SIZE *range = pcre2_get_ovector_pointer(match.get());
    if (range[0] > done)
      ends.push_back(static_cast<uint32_t>(offset + range[0]));
    ends.push_back(static_cast<uint32_t>(offset + range[1]));
    done = range[1];
  }
  if (done < text.size())
    ends.push_back(static_cast<uint32_t>(offset + text.size()));
  return {};
}

Result<void> PreTokenizer::split(std::string_view text,
                                 std::vector<uint32_t> &ends) const {
  if (text.empty())
    return {};
  std::vector<uint32_t> outer{static_cast<uint32_t>(text.size())};
  for (const auto &pattern : patterns) {
    std::vector<uint32_t> inner;
    inner.reserve(outer.size());
    uint32_t begin = 0;
    for (uint32_t end : outer) {
      if (auto r =
              pattern->split(text.substr(begin, end - begin), begin, inner);
          !r)
        return r;
      begin = end;
    }
    outer = std::move(inner);
  }
  ends.insert(ends.end(), outer.begin(), outer.end());
  return {};
}

} // namespace lathe::runtime
