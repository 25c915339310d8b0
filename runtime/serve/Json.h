/// \file
/// JSON from clients, read with limits, and JSON for them, written cheaply.
#ifndef LATHE_RUNTIME_SERVE_JSON_H
#define LATHE_RUNTIME_SERVE_JSON_H

#include "kernels/abi/Types.h"
#include "runtime/support/Result.h"

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace lathe::runtime::serve {

/// Arrays and objects inside each other.
inline constexpr int jsonDepthMax = 32;
/// Keys and values in all; a body of ids is nearly that many bytes.
inline constexpr u32 jsonValuesMax = 1 << 20;

/// The object that a body holds. Errors: InvalidInput, with the place: not
/// JSON, not an object, beyond a limit, bytes that are not UTF-8, half a
/// surrogate pair, a key given twice.
Result<nlohmann::json> readJson(std::string_view body);

/// Appends `text` (valid UTF-8) as the inside of a JSON string, without quotes.
void appendEscaped(std::string &out, std::string_view text);

/// Appends `text` (valid UTF-8) as a JSON string.
void appendString(std::string &out, std::string_view text);

/// Appends a number as short as it can be read back. JSON has no infinity:
/// what is below -9999 (a token that is ruled out) becomes -9999.
void appendLogProb(std::string &out, f64 value);

} // namespace lathe::runtime::serve

#endif // LATHE_RUNTIME_SERVE_JSON_H
