#include "runtime/serve/Json.h"
#include "runtime/serve/openai/OpenAiFormat.h"

#include <iterator>

namespace lathe::runtime::serve {

void ChatFormat::begin(std::string &out, u32 choice) {
  openEvent(out, choice);
  out += R"("delta":{"role":"assistant","content":""},"logprobs":null)";
  closeEvent(out, "null");
}

void ChatFormat::piece(std::string &out, u32 choice, std::string_view text,
                       std::span<const TokenEntry> entries) {
  openEvent(out, choice);
  out += R"("delta":{"content":")";
  appendEscaped(out, text);
  out += R"("},"logprobs":)";
  appendEntries(out, entries);
  closeEvent(out, "null");
}

void ChatFormat::appendEmpty(std::string &out) {
  out += R"("delta":{},"logprobs":null)";
}

void ChatFormat::appendChoice(std::string &out, const Choice &choice) {
  out += R"("message":{"role":"assistant","content":)";
  appendString(out, choice.text);
  out += R"(,"refusal":null},"logprobs":)";
  appendEntries(out, choice.entries);
}

void ChatFormat::appendToken(std::string &out, i32 token, f64 logProb) {
  out += R"("token":)";
  appendString(out, textOf(token));
  out += R"(,"logprob":)";
  appendLogProb(out, logProb);
  out += R"(,"bytes":[)";
  std::string_view bytes = tokenizer.tokenBytes(token);
  for (size_t i = 0; i < bytes.size(); ++i)
    fmt::format_to(std::back_inserter(out), "{}{}", i == 0 ? "" : ",",
                   u8(bytes[i]));
  out += ']';
}

void ChatFormat::appendEntries(std::string &out,
                               std::span<const TokenEntry> entries) {
  if (!logProbs) {
    out += "null";
    return;
  }
  out += R"({"content":[)";
  for (const TokenEntry &entry : entries) {
    out += &entry == entries.data() ? "{" : ",{";
    appendToken(out, entry.token, entry.logProb.value_or(0));
    out += R"(,"top_logprobs":[)";
    for (const TokenLogProb &top : entry.top) {
      out += &top == entry.top.data() ? "{" : ",{";
      appendToken(out, top.token, top.logprob);
      out += '}';
    }
    out += "]}";
  }
  out += R"(],"refusal":null})";
}

} // namespace lathe::runtime::serve
