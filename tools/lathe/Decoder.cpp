#include "tools/lathe/Decoder.h"

#include <algorithm>
#include <array>

using namespace lathe;
using namespace lathe::tools;
using runtime::ErrorKind;
using runtime::fail;
using runtime::LayerKind;
using runtime::ModelShape;

namespace {

constexpr std::array<DecoderFamily, 5> families = {{
    {.name = "gemma3", .headNorms = true, .layerNorms = 4},
    {.name = "llama"},
    {.name = "mistral"},
    {.name = "qwen2", .attentionBias = true},
    {.name = "qwen3", .headNorms = true},
}};

struct Range {
  std::string_view key;
  u64 value;
  u64 most; ///< Far beyond any model's; products of them fit 64 bits.
};

} // namespace

const DecoderFamily *tools::findFamily(std::string_view name) {
  const auto *found = std::ranges::find(families, name, &DecoderFamily::name);
  return found == families.end() ? nullptr : found;
}

std::string tools::knownFamilies() {
  std::string names;
  for (const DecoderFamily &family : families)
    names += (names.empty() ? "" : ", ") + std::string(family.name);
  return names;
}

runtime::Result<ModelShape> Decoder::shape() const {
  for (const Range &range :
       {Range{"num_hidden_layers", layers, 4096},
        Range{"hidden_size", hidden, 1 << 20},
        Range{"intermediate_size", feedForward, 1 << 20},
        Range{"num_attention_heads", heads, 4096},
        Range{"num_key_value_heads", kvHeads, heads},
        Range{"head_dim", headDim, 4096}, Range{"vocab_size", vocab, 1 << 24},
        Range{"max_position_embeddings", context, 1 << 24}})
    if (range.value == 0 || range.value > range.most)
      return fail(ErrorKind::InvalidInput, "{} is {}; it must lie in 1 to {}",
                  range.key, range.value, range.most);
  if (heads % kvHeads != 0)
    return fail(ErrorKind::InvalidInput,
                "num_attention_heads, {}, is no multiple of "
                "num_key_value_heads, {}",
                heads, kvHeads);
  u64 queries = heads * headDim, keys = kvHeads * headDim;
  u64 layer = 2 * hidden * (queries + keys) + 3 * hidden * feedForward +
              family->layerNorms * hidden;
  if (family->attentionBias)
    layer += queries + 2 * keys;
  if (family->headNorms)
    layer += 2 * headDim;
  ModelShape shape{.name = name,
                   .architecture = std::string(family->name),
                   .layers = u32(layers),
                   .vocab = u32(vocab),
                   .hidden = u32(hidden),
                   .feedForward = u32(feedForward),
                   .context = u32(context)};
  u64 table = vocab * hidden;
  shape.parameters = layers * layer + hidden + table * (tied ? 1 : 2);
  shape.gatheredParameters = tied ? 0 : table;
  LayerKind kind{
      .heads = u32(heads), .kvHeads = u32(kvHeads), .headDim = u32(headDim)};
  u64 windowed = window == 0 ? 0 : std::min(windowedLayers, layers);
  for (bool local : {true, false}) {
    kind.layers = u32(local ? windowed : layers - windowed);
    kind.window = local ? u32(std::min<u64>(window, ~u32(0))) : 0;
    if (kind.layers != 0)
      shape.kinds.push_back(kind);
  }
  return shape;
}
