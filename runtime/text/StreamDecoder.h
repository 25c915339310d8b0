/// \file
/// Ids to text while they are being generated.
#ifndef LATHE_RUNTIME_TEXT_STREAMDECODER_H
#define LATHE_RUNTIME_TEXT_STREAMDECODER_H

#include "runtime/text/Tokenizer.h"

#include <string>

namespace lathe::runtime {

/// Decodes one sequence id by id. What it emits is valid UTF-8 and never ends
/// inside a character; over a sequence the emitted text is that of
/// Tokenizer::decode, however it was cut. Holds a share of the tokenizer; one
/// thread at a time.
class StreamDecoder {
public:
  /// By default the ids continue a prompt: a leading space is kept, control
  /// tokens are hidden.
  explicit StreamDecoder(Tokenizer tokenizer,
                         DecodeOptions options = {.textStart = false});

  /// Appends to `out` what the id completes: nothing, if it ends inside a
  /// character or has no text. Ids outside the vocabulary have none.
  void push(int32_t id, std::string &out);

  /// The sequence is over: an unfinished character becomes U+FFFD. The decoder
  /// is then as new.
  void flush(std::string &out);

private:
  friend class Tokenizer;

  /// Appends the bytes of the id by the rules of the options.
  void appendBytes(int32_t id, std::string &bytes);

  Tokenizer tokenizer;
  DecodeOptions options;
  /// A space at the start of the next token was put there by encoding.
  bool dropSpace;
  std::string pending; ///< An unfinished character, at most 3 bytes.
};

} // namespace lathe::runtime

#endif // LATHE_RUNTIME_TEXT_STREAMDECODER_H
