/// \file
/// Answers as Ollama's clients expect them: one JSON object a line.
#ifndef LATHE_RUNTIME_SERVE_OLLAMA_OLLAMAFORMAT_H
#define LATHE_RUNTIME_SERVE_OLLAMA_OLLAMAFORMAT_H

#include "runtime/serve/Endpoints.h"
#include "runtime/text/Tokenizer.h"

#include <string>

namespace lathe::runtime::serve {

/// /api/chat, or /api/generate
class OllamaFormat final : public Format {
public:
  OllamaFormat(const ServedModel &model, bool isChat, bool logProbs);

  std::string whole(std::span<const Choice> choices,
                    const Usage &usage) override;
  std::string_view streamType() const override {
    return "application/x-ndjson";
  }
  void begin(std::string &, const Progress &) override {}
  void piece(std::string &out, const Progress &at, std::string_view text,
             std::span<const TokenEntry> entries) override;
  void end(std::string &out, const Progress &at, bool isStop) override;
  void close(std::string &out, const Usage &usage) override;
  void fail(std::string &out, const ApiError &error) override;
  ErrorShape errorShape() const override { return ollamaError; }

  /// The answer to a call without a prompt.
  std::string loaded();

private:
  void appendStart(std::string &out, std::string_view text,
                   std::span<const TokenEntry> entries);
  void appendLast(std::string &out, const Usage &usage);

  Tokenizer tokenizer;
  std::string head; ///< "{", model, time, up to the text's quote.
  bool isChat;
  bool logProbs;
  bool isStop = false; ///< How the answer has ended.
};

} // namespace lathe::runtime::serve

#endif // LATHE_RUNTIME_SERVE_OLLAMA_OLLAMAFORMAT_H
