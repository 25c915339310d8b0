// Writes the seeds of the engine fuzz target into a folder: a manifest whose
// sections end where FuzzEngine.cpp puts it, and a tokenizer.

#include "tests/unit/engine/TinyEngine.h"

#include <cstdio>

using namespace lathe::tests;

int main(int argc, char **argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
    return 2;
  }
  auto put = [&](const char *name, const Bytes &bytes) {
    std::ofstream(std::string(argv[1]) + "/" + name, std::ios::binary)
        .write(reinterpret_cast<const char *>(bytes.data()),
               std::streamsize(bytes.size()));
  };
  TempDir dir;
  auto description = tinyDescription();
  for (auto &target : description.targets)
    target.object = {1};
  put("tokenizer", lathe::codegen::encodeTokenizer(*description.tokenizer));
  auto written =
      lathe::codegen::writeEngine(dir.path("tiny.lathe"), description);
  if (!written) {
    std::fprintf(stderr, "%s\n", written.error().message.c_str());
    return 1;
  }
  Bytes file = withFields(readBytes(dir.path("tiny.lathe")),
                          [](fb::ManifestT &manifest) {
                            fb::SectionT &last = *manifest.sections.back();
                            last.bytes = last.raw_bytes = 65536 - last.offset;
                          });
  auto header = *lathe::runtime::decodeHeader(file);
  put("manifest",
      Bytes(file.begin() + header.manifestOffset,
            file.begin() + header.manifestOffset + header.manifestBytes));
  return 0;
}
