/// \file
/// Whether two models mean the same by a token id.
#ifndef LATHE_RUNTIME_SPECULATE_SAMEVOCABULARY_H
#define LATHE_RUNTIME_SPECULATE_SAMEVOCABULARY_H

#include "runtime/support/Result.h"
#include "runtime/text/TokenizerSpec.h"

namespace lathe::runtime {

/// Checks that a draft model can propose tokens for a target: the same kind of
/// vocabulary and the same text for every id that both have. Either may have
/// more ids at the end (padding): they are never proposed. Other begin or end
/// tokens, or adding them differently, cannot change an answer but tell of
/// models that were made for other uses: they give a warning, which is the
/// result; usually empty. Errors: InvalidInput, naming the first id that
/// differs.
Result<std::string> checkSameVocabulary(const TokenizerSpec &target,
                                        const TokenizerSpec &draft);

} // namespace lathe::runtime

#endif // LATHE_RUNTIME_SPECULATE_SAMEVOCABULARY_H
