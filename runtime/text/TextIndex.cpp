#include "runtime/text/TextIndex.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <random>

namespace lathe::runtime {
namespace {

uint64_t mix(uint64_t a, uint64_t b) {
  auto product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

uint64_t processSeed() {
  static const uint64_t seed = [] {
    std::random_device device;
    return (uint64_t{device()} << 32 | device()) | 1;
  }();
  return seed;
}

uint64_t hashText(std::string_view text) {
  uint64_t hash = processSeed() ^ text.size();
  while (text.size() >= 8) {
    uint64_t word;
    std::memcpy(&word, text.data(), 8);
    hash = mix(hash ^ word, 0x9E3779B97F4A7C15);
    text.remove_prefix(8);
  }
  uint64_t tail = 0;
  std::memcpy(&tail, text.data(), text.size());
  return mix(hash ^ tail, 0xD6E8FEB86659FD93);
}

/// Slots for `capacity` entries: a power of two, at most half full.
size_t slotsFor(size_t capacity) {
  return std::bit_ceil(std::max<size_t>(capacity, 1) * 2);
}

} // namespace

uint64_t seededHash(uint64_t key) {
  return mix(key ^ processSeed(), 0x9E3779B97F4A7C15);
}

TextIndex::TextIndex(size_t capacity) : slots_(slotsFor(capacity)) {}

size_t TextIndex::slotOf(std::string_view text, uint64_t &tag) const {
  uint64_t hash = hashText(text);
  tag = hash >> 41 << 17 | text.size();
  size_t mask = slots_.size() - 1;
  size_t at = hash & mask;
  while (slots_[at].text &&
         (slots_[at].packed >> 24 != tag ||
          std::memcmp(slots_[at].text, text.data(), text.size()) != 0))
    at = (at + 1) & mask;
  return at;
}

void TextIndex::insert(std::string_view text, int32_t id) {
  uint64_t tag;
  Slot &slot = slots_[slotOf(text, tag)];
  if (slot.text)
    return;
  slot = {text.data(), tag << 24 | static_cast<uint32_t>(id)};
  maxLength_ = std::max(maxLength_, text.size());
}

void TextIndex::prefetch(std::string_view text) const {
  __builtin_prefetch(&slots_[hashText(text) & (slots_.size() - 1)]);
}

int32_t TextIndex::find(std::string_view text) const {
  if (text.size() > maxLength_)
    return -1;
  uint64_t tag;
  const Slot &slot = slots_[slotOf(text, tag)];
  return slot.text ? static_cast<int32_t>(slot.packed & (kMaxIds - 1)) : -1;
}

MergeTable::MergeTable(size_t capacity) : slots_(slotsFor(capacity)) {}

size_t MergeTable::slotOf(uint64_t key) const {
  size_t mask = slots_.size() - 1;
  size_t at = seededHash(key) & mask;
  while (slots_[at].key != ~uint64_t{0} && slots_[at].key != key)
    at = (at + 1) & mask;
  return at;
}

void MergeTable::insert(int32_t left, int32_t right, Merge merge) {
  uint64_t key = uint64_t(uint32_t(left)) << 32 | uint32_t(right);
  Slot &slot = slots_[slotOf(key)];
  if (slot.key != key)
    slot = {key, merge};
}

const MergeTable::Merge *MergeTable::find(int32_t left, int32_t right) const {
  uint64_t key = uint64_t(uint32_t(left)) << 32 | uint32_t(right);
  const Slot &slot = slots_[slotOf(key)];
  return slot.key == key ? &slot.merge : nullptr;
}

} // namespace lathe::runtime
