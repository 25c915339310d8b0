#include "ir/interpreter/KvStore.h"

using namespace lathe::ir;

const KvEntry *KvStore::find(const KvPlace &place) const {
  auto found = entries.find(place);
  return found == entries.end() ? nullptr : &found->second;
}

void KvStore::put(const KvPlace &place, KvEntry entry) {
  entries[place] = std::move(entry);
}

BatchValue
BatchValue::with(std::shared_ptr<const std::map<KvPlace, KvEntry>> rows) const {
  BatchValue result = *this;
  result.last =
      std::make_shared<const Append>(Append{std::move(rows), this->last});
  return result;
}

const KvEntry *BatchValue::find(const KvPlace &place) const {
  for (const Append *append = last.get(); append; append = append->before.get())
    if (auto found = append->rows->find(place); found != append->rows->end())
      return &found->second;
  return store->find(place);
}
