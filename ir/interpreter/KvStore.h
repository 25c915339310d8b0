/// \file
/// The keys and values of sequences, as the interpreter's step form keeps them:
/// no pages, one entry per (group, layer, sequence, position).
#ifndef LATHE_IR_INTERPRETER_KVSTORE_H
#define LATHE_IR_INTERPRETER_KVSTORE_H

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace lathe::ir {

/// One row of a step: which sequence it belongs to, and where in it.
struct StepRow {
  uint32_t sequence = 0;
  int32_t position = 0;
};

/// A row's keys and values [kv_heads · head_dim], already rounded to the
/// group's element type.
struct KvEntry {
  std::vector<float> key, value;
};

/// What an entry belongs to.
struct KvPlace {
  std::string group;
  int64_t layer = 0;
  uint32_t sequence = 0;
  int32_t position = 0;
  auto operator<=>(const KvPlace &) const = default;
};

/// The cache between steps. One thread at a time.
class KvStore {
public:
  /// The entry at a place, or null.
  const KvEntry *find(const KvPlace &place) const;
  void put(const KvPlace &place, KvEntry entry);

private:
  std::map<KvPlace, KvEntry> entries;
};

/// The value of a !lathe.batch: the cache as it is after the appends that led
/// to this value, and no others. Immutable, so that an op that reads an older
/// batch does not see what was appended later.
class BatchValue {
public:
  /// The cache at the start of a step.
  explicit BatchValue(const KvStore &store) : store(&store) {}

  /// This batch with one more append.
  BatchValue with(std::shared_ptr<const std::map<KvPlace, KvEntry>> rows) const;

  /// The latest entry at a place, or null.
  const KvEntry *find(const KvPlace &place) const;

private:
  struct Append {
    std::shared_ptr<const std::map<KvPlace, KvEntry>> rows;
    std::shared_ptr<const Append> before;
  };
  const KvStore *store;
  std::shared_ptr<const Append> last;
};

} // namespace lathe::ir

#endif // LATHE_IR_INTERPRETER_KVSTORE_H
