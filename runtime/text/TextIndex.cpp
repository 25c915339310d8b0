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

/// Up to 8 bytes of text as one word, the rest 0. Two loads that overlap
/// instead of a call that copies byte by byte.
uint64_t wordOf(std::string_view text) {
  auto byte = [&](size_t i) {
    return static_cast<uint64_t>(static_cast<uint8_t>(text[i])) << 8 * i;
  };
  size_t size = text.size();
  if (size >= 4) {
    uint32_t first, last;
    std::memcpy(&first, text.data(), 4);
    std::memcpy(&last, text.data() + size - 4, 4);
    return first | static_cast<uint64_t>(last) << 8 * (size - 4);
  }
  return size == 0 ? 0 : byte(0) | byte(size / 2) | byte(size - 1);
}

/// What a slot's id lies below.
uint64_t tagOf(std::string_view text, uint64_t hash) {
  return hash >> 41 << 17 | text.size();
}

/// Slots for `capacity` entries: a power of two, at most two thirds full.
size_t slotsFor(size_t capacity) {
  return std::bit_ceil(std::max<size_t>(capacity, 1) * 3 / 2 + 1);
}

uint64_t pairOf(int32_t left, int32_t right) {
  return static_cast<uint64_t>(left) << 32 | static_cast<uint32_t>(right);
}

} // namespace

uint64_t seededHash(uint64_t key) {
  return mix(key ^ processSeed(), 0x9E3779B97F4A7C15);
}

uint64_t TextIndex::hash(std::string_view text) {
  uint64_t hash = processSeed() ^ text.size();
  while (text.size() > 8) {
    uint64_t word;
    std::memcpy(&word, text.data(), 8);
    hash = mix(hash ^ word, 0x9E3779B97F4A7C15);
    text.remove_prefix(8);
  }
  return mix(hash ^ wordOf(text), 0xD6E8FEB86659FD93);
}

TextIndex::TextIndex(size_t capacity) : slots(slotsFor(capacity)) {}

bool TextIndex::Slot::holds(std::string_view text, uint64_t hash) const {
  if (packed >> 24 != tagOf(text, hash))
    return false;
  return text.size() <= kInSlotBytes
             ? word == wordOf(text)
             : std::memcmp(address, text.data(), text.size()) == 0;
}

size_t TextIndex::slotOf(std::string_view text, uint64_t hash) const {
  size_t mask = slots.size() - 1;
  size_t at = hash & mask;
  while (slots[at].packed != 0 && !slots[at].holds(text, hash))
    at = (at + 1) & mask;
  return at;
}

bool TextIndex::insert(std::string_view text, int32_t id) {
  uint64_t code = hash(text);
  Slot &slot = slots[slotOf(text, code)];
  if (slot.packed != 0)
    return false;
  if (text.size() <= kInSlotBytes)
    slot.word = wordOf(text);
  else
    slot.address = text.data();
  slot.packed = tagOf(text, code) << 24 | static_cast<uint32_t>(id);
  longest = std::max(longest, text.size());
  return true;
}

void TextIndex::prefetch(uint64_t hash) const {
  __builtin_prefetch(&slots[hash & (slots.size() - 1)]);
}

int32_t TextIndex::find(std::string_view text, uint64_t hash) const {
  if (text.empty() || text.size() > longest)
    return -1;
  const Slot &slot = slots[slotOf(text, hash)];
  return slot.packed != 0 ? static_cast<int32_t>(slot.packed & (kMaxIds - 1))
                          : -1;
}

MergeTable::MergeTable(size_t capacity) : slots(slotsFor(capacity)) {}

size_t MergeTable::slotOf(uint64_t key) const {
  size_t mask = slots.size() - 1;
  size_t at = seededHash(key) & mask;
  while (slots[at].key != ~uint64_t{0} && slots[at].key != key)
    at = (at + 1) & mask;
  return at;
}

void MergeTable::insert(int32_t left, int32_t right, Merge merge) {
  uint64_t key = pairOf(left, right);
  Slot &slot = slots[slotOf(key)];
  if (slot.key != key)
    slot = {key, merge};
}

void MergeTable::prefetch(int32_t left, int32_t right) const {
  uint64_t key = pairOf(left, right);
  __builtin_prefetch(&slots[seededHash(key) & (slots.size() - 1)], 1);
}

const MergeTable::Merge *MergeTable::find(int32_t left, int32_t right) const {
  uint64_t key = pairOf(left, right);
  const Slot &slot = slots[slotOf(key)];
  return slot.key == key ? &slot.merge : nullptr;
}

} // namespace lathe::runtime
