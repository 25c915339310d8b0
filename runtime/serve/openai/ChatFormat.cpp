#include "runtime/serve/Json.h"
#include "runtime/serve/TokenJson.h"
#include "runtime/serve/openai/OpenAiFormat.h"

namespace lathe::runtime::serve {

void ChatFormat::begin(std::string &out, const Progress &at) {
  openEvent(out, at);
  out += R"("delta":{"role":"assistant","content":""},"logprobs":null)";
  closeEvent(out, at, "null");
}

void ChatFormat::piece(std::string &out, const Progress &at,
                       std::string_view text,
                       std::span<const TokenEntry> entries) {
  openEvent(out, at);
  out += R"("delta":{"content":")";
  appendEscaped(out, text);
  out += R"("},"logprobs":)";
  appendLogProbs(out, entries);
  closeEvent(out, at, "null");
}

void ChatFormat::appendEmpty(std::string &out) {
  out += R"("delta":{},"logprobs":null)";
}

void ChatFormat::appendChoice(std::string &out, const Choice &choice) {
  out += R"("message":{"role":"assistant","content":)";
  appendString(out, choice.text);
  out += R"(,"refusal":null},"logprobs":)";
  appendLogProbs(out, choice.entries);
}

void ChatFormat::appendLogProbs(std::string &out,
                                std::span<const TokenEntry> entries) {
  if (!logProbs) {
    out += "null";
    return;
  }
  out += R"({"content":)";
  appendEntries(out, tokenizer, entries);
  out += R"(,"refusal":null})";
}

} // namespace lathe::runtime::serve
