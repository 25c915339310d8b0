#include "frontend/gguf/Header.h"

namespace lathe::frontend {

using runtime::ErrorKind;
using runtime::fail;
using runtime::Result;

namespace {

bool startsWith(std::span<const uint8_t> file, std::string_view prefix) {
  return file.size() >= prefix.size() &&
         textOf(file.first(prefix.size())) == prefix;
}

/// What a file that is not GGUF probably is, as the end of a sentence.
std::string_view guess(std::span<const uint8_t> file) {
  using namespace std::string_view_literals;
  if (startsWith(file, "PK\3\4"))
    return "it is a zip archive, perhaps a PyTorch checkpoint; convert it to "
           "GGUF first";
  if (startsWith(file, "version https://git-lfs"))
    return "it is a Git LFS pointer; run `git lfs pull` to fetch the model";
  if (startsWith(file, "<!DOCTYPE") || startsWith(file, "<!doctype") ||
      startsWith(file, "<html"))
    return "it is a web page; the download went wrong";
  for (std::string_view old : {"lmgg"sv, "fmgg"sv, "tjgg"sv, "algg"sv})
    if (startsWith(file, old))
      return "it is an old GGML file; convert it to GGUF first";
  if (startsWith(file, "\x1f\x8b") || startsWith(file, "\x28\xb5\x2f\xfd") ||
      startsWith(file, "\xfd"
                       "7zXZ"))
    return "it is compressed; decompress it first";
  // safetensors: u64 length of a JSON object, then the object.
  ByteCursor cursor(file);
  auto length = cursor.take<uint64_t>();
  auto brace = cursor.take<char>();
  if (length && brace && *brace == '{' && *length <= file.size() - 8)
    return "it looks like safetensors; pass the folder that holds it and its "
           "config.json";
  return "it does not start with the bytes GGUF";
}

} // namespace

Result<void> checkMagic(std::span<const uint8_t> file) {
  if (file.empty())
    return fail(ErrorKind::InvalidInput, "the file is empty");
  ByteCursor cursor(file);
  auto magic = cursor.take(4);
  if (magic && textOf(*magic) == "FUGG")
    return fail(ErrorKind::Unsupported,
                "the file is in big-endian byte order; Lathe reads "
                "little-endian GGUF only");
  if (!magic || textOf(*magic) != "GGUF")
    return fail(ErrorKind::InvalidInput, "not a GGUF file: {}", guess(file));
  auto version = cursor.take<uint32_t>();
  if (!version)
    return fail(ErrorKind::InvalidInput,
                "truncated: the file ends inside the version number");
  // A version below 65536 in the other byte order.
  if (*version != 0 && (*version & 0xffff) == 0)
    return fail(ErrorKind::Unsupported,
                "the file is in big-endian byte order; Lathe reads "
                "little-endian GGUF only");
  if (*version != 2 && *version != 3)
    return fail(ErrorKind::Unsupported,
                "GGUF version {}; Lathe reads versions 2 and 3", *version);
  return {};
}

} // namespace lathe::frontend
