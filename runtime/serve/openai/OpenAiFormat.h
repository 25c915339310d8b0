/// \file
/// Answers as OpenAI's clients expect them.
#ifndef LATHE_RUNTIME_SERVE_OPENAI_OPENAIFORMAT_H
#define LATHE_RUNTIME_SERVE_OPENAI_OPENAIFORMAT_H

#include "runtime/serve/Api.h"
#include "runtime/serve/Endpoints.h"
#include "runtime/text/Tokenizer.h"

#include <string>

namespace lathe::runtime::serve {

/// Which events of a stream tell what it took: none, one at the end, or also
/// every other, of its own answer so far (vLLM's continuous_usage_stats).
enum class StreamUsage { None, Last, Each };

/// What both endpoints' answers have in common: the frame around choices.
class OpenAiFormat : public Format {
public:
  std::string whole(std::span<const Choice> choices,
                    const Usage &usage) override;
  std::string_view streamType() const override { return "text/event-stream"; }
  void end(std::string &out, const Progress &at, bool isStop) override;
  void close(std::string &out, const Usage &usage) override;
  void fail(std::string &out, const ApiError &error) override;
  ErrorShape errorShape() const override { return openAiError; }

protected:
  /// `kind`: "chatcmpl", "cmpl". `object` and `chunkObject` name the type.
  OpenAiFormat(const ServedModel &model, std::string_view kind,
               std::string_view object, std::string_view chunkObject,
               StreamUsage streamUsage);

  /// Opens and closes an event with one choice; what is between is up to and
  /// without "finish_reason".
  void openEvent(std::string &out, const Progress &at) const;
  void closeEvent(std::string &out, const Progress &at,
                  std::string_view finish) const;

  /// Appends a choice without its index and finish reason.
  virtual void appendChoice(std::string &out, const Choice &choice) = 0;
  virtual void appendEmpty(std::string &out) = 0;

  const Tokenizer tokenizer;

private:
  std::string head(std::string_view object) const;

  std::string frame; ///< id, created, model, fingerprint: without the braces.
  std::string_view object;
  std::string eventHead;
  StreamUsage streamUsage;
};

/// /v1/chat/completions
class ChatFormat final : public OpenAiFormat {
public:
  ChatFormat(const ServedModel &model, StreamUsage streamUsage, bool logProbs)
      : OpenAiFormat(model, "chatcmpl", "chat.completion",
                     "chat.completion.chunk", streamUsage),
        logProbs(logProbs) {}

  void begin(std::string &out, const Progress &at) override;
  void piece(std::string &out, const Progress &at, std::string_view text,
             std::span<const TokenEntry> entries) override;

protected:
  void appendChoice(std::string &out, const Choice &choice) override;
  void appendEmpty(std::string &out) override;

private:
  void appendLogProbs(std::string &out, std::span<const TokenEntry> entries);

  bool logProbs;
};

/// /v1/completions
class CompletionFormat final : public OpenAiFormat {
public:
  CompletionFormat(const ServedModel &model, StreamUsage streamUsage,
                   bool logProbs)
      : OpenAiFormat(model, "cmpl", "text_completion", "text_completion",
                     streamUsage),
        logProbs(logProbs) {}

  void begin(std::string &, const Progress &) override {}
  void piece(std::string &out, const Progress &at, std::string_view text,
             std::span<const TokenEntry> entries) override;

protected:
  void appendChoice(std::string &out, const Choice &choice) override;
  void appendEmpty(std::string &out) override;

private:
  void appendEntries(std::string &out, std::span<const TokenEntry> entries);
  void appendTop(std::string &out, const TokenEntry &entry);
  /// A token's text, or its bytes if they are no text.
  std::string nameOf(i32 token) const;

  bool logProbs;
};

} // namespace lathe::runtime::serve

#endif // LATHE_RUNTIME_SERVE_OPENAI_OPENAIFORMAT_H
