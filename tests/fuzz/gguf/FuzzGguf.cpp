// Opens the input as a GGUF file and reads all that it offers.

#include "frontend/gguf/GgufFile.h"
#include "kernels/formats/Dequantize.h"
#include "tests/unit/support/GgufReads.h"

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
  (void)tests::readWholeGguf(*file);
  for (const frontend::GgufTensor &tensor : file->tensors()) {
    const auto &traits = traitsOf(tensor.format);
    float values[kernels::maxBlockElems];
    for (size_t at = 0; at < tensor.data.size(); at += traits.blockBytes)
      kernels::dequantizeRow(tensor.format, tensor.data.data() + at, values,
                             traits.blockElems);
  }
  return 0;
}
