// Damage to GGUF files that knows where their counts, lengths, types,
// dimensions and offsets are.

#include "frontend/gguf/GgufFile.h"
#include "tests/fuzz/mutations/Mutate.h"

#include <cstdio>

using namespace lathe;
using namespace lathe::tests;
using frontend::GgufFile;
using frontend::GgufType;

namespace {

struct Field {
  size_t at;
  size_t width;
};

class GgufMutator : public Mutator {
public:
  explicit GgufMutator(const GgufFile &file) {
    auto bytes = file.shardBytes(0);
    start = reinterpret_cast<const char *>(bytes.data());
    original.assign(bytes.begin(), bytes.end());
    headerBytes = file.headerBytes(0).size();
    for (Field field : {Field{4, 4}, {8, 8}, {16, 8}})
      fields.push_back(field);
    for (const auto &entry : file.entries())
      addEntry(entry);
    for (const auto &tensor : file.tensors())
      addTensor(tensor);
  }

  Bytes mutation(uint64_t number) const override {
    Dice dice(number);
    Bytes bytes = original;
    // Lengths stay until the last step: a field's place is that in `original`.
    for (uint64_t n = 1 + dice.roll(3); n > 0; --n) {
      Field field = fields[dice.roll(fields.size())];
      if (dice.oneIn(2))
        breakField(dice, bytes, field.at, field.width);
      else
        breakBytes(dice, bytes, 0, dice.oneIn(4) ? bytes.size() : headerBytes,
                   true);
    }
    if (dice.oneIn(4))
      breakBytes(dice, bytes, 0, headerBytes, false);
    if (dice.oneIn(10))
      bytes.resize(dice.roll(bytes.size()));
    return bytes;
  }

private:
  void addEntry(const frontend::GgufEntry &entry) {
    size_t name = size_t(entry.key.data() - start);
    size_t type = name + entry.key.size();
    fields.push_back({name - 8, 8});
    fields.push_back({type, 4});
    size_t value = type + 4;
    if (entry.value.type == GgufType::Array) {
      fields.push_back({value, 4});
      fields.push_back({value + 4, 8});
      value += 12;
      // A few of the elements, first and last included.
      size_t bytes = entry.value.bytes.size();
      for (size_t i = 0; i < 8 && bytes >= 8; ++i)
        fields.push_back({value + (bytes - 8) * i / 7, 4});
      fields.push_back({value, 8});
      return;
    }
    fields.push_back({value, entry.value.type == GgufType::String
                                 ? 8
                                 : entry.value.bytes.size()});
  }

  void addTensor(const frontend::GgufTensor &tensor) {
    size_t name = size_t(tensor.name.data() - start);
    size_t rank = name + tensor.name.size();
    fields.push_back({name - 8, 8});
    fields.push_back({rank, 4});
    for (size_t i = 0; i < tensor.rank; ++i)
      fields.push_back({rank + 4 + 8 * i, 8});
    fields.push_back({rank + 4 + 8 * tensor.rank, 4});
    fields.push_back({rank + 8 + 8 * tensor.rank, 8});
  }

  const char *start; ///< Of the mapped file; only while constructing.
  Bytes original;
  size_t headerBytes;
  std::vector<Field> fields;
};

} // namespace

std::unique_ptr<Mutator> tests::makeGgufMutator(const std::string &path) {
  auto file = GgufFile::open(path);
  if (!file) {
    std::fprintf(stderr, "%s\n", file.error().message.c_str());
    return nullptr;
  }
  return std::make_unique<GgufMutator>(*file);
}
