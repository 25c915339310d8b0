#include "runtime/serve/http/RequestId.h"
#include "kernels/abi/Types.h"

#include <algorithm>
#include <fmt/format.h>
#include <random>

namespace lathe::runtime::http {

static bool isHarmless(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
         (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
}

std::string requestId(std::string_view fromClient) {
  if (!fromClient.empty() && fromClient.size() <= 64 &&
      std::all_of(fromClient.begin(), fromClient.end(), isHarmless))
    return std::string(fromClient);
  std::random_device device;
  u32 words[4];
  for (u32 &word : words)
    word = device();
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", words[0], words[1], words[2],
                     words[3]);
}

} // namespace lathe::runtime::http
