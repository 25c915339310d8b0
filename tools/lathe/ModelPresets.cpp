/// \file
/// Sizes of well-known models, as their published config.json have them.

#include "tools/lathe/Decoder.h"
#include "tools/lathe/ModelSizes.h"

#include "runtime/support/Quote.h"

#include <algorithm>

using namespace lathe;
using namespace lathe::tools;
using runtime::ErrorKind;
using runtime::fail;
using runtime::failFrom;

namespace {

struct Preset {
  std::string_view name;
  std::string_view family;
  u32 layers, hidden, feedForward, heads, kvHeads, headDim, vocab, context;
  bool tied = false;
  u32 window = 0;
  u32 fullEvery = 0; ///< One layer of so many sees all; 0: none does.
};

constexpr Preset presets[] = {
    {"gemma-3-270m", "gemma3", 18, 640, 2048, 4, 1, 256, 262144, 32768, true,
     512, 6},
    {"gemma-3-1b", "gemma3", 26, 1152, 6912, 4, 1, 256, 262144, 32768, true,
     512, 6},
    {"gemma-3-4b", "gemma3", 34, 2560, 10240, 8, 4, 256, 262208, 131072, true,
     1024, 6},
    {"gemma-3-12b", "gemma3", 48, 3840, 15360, 16, 8, 256, 262208, 131072, true,
     1024, 6},
    {"gemma-3-27b", "gemma3", 62, 5376, 21504, 32, 16, 128, 262208, 131072,
     true, 1024, 6},
    {"llama-2-7b", "llama", 32, 4096, 11008, 32, 32, 128, 32000, 4096},
    {"llama-2-13b", "llama", 40, 5120, 13824, 40, 40, 128, 32000, 4096},
    {"llama-2-70b", "llama", 80, 8192, 28672, 64, 8, 128, 32000, 4096},
    {"llama-3-8b", "llama", 32, 4096, 14336, 32, 8, 128, 128256, 8192},
    {"llama-3-70b", "llama", 80, 8192, 28672, 64, 8, 128, 128256, 8192},
    {"llama-3.1-8b", "llama", 32, 4096, 14336, 32, 8, 128, 128256, 131072},
    {"llama-3.1-70b", "llama", 80, 8192, 28672, 64, 8, 128, 128256, 131072},
    {"llama-3.1-405b", "llama", 126, 16384, 53248, 128, 8, 128, 128256, 131072},
    {"llama-3.2-1b", "llama", 16, 2048, 8192, 32, 8, 64, 128256, 131072, true},
    {"llama-3.2-3b", "llama", 28, 3072, 8192, 24, 8, 128, 128256, 131072, true},
    {"llama-3.3-70b", "llama", 80, 8192, 28672, 64, 8, 128, 128256, 131072},
    {"mistral-7b", "mistral", 32, 4096, 14336, 32, 8, 128, 32768, 32768},
    {"mistral-7b-v0.1", "mistral", 32, 4096, 14336, 32, 8, 128, 32000, 32768,
     false, 4096},
    {"qwen2.5-0.5b", "qwen2", 24, 896, 4864, 14, 2, 64, 151936, 32768, true},
    {"qwen2.5-1.5b", "qwen2", 28, 1536, 8960, 12, 2, 128, 151936, 32768, true},
    {"qwen2.5-3b", "qwen2", 36, 2048, 11008, 16, 2, 128, 151936, 32768, true},
    {"qwen2.5-7b", "qwen2", 28, 3584, 18944, 28, 4, 128, 152064, 32768},
    {"qwen2.5-14b", "qwen2", 48, 5120, 13824, 40, 8, 128, 152064, 32768},
    {"qwen2.5-32b", "qwen2", 64, 5120, 27648, 40, 8, 128, 152064, 32768},
    {"qwen2.5-72b", "qwen2", 80, 8192, 29568, 64, 8, 128, 152064, 32768},
    {"qwen3-0.6b", "qwen3", 28, 1024, 3072, 16, 8, 128, 151936, 40960, true},
    {"qwen3-1.7b", "qwen3", 28, 2048, 6144, 16, 8, 128, 151936, 40960, true},
    {"qwen3-4b", "qwen3", 36, 2560, 9728, 32, 8, 128, 151936, 40960, true},
    {"qwen3-8b", "qwen3", 36, 4096, 12288, 32, 8, 128, 151936, 40960},
    {"qwen3-14b", "qwen3", 40, 5120, 17408, 40, 8, 128, 151936, 40960},
    {"qwen3-32b", "qwen3", 64, 5120, 25600, 64, 8, 128, 151936, 40960},
    {"smollm2-135m", "llama", 30, 576, 1536, 9, 3, 64, 49152, 8192, true},
    {"smollm2-360m", "llama", 32, 960, 2560, 15, 5, 64, 49152, 8192, true},
    {"smollm2-1.7b", "llama", 24, 2048, 8192, 32, 32, 64, 49152, 8192, true},
};

} // namespace

runtime::Result<ModelSizes> tools::sizesOfPreset(const std::string &name) {
  const auto *preset = std::ranges::find(presets, name, &Preset::name);
  if (preset == std::end(presets)) {
    std::string known;
    for (const Preset &each : presets)
      known += (known.empty() ? "" : ", ") + std::string(each.name);
    return fail(ErrorKind::NotFound, "no preset is called {}; known are {}",
                runtime::quoted(name), known);
  }
  u32 full = preset->fullEvery ? preset->layers / preset->fullEvery : 0;
  auto shape = Decoder{.name = name,
                       .family = findFamily(preset->family),
                       .layers = preset->layers,
                       .hidden = preset->hidden,
                       .feedForward = preset->feedForward,
                       .heads = preset->heads,
                       .kvHeads = preset->kvHeads,
                       .headDim = preset->headDim,
                       .vocab = preset->vocab,
                       .context = preset->context,
                       .window = preset->window,
                       .windowedLayers = preset->layers - full,
                       .tied = preset->tied}
                   .shape();
  if (!shape)
    return failFrom(shape, name);
  return ModelSizes{
      .shape = *shape,
      .weightBytes = runtime::bytesOfWeights(shape->parameters, 16),
      .gatheredBytes = runtime::bytesOfWeights(shape->gatheredParameters, 16)};
}
