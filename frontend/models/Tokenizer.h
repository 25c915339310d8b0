/// \file
/// The tokenizer of a GGUF file. Keys: "tokenizer.ggml.*" of docs/gguf.md; what
/// files leave out is filled in as llama.cpp does, since files are made for it.
#ifndef LATHE_FRONTEND_MODELS_TOKENIZER_H
#define LATHE_FRONTEND_MODELS_TOKENIZER_H

#include "frontend/gguf/GgufFile.h"
#include "runtime/support/Result.h"
#include "runtime/text/TokenizerSpec.h"

namespace lathe::frontend {

/// Reads the tokenizer and the chat template of a model. Beyond the keys:
///  - SentencePiece begins texts with BOS and a space unless the file says
///    otherwise, unigram ends them with EOS, the Llama-3 families begin with
///    BOS.
///  - endIds are EOS, EOT, EOM and every token known by its text to end a turn
///    or a text ("<|im_end|>", "<end_of_turn>", …).
///  - Tokens that end or begin a text are control tokens whatever the file
///  says.
///  - Without token types, "<0xHH>" are byte tokens of SentencePiece.
/// Errors name the file and the key: a model kind or pre-tokenizer that Lathe
/// does not know (a byte-level vocabulary that names none is one), arrays of
/// unequal length, ids outside the vocabulary. The rest of the checks is
/// Tokenizer::create's.
runtime::Result<runtime::TokenizerSpec> readTokenizer(const GgufFile &file);

} // namespace lathe::frontend

#endif // LATHE_FRONTEND_MODELS_TOKENIZER_H
