#include "runtime/text/StreamDecoder.h"

#include "runtime/text/Utf8.h"

namespace lathe::runtime {

StreamDecoder::StreamDecoder(Tokenizer tokenizer, DecodeOptions options)
    : tokenizer_(std::move(tokenizer)), options_(options),
      dropSpace_(options.textStart && tokenizer_.spec().addSpacePrefix) {}

void StreamDecoder::appendBytes(int32_t id, std::string &bytes) {
  std::string_view text = tokenizer_.tokenBytes(id);
  bool special = tokenizer_.isSpecial(id);
  if (special || tokenizer_.isUserDefined(id)) {
    if (!special || options_.showSpecial)
      bytes.append(text);
    // Text behind a special token was given a space of its own.
    const TokenizerSpec &spec = tokenizer_.spec();
    if (spec.addSpacePrefix && spec.spacePrefixAfterSpecial)
      dropSpace_ = true;
    return;
  }
  if (text.empty())
    return;
  if (dropSpace_ && text.front() == ' ')
    text.remove_prefix(1);
  dropSpace_ = false;
  bytes.append(text);
}

void StreamDecoder::push(int32_t id, std::string &out) {
  appendBytes(id, pending_);
  moveValidUtf8(pending_, out, /*last=*/false);
}

void StreamDecoder::flush(std::string &out) {
  moveValidUtf8(pending_, out, /*last=*/true);
  dropSpace_ = options_.textStart && tokenizer_.spec().addSpacePrefix;
}

} // namespace lathe::runtime
