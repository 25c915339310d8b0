#include "runtime/text/Charsmap.h"

#include <algorithm>
#include <cstring>

namespace lathe::runtime {
namespace {

/// NFKC's longest is 33 bytes. Bounds what a hostile map makes of a text.
constexpr size_t kMaxReplacementBytes = 256;

// Units of a Darts-clone double array (Yata, "Darts-clone").
bool hasLeaf(uint32_t unit) { return unit >> 8 & 1; }
uint32_t valueOf(uint32_t unit) { return unit & 0x7FFFFFFF; }
uint32_t labelOf(uint32_t unit) { return unit & (uint32_t{1} << 31 | 0xFF); }
uint32_t offsetOf(uint32_t unit) { return unit >> 10 << (unit >> 6 & 8); }

} // namespace

Result<Charsmap> Charsmap::create(std::span<const uint8_t> blob) {
  Charsmap map;
  if (blob.empty())
    return map;
  uint32_t size = 0;
  if (blob.size() >= sizeof size)
    std::memcpy(&size, blob.data(), sizeof size);
  if (blob.size() < sizeof size || size > blob.size() - sizeof size ||
      size % sizeof(uint32_t) != 0)
    return fail(ErrorKind::InvalidInput,
                "tokenizer: the normalization map of {} bytes says that its "
                "table has {}",
                blob.size(), size);
  map.units.resize(size / sizeof(uint32_t));
  std::memcpy(map.units.data(), blob.data() + sizeof size, size);
  auto texts = blob.subspan(sizeof size + size);
  map.replacements.assign(texts.begin(), texts.end());
  if (map.replacements.empty() || map.replacements.back() != '\0')
    return fail(ErrorKind::InvalidInput,
                "tokenizer: the normalization map does not end with NUL");
  for (auto begin = map.replacements.begin();
       begin != map.replacements.end();) {
    auto end = std::find(begin, map.replacements.end(), '\0');
    if (static_cast<size_t>(end - begin) > kMaxReplacementBytes)
      return fail(ErrorKind::InvalidInput,
                  "tokenizer: the normalization map has a replacement of {} "
                  "bytes; the limit is {}",
                  end - begin, kMaxReplacementBytes);
    begin = end + 1;
  }
  return map;
}

Charsmap::Match Charsmap::longestPrefix(std::string_view text) const {
  Match best;
  if (units.empty())
    return best;
  uint32_t node = offsetOf(units[0]);
  for (size_t i = 0; i < text.size(); ++i) {
    uint8_t byte = static_cast<uint8_t>(text[i]);
    node ^= byte;
    if (byte == 0 || node >= units.size() || labelOf(units[node]) != byte)
      break;
    uint32_t unit = units[node];
    node ^= offsetOf(unit);
    if (!hasLeaf(unit))
      continue;
    if (node >= units.size() || valueOf(units[node]) >= replacements.size())
      break;
    best = {i + 1, &replacements[valueOf(units[node])]};
  }
  return best;
}

} // namespace lathe::runtime
