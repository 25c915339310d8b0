#include "runtime/serve/http/Credentials.h"
#include "kernels/abi/Types.h"
#include "runtime/serve/http/Http.h"

#include <algorithm>

namespace lathe::runtime::http {

/// The value of a base64 digit, or -1.
static i32 digitOf(char c) {
  if (c >= 'A' && c <= 'Z')
    return c - 'A';
  if (c >= 'a' && c <= 'z')
    return c - 'a' + 26;
  if (c >= '0' && c <= '9')
    return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/// Strictly as in RFC 4648, section 4: padded, and without other characters or
/// stray bits, so that a text has one encoding.
static std::optional<std::string> decodeBase64(std::string_view text) {
  if (text.size() % 4 != 0)
    return std::nullopt;
  for (int i = 0; i < 2 && text.ends_with('='); ++i)
    text.remove_suffix(1);
  std::string bytes;
  bytes.reserve(text.size() * 3 / 4);
  u32 pending = 0, pendingBits = 0;
  for (char c : text) {
    i32 digit = digitOf(c);
    if (digit < 0)
      return std::nullopt;
    pending = pending << 6 | u32(digit);
    pendingBits += 6;
    if (pendingBits < 8)
      continue;
    pendingBits -= 8;
    bytes += char(pending >> pendingBits);
    pending &= (1u << pendingBits) - 1;
  }
  if (pending != 0)
    return std::nullopt;
  return bytes;
}

/// What follows a scheme and its spaces; none if it is another scheme.
static std::optional<std::string_view> afterScheme(std::string_view text,
                                                   std::string_view scheme) {
  if (!equalsNoCase(text.substr(0, scheme.size()), scheme))
    return std::nullopt;
  text.remove_prefix(scheme.size());
  if (!text.starts_with(' '))
    return std::nullopt;
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  return text;
}

std::optional<Credentials> parseCredentials(std::string_view authorization) {
  if (auto key = afterScheme(authorization, "Bearer"))
    return Credentials{.key = std::string(*key)};
  auto encoded = afterScheme(authorization, "Basic");
  if (!encoded)
    return std::nullopt;
  auto pair = decodeBase64(*encoded);
  if (!pair)
    return std::nullopt;
  // A user's name has no colon; a password may.
  size_t colon = pair->find(':');
  if (colon == pair->npos)
    return std::nullopt;
  return Credentials{.key = pair->substr(colon + 1), .isBasic = true};
}

} // namespace lathe::runtime::http
