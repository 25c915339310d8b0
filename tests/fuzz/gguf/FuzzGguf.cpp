// Opens the input as a GGUF file and reads all that it offers.

#include "frontend/gguf/GgufFile.h"
#include "kernels/formats/Dequantize.h"

#include <cstdlib>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

using namespace lathe;
using frontend::GgufFile;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  int fd = ::memfd_create("fuzz", MFD_CLOEXEC);
  if (fd < 0 || ::write(fd, data, size) != static_cast<ssize_t>(size))
    std::abort();
  auto file = GgufFile::open("/proc/self/fd/" + std::to_string(fd));
  ::close(fd);
  if (!file)
    return 0;
  for (const frontend::GgufEntry &entry : file->entries()) {
    (void)file->getU32(entry.key);
    (void)file->getI64(entry.key);
    (void)file->getF32(entry.key);
    (void)file->getBool(entry.key);
    (void)file->getString(entry.key);
    (void)file->getStringArray(entry.key);
    (void)file->getI32Array(entry.key);
    (void)file->getF32Array(entry.key);
    (void)file->getU32PerLayer(entry.key, 4);
  }
  for (const frontend::GgufTensor &tensor : file->tensors()) {
    (void)file->checkBlocks(tensor);
    const auto &traits = traitsOf(tensor.format);
    float values[kernels::maxBlockElems];
    for (size_t at = 0; at < tensor.data.size(); at += traits.blockBytes)
      kernels::dequantizeRow(tensor.format, tensor.data.data() + at, values,
                             traits.blockElems);
  }
  return 0;
}
