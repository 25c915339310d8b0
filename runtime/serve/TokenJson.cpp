#include "runtime/serve/TokenJson.h"
#include "runtime/serve/Json.h"
#include "runtime/text/Utf8.h"

#include <iterator>

namespace lathe::runtime::serve {

/// Without braces.
static void appendToken(std::string &out, const Tokenizer &tokenizer, i32 token,
                        f64 logProb) {
  std::string_view bytes = tokenizer.tokenBytes(token);
  std::string pending(bytes), text;
  moveValidUtf8(pending, text, true);
  out += R"("token":)";
  appendString(out, text);
  out += R"(,"logprob":)";
  appendLogProb(out, logProb);
  out += R"(,"bytes":[)";
  for (size_t i = 0; i < bytes.size(); ++i)
    fmt::format_to(std::back_inserter(out), "{}{}", i == 0 ? "" : ",",
                   u8(bytes[i]));
  out += ']';
}

void appendEntries(std::string &out, const Tokenizer &tokenizer,
                   std::span<const TokenEntry> entries) {
  out += '[';
  for (const TokenEntry &entry : entries) {
    out += &entry == entries.data() ? "{" : ",{";
    appendToken(out, tokenizer, entry.token, entry.logProb.value_or(0));
    out += R"(,"top_logprobs":[)";
    for (const TokenLogProb &top : entry.top) {
      out += &top == entry.top.data() ? "{" : ",{";
      appendToken(out, tokenizer, top.token, top.logprob);
      out += '}';
    }
    out += "]}";
  }
  out += ']';
}

} // namespace lathe::runtime::serve
