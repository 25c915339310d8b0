#include "runtime/text/StreamDecoder.h"

#include "runtime/text/Utf8.h"

namespace lathe::runtime {

StreamDecoder::StreamDecoder(Tokenizer tokenizer, DecodeOptions options)
    : tokenizer(std::move(tokenizer)), options(options),
      dropSpace(options.textStart && this->tokenizer.spec().addSpacePrefix) {}

void StreamDecoder::appendBytes(int32_t id, std::string &bytes) {
  std::string_view text = tokenizer.tokenBytes(id);
  bool special = tokenizer.isSpecial(id);
  if (special || tokenizer.isUserDefined(id)) {
    if (!special || options.showSpecial)
      bytes.append(text);
    // Text behind a special token was given a space of its own.
    const TokenizerSpec &spec = tokenizer.spec();
    if (spec.addSpacePrefix && spec.spacePrefixAfterSpecial)
      dropSpace = true;
    return;
  }
  if (text.empty())
    return;
  if (dropSpace && text.front() == ' ')
    text.remove_prefix(1);
  dropSpace = false;
  bytes.append(text);
}

void StreamDecoder::push(int32_t id, std::string &out) {
  appendBytes(id, pending);
  moveValidUtf8(pending, out, /*last=*/false);
}

void StreamDecoder::flush(std::string &out) {
  moveValidUtf8(pending, out, /*last=*/true);
  dropSpace = options.textStart && tokenizer.spec().addSpacePrefix;
}

} // namespace lathe::runtime
