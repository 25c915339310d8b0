/// \file
/// The text of every token: the bytes that it adds to a decoded text.
#ifndef LATHE_RUNTIME_TEXT_PIECETABLE_H
#define LATHE_RUNTIME_TEXT_PIECETABLE_H

#include "runtime/support/Result.h"
#include "runtime/text/TokenizerSpec.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lathe::runtime {

/// Texts of all tokens in one block of memory. Views stay valid when the table
/// is moved.
class PieceTable {
public:
  /// Builds the table of a spec whose arrays have been checked. Fails on a
  /// byte token that is not "<0xHH>".
  static Result<PieceTable> create(const TokenizerSpec &spec);

  /// The bytes of a token. Normal tokens: spaces instead of U+2581
  /// (SentencePiece), raw bytes instead of GPT-2's alphabet (byte-level BPE; a
  /// token with a character outside that alphabet is its text). Byte tokens:
  /// the byte. Unused tokens: nothing. All others: their text as it stands.
  std::string_view operator[](int32_t id) const {
    return {bytes.data() + offsets[id], offsets[id + 1] - offsets[id]};
  }

  /// The token that stands for a byte, or kNoToken. SentencePiece: "<0xHH>";
  /// byte-level BPE: the normal token whose text is that byte.
  int32_t byteToken(uint8_t byte) const { return byteTokens[byte]; }

  /// True if there is a token for each of the 256 bytes.
  bool hasAllBytes() const;

private:
  /// Vector, not string: a moved short string would move its bytes.
  std::vector<char> bytes;
  std::vector<uint32_t> offsets;
  std::array<int32_t, 256> byteTokens;
};

/// The type of a token of a spec; Normal where the spec has no types.
inline TokenType typeOf(const TokenizerSpec &spec, int32_t id) {
  return spec.types.empty() ? TokenType::Normal : spec.types[id];
}

/// Appends the bytes that a text in GPT-2's byte alphabet stands for. False,
/// with `out` unspecified, if a character is not in the alphabet.
bool appendFromByteAlphabet(std::string_view text, std::string &out);

/// The byte that a text of the form "<0xHH>" names, or -1.
int byteNamedBy(std::string_view text);

} // namespace lathe::runtime

#endif // LATHE_RUNTIME_TEXT_PIECETABLE_H
