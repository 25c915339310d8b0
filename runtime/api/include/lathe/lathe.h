/// \file
/// Lathe's C++ interface: open an engine, talk to it.
///
///     auto model = lathe::Model::open("smollm2.lathe");
///     if (!model)
///       return report(model.error());
///     auto session = lathe::Session::create(*model);
///     auto answer = session->chat({{"user", "What is a lathe?"}});
///
/// Needs C++17 and only the standard library. Link `Lathe::lathe` after
/// `find_package(Lathe)`. No function throws; what can fail returns a
/// lathe::Result. Callbacks must not throw.
#ifndef LATHE_LATHE_H
#define LATHE_LATHE_H

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#define LATHE_API __attribute__((visibility("default")))

namespace lathe {

/// The library's version, "0.1.0".
LATHE_API const char *version() noexcept;

/// What kind of thing went wrong.
enum class ErrorCode {
  InvalidInput, ///< A file, an option or a prompt is malformed or too long.
  NotFound,     ///< A file or a part of it does not exist.
  Unsupported,  ///< Well formed, but outside what Lathe can do.
  Exhausted,    ///< Memory or another budget is too small.
  Environment,  ///< The machine lacks something: a CPU feature, a right.
  Untrusted,    ///< Code whose origin the user has not accepted.
  Internal,     ///< A bug in Lathe, or damaged weights.
};

/// One message for a person: what was wrong, where, and what to do.
struct Error {
  ErrorCode code = ErrorCode::Internal;
  std::string message;
};

/// A value, or the Error that says why there is none. `*` and `->` are only
/// for a value, error() only for an error.
template <typename T> class Result {
public:
  Result(T value) : state(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state(std::in_place_index<1>, std::move(error)) {}

  explicit operator bool() const { return state.index() == 0; }
  T &operator*() { return *std::get_if<0>(&state); }
  const T &operator*() const { return *std::get_if<0>(&state); }
  T *operator->() { return std::get_if<0>(&state); }
  const T *operator->() const { return std::get_if<0>(&state); }
  const Error &error() const { return *std::get_if<1>(&state); }

private:
  std::variant<T, Error> state;
};

/// A token id of a model's vocabulary.
using Token = std::int32_t;

/// One turn of a conversation.
struct Message {
  std::string role; ///< "system", "user", "assistant"; the model decides.
  std::string content;
};

struct ModelOptions {
  /// Runs the engine's code whoever made it. Code is native: only for engines
  /// whose origin you know.
  bool trustCode = false;
  /// "avx512bf16", "avx512", "avx2" or "generic"; empty: the best that fits
  /// this CPU.
  std::string isa;
};

struct ModelData;
struct SessionData;

/// An opened engine. A handle that is cheap to copy; copies share the engine,
/// any number of threads may use them at once.
class LATHE_API Model {
public:
  /// Opens an engine file (made by `lathe compile`) and loads its code.
  static Result<Model> open(const std::string &path,
                            const ModelOptions &options = {});

  /// The model's own name for itself, and its architecture ("llama").
  std::string name() const;
  std::string architecture() const;
  /// The code that runs: "cpu:avx2".
  std::string target() const;
  /// Tokens that the model was made for, and in its vocabulary.
  std::size_t context() const;
  std::size_t vocabularySize() const;

  /// The ids of a text. `addSpecial` adds the begin token if the model wants
  /// one. Text that spells a control token stays text.
  Result<std::vector<Token>> tokenize(const std::string &text,
                                      bool addSpecial = false) const;
  /// The text of ids, valid UTF-8, without control tokens.
  std::string detokenize(const std::vector<Token> &tokens) const;
  /// The ids of a conversation by the model's chat template, up to where the
  /// assistant's answer starts.
  Result<std::vector<Token>>
  tokenizeChat(const std::vector<Message> &messages) const;

private:
  friend class Session;
  std::shared_ptr<const ModelData> data;
};

struct SessionOptions {
  /// 0: what CPU affinity and cgroup quota allow.
  unsigned threads = 0;
  /// Most tokens of prompt and answer; 0: the model's context, or what of it
  /// fits the memory.
  std::size_t context = 0;
  /// Most bytes of KV cache; 0: what is available.
  std::size_t kvBytes = 0;
};

/// How to answer. The defaults take the likeliest token each time.
struct GenerateOptions {
  std::size_t maxTokens = SIZE_MAX; ///< The context ends the answer anyway.
  float temperature = 0;            ///< 0: greedy.
  unsigned topK = 0;                ///< 0: off.
  float topP = 1;                   ///< 1: off.
  float minP = 0;                   ///< 0: off.
  float repetitionPenalty = 1;      ///< 1: off.
  float presencePenalty = 0;
  float frequencyPenalty = 0;
  /// Tokens that the penalties look back at; 0: all.
  unsigned penaltyWindow = 64;
  /// Added to the logits of single tokens.
  std::vector<std::pair<Token, float>> logitBias;
  /// The same seed, prompt and options give the same answer.
  std::uint64_t seed = 0;
  /// Strings that end the answer and are not part of it.
  std::vector<std::string> stop;
  /// Goes on past the model's end tokens.
  bool ignoreEnd = false;
};

enum class FinishReason {
  Stop,      ///< The model ended the answer, or a stop string did.
  Length,    ///< maxTokens, or the context is full.
  Cancelled, ///< The callback returned false.
};

struct Answer {
  std::string text;
  std::vector<Token> tokens;
  FinishReason finishReason = FinishReason::Length;
  std::size_t promptTokens = 0;
  double prefillTokensPerSecond = 0;
  double decodeTokensPerSecond = 0;
};

/// Gets the answer's text piece by piece, each of whole characters; false ends
/// the answer.
using TextCallback = std::function<bool(const std::string &text)>;

/// One conversation: the memory and threads to evaluate it. What a prompt has
/// in common with the one before is not evaluated again. One thread at a time;
/// several sessions of a model may run at once.
class LATHE_API Session {
public:
  static Result<Session> create(const Model &model,
                                const SessionOptions &options = {});
  /// A session that was moved from may only be assigned to or destroyed.
  Session(Session &&) noexcept;
  Session &operator=(Session &&) noexcept;
  ~Session();

  /// Tokens that fit.
  std::size_t context() const;
  /// What was decided for you (a smaller context), in one line; or empty.
  std::string notice() const;

  /// Answers a whole conversation by the model's chat template.
  Result<Answer> chat(const std::vector<Message> &messages,
                      const GenerateOptions &options = {},
                      const TextCallback &onText = nullptr);
  /// Continues a text.
  Result<Answer> complete(const std::string &prompt,
                          const GenerateOptions &options = {},
                          const TextCallback &onText = nullptr);
  /// Continues tokens, not empty.
  Result<Answer> generate(const std::vector<Token> &prompt,
                          const GenerateOptions &options = {},
                          const TextCallback &onText = nullptr);
  /// The logits, one per id of the vocabulary, that follow these tokens, not
  /// empty.
  Result<std::vector<float>> logits(const std::vector<Token> &tokens);

private:
  explicit Session(std::unique_ptr<SessionData> data);
  std::unique_ptr<SessionData> data;
};

} // namespace lathe

#endif // LATHE_LATHE_H
