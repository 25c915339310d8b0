#include "tests/e2e/seeded/EditModel.h"

#include "kernels/formats/Dequantize.h"
#include "tests/e2e/seeded/SeededModel.h"

#include <stdexcept>

using namespace lathe;
using namespace lathe::tests;
using frontend::GgufEntry;
using frontend::GgufFile;
using frontend::GgufTensor;
using frontend::GgufType;

void tests::putTensor(GgufWriter &writer, std::string_view name,
                      const GgufTensor &tensor, bool asF32) {
  std::vector<uint64_t> dims(tensor.dims.begin(),
                             tensor.dims.begin() + tensor.rank);
  if (!asF32) {
    writer.tensor(name, dims, kernels::traitsOf(tensor.format).ggmlType,
                  {tensor.data.begin(), tensor.data.end()});
    return;
  }
  // Rows are whole blocks, so that all of them are one long row.
  uint64_t count = tensor.k() * tensor.rows();
  GgufWriter::Bytes bytes(count * sizeof(float));
  kernels::dequantizeRow(tensor.format, tensor.data.data(),
                         reinterpret_cast<float *>(bytes.data()),
                         static_cast<int64_t>(count));
  writer.tensor(name, dims, 0, bytes);
}

std::string tests::copyModel(const TempDir &temp, const std::string &name,
                             const Edit &edit) {
  auto file = GgufFile::open(seededPath(name));
  if (!file)
    throw std::runtime_error(file.error().message);
  GgufWriter writer;
  for (const GgufEntry &entry : file->entries()) {
    if (edit.drop(entry.key))
      continue;
    GgufWriter::Bytes bytes;
    if (entry.value.type == GgufType::Array) {
      GgufWriter::put(bytes, static_cast<uint32_t>(entry.value.elementType));
      GgufWriter::put<uint64_t>(bytes, entry.value.count);
    } else if (entry.value.type == GgufType::String) {
      GgufWriter::put<uint64_t>(bytes, entry.value.bytes.size());
    }
    bytes.insert(bytes.end(), entry.value.bytes.begin(),
                 entry.value.bytes.end());
    writer.raw(entry.key, static_cast<uint32_t>(entry.value.type), bytes);
  }
  for (const GgufTensor &tensor : file->tensors())
    if (!edit.drop(tensor.name))
      putTensor(writer, tensor.name, tensor);
  edit.add(writer, *file);
  return temp.write(name + ".gguf", writer.bytes());
}
