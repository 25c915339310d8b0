/// \file
/// What an answer's bits depend on besides its request.
#ifndef LATHE_RUNTIME_SERVE_FINGERPRINT_H
#define LATHE_RUNTIME_SERVE_FINGERPRINT_H

#include "runtime/schedule/LoadedEngine.h"

#include <string>

namespace lathe::runtime::serve {

/// Stands for an engine file: its digest, 64 hexadecimal digits.
std::string engineHash(const Engine &engine);

/// OpenAI's `system_fingerprint`: the first 16 digits of the engine's hash and
/// the ISA layer that runs, "fp_0123456789abcdef_avx512". The same fingerprint,
/// request and seed give the same answer.
std::string systemFingerprint(const LoadedEngine &engine);

} // namespace lathe::runtime::serve

#endif // LATHE_RUNTIME_SERVE_FINGERPRINT_H
