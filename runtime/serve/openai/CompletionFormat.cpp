#include "runtime/serve/Json.h"
#include "runtime/serve/openai/OpenAiFormat.h"
#include "runtime/text/Utf8.h"

#include <iterator>
#include <set>

namespace lathe::runtime::serve {

void CompletionFormat::piece(std::string &out, const Progress &at,
                             std::string_view text,
                             std::span<const TokenEntry> entries) {
  openEvent(out, at);
  appendChoice(out, {.text = text, .entries = entries, .isStop = false});
  closeEvent(out, at, "null");
}

void CompletionFormat::appendEmpty(std::string &out) {
  out += R"("text":"","logprobs":null)";
}

void CompletionFormat::appendChoice(std::string &out, const Choice &choice) {
  out += R"("text":)";
  appendString(out, choice.text);
  out += R"(,"logprobs":)";
  appendEntries(out, choice.entries);
}

std::string CompletionFormat::nameOf(i32 token) const {
  std::string_view bytes = tokenizer.tokenBytes(token);
  if (isValidUtf8(bytes))
    return std::string(bytes);
  std::string name = "bytes:";
  for (char c : bytes)
    fmt::format_to(std::back_inserter(name), "\\x{:02x}", u8(c));
  return name;
}

/// The likeliest tokens by their texts, and the entry's own.
void CompletionFormat::appendTop(std::string &out, const TokenEntry &entry) {
  if (!entry.logProb) {
    out += "null";
    return;
  }
  // Of tokens with one text, the likeliest is shown.
  std::set<std::string> shown;
  auto show = [&](i32 token, f64 logProb) {
    std::string name = nameOf(token);
    if (!shown.insert(name).second)
      return;
    out += shown.size() == 1 ? "{" : ",";
    appendString(out, name);
    out += ':';
    appendLogProb(out, logProb);
  };
  for (const TokenLogProb &top : entry.top)
    show(top.token, top.logprob);
  show(entry.token, *entry.logProb);
  out += '}';
}

void CompletionFormat::appendEntries(std::string &out,
                                     std::span<const TokenEntry> entries) {
  if (!logProbs) {
    out += "null";
    return;
  }
  auto list = [&](std::string_view name, auto append) {
    out += name;
    for (const TokenEntry &entry : entries) {
      if (&entry != entries.data())
        out += ',';
      append(entry);
    }
    out += ']';
  };
  list(R"({"tokens":[)", [&](const TokenEntry &entry) {
    appendString(out, nameOf(entry.token));
  });
  list(R"(,"token_logprobs":[)", [&](const TokenEntry &entry) {
    if (entry.logProb)
      appendLogProb(out, *entry.logProb);
    else
      out += "null";
  });
  list(R"(,"top_logprobs":[)",
       [&](const TokenEntry &entry) { appendTop(out, entry); });
  list(R"(,"text_offset":[)", [&](const TokenEntry &entry) {
    fmt::format_to(std::back_inserter(out), "{}", entry.offset);
  });
  out += '}';
}

} // namespace lathe::runtime::serve
