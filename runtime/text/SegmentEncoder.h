/// \file
/// What the three tokenizer models have in common: text without special tokens
/// becomes ids.
#ifndef LATHE_RUNTIME_TEXT_SEGMENTENCODER_H
#define LATHE_RUNTIME_TEXT_SEGMENTENCODER_H

#include "runtime/support/Result.h"
#include "runtime/text/PieceTable.h"
#include "runtime/text/TokenizerSpec.h"

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace lathe::runtime {

/// Encodes stretches of text that hold no special token. Immutable: any number
/// of threads may encode at once. Never yields a control or unknown token for
/// text that merely spells one.
class SegmentEncoder {
public:
  virtual ~SegmentEncoder() = default;

  /// Appends the ids of `text` (any bytes, less than 2 GiB) to `ids`.
  /// `spacePrefix`: a space is put in front first. Fails with Exhausted if
  /// the pattern library runs out of its limits.
  virtual Result<void> encode(std::string_view text, bool spacePrefix,
                              std::vector<int32_t> &ids) const = 0;
};

/// The encoder makers. `spec` has been checked by Tokenizer::create and, like
/// `pieces`, must outlive the encoder.
Result<std::unique_ptr<SegmentEncoder>>
makeByteLevelBpe(const TokenizerSpec &spec, const PieceTable &pieces);
std::unique_ptr<SegmentEncoder> makeSentencePieceBpe(const TokenizerSpec &spec,
                                                     const PieceTable &pieces);
Result<std::unique_ptr<SegmentEncoder>> makeUnigram(const TokenizerSpec &spec,
                                                    const PieceTable &pieces);

} // namespace lathe::runtime

#endif // LATHE_RUNTIME_TEXT_SEGMENTENCODER_H
