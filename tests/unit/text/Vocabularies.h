/// \file
/// Small vocabularies that tests build by hand.
#ifndef LATHE_TESTS_UNIT_TEXT_VOCABULARIES_H
#define LATHE_TESTS_UNIT_TEXT_VOCABULARIES_H

#include "runtime/text/Tokenizer.h"

#include <string>
#include <utility>
#include <vector>

namespace lathe::runtime::test {

/// GPT-2's byte alphabet: what a vocabulary writes for these bytes.
std::string inByteAlphabet(std::string_view bytes);

/// A byte-level vocabulary: ids 0 to 255 are the bytes, then the merges' pieces
/// in order, then <|endoftext|>, <|im_start|>, <|im_end|> (control), <tool>
/// (user-defined). BOS is <|im_start|>, EOS is <|im_end|>.
TokenizerSpec byteLevelSpec(
    std::string preTokenizer,
    const std::vector<std::pair<std::string, std::string>> &merges = {});

/// A SentencePiece vocabulary: <unk>, <s>, </s>, byte pieces if asked for, the
/// user-defined <|im_start|>, then the pieces, each scoring worse than the one
/// before. Texts get a space in front.
TokenizerSpec piecesSpec(const std::vector<std::string> &pieces,
                         bool bytePieces = true);

/// The tokenizer of a spec that is known to be right.
Tokenizer makeTokenizer(TokenizerSpec spec);

/// The ids, which must not fail.
std::vector<int32_t> encode(const Tokenizer &tokenizer, std::string_view text,
                            EncodeOptions options = {});

/// The texts of ids, for readable comparisons.
std::vector<std::string> names(const Tokenizer &tokenizer,
                               const std::vector<int32_t> &ids);

} // namespace lathe::runtime::test

#endif // LATHE_TESTS_UNIT_TEXT_VOCABULARIES_H
