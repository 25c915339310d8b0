#include "tools/lathe/ModelSizes.h"

#include "runtime/engine/Validate.h"
#include "runtime/support/Quote.h"
#include "tools/lathe/Decoder.h"

#include <algorithm>

using namespace lathe;
using namespace lathe::tools;
using frontend::GgufFile;
using frontend::GgufTensor;
using frontend::GgufType;
using frontend::GgufValue;
using runtime::displayPath;
using runtime::ErrorKind;
using runtime::fail;
using runtime::failFrom;
using runtime::Result;
using runtime::viewOf;
namespace fb = lathe::engine::fb;

namespace {

constexpr std::string_view embeddings = "token_embd", head = "output";

/// How many layers see only a window: those that the file marks, or all but
/// each Nth (frontend/models/Gemma3.cpp).
Result<u64> windowedLayers(const GgufFile &file, u64 layers) {
  constexpr std::string_view key = "gemma3.attention.sliding_window_pattern";
  const GgufValue *value = file.find(key);
  if (value && value->type == GgufType::Array) {
    auto flags = file.getI32Array(key);
    if (!flags)
      return failFrom(flags);
    return u64(std::ranges::count_if(*flags, [](i32 f) { return f != 0; }));
  }
  auto every = file.getU32(key, 6);
  if (!every)
    return failFrom(every);
  return *every == 0 ? layers : layers - layers / *every;
}

Result<Decoder> readDecoder(const GgufFile &file) {
  auto architecture = file.getString("general.architecture");
  if (!architecture)
    return failFrom(architecture);
  Decoder model{.family = findFamily(*architecture)};
  if (!model.family)
    return fail(ErrorKind::Unsupported,
                "architecture {} is not known; known are {}",
                runtime::quoted(*architecture), knownFamilies());
  auto name = file.getString("general.name", *architecture);
  if (!name)
    return failFrom(name);
  model.name = *name;
  std::string prefix = std::string(*architecture) + ".";
  std::optional<runtime::Error> error;
  auto read = [&](std::string_view key,
                  std::optional<u64> fallback = std::nullopt) -> u64 {
    std::string whole = prefix + std::string(key);
    auto value = fallback ? file.getU64(whole, *fallback) : file.getU64(whole);
    if (!value && !error)
      error = value.error();
    return value.value_or(0);
  };
  model.layers = read("block_count");
  model.hidden = read("embedding_length");
  model.feedForward = read("feed_forward_length");
  model.heads = read("attention.head_count");
  model.kvHeads = read("attention.head_count_kv", model.heads);
  model.headDim = read("attention.key_length",
                       model.heads ? model.hidden / model.heads : 0);
  model.context = read("context_length");
  if (model.family->name == "gemma3")
    model.window = read("attention.sliding_window", 0);
  if (error)
    return tl::unexpected(*error);
  auto windowed = model.window ? windowedLayers(file, model.layers) : u64(0);
  if (!windowed)
    return failFrom(windowed);
  model.windowedLayers = *windowed;
  auto table = file.getTensor(std::string(embeddings) + ".weight");
  if (!table)
    return failFrom(table);
  model.vocab = (*table)->rows();
  model.tied = !file.findTensor(std::string(head) + ".weight");
  return model;
}

} // namespace

Result<ModelSizes> tools::sizesOfGguf(const GgufFile &file) {
  std::string where = displayPath(file.path());
  auto model = readDecoder(file);
  if (!model) // readers name the file themselves
    return failFrom(model,
                    model.error().message.find(file.path()) == std::string::npos
                        ? where
                        : "");
  auto shape = model->shape();
  if (!shape)
    return failFrom(shape, where);
  // Counted, not computed: biases and the like differ between files.
  shape->parameters = 0;
  ModelSizes sizes{.shape = std::move(*shape)};
  for (const GgufTensor &tensor : file.tensors()) {
    if (tensor.name.starts_with("rope_"))
      continue; // angles, not parameters
    sizes.shape.parameters += tensor.k() * tensor.rows();
    sizes.weightBytes += tensor.data.size();
    if (!model->tied && tensor.name == std::string(embeddings) + ".weight")
      sizes.gatheredBytes = tensor.data.size();
    if (tensor.rows() > 1 && !kernels::isFloatFormat(tensor.format))
      sizes.quantized = true;
  }
  return sizes;
}

ModelSizes tools::sizesOfEngine(const runtime::Engine &engine) {
  const fb::Manifest &manifest = engine.manifest();
  const fb::Model &model = *manifest.model();
  ModelSizes sizes;
  sizes.shape.name = viewOf(model.name());
  sizes.shape.architecture = viewOf(model.architecture());
  sizes.shape.layers = model.layers();
  sizes.shape.vocab = model.vocab();
  sizes.shape.hidden = model.hidden();
  sizes.shape.context = model.context();
  sizes.shape.parameters = model.parameters();
  if (manifest.kv_groups())
    for (const fb::KvGroup *group : *manifest.kv_groups())
      sizes.shape.kinds.push_back({.layers = group->layers()->size(),
                                   .window = group->window(),
                                   .heads = group->query_heads(),
                                   .kvHeads = group->kv_heads(),
                                   .headDim = group->head_dim()});
  sizes.weightBytes = engine.weights().size();
  bool untied =
      std::ranges::any_of(*manifest.weights(), [](const fb::Weight *each) {
        return viewOf(each->name()) == head;
      });
  for (const fb::Weight *weight : *manifest.weights()) {
    if (untied && viewOf(weight->name()) == embeddings) {
      sizes.gatheredBytes = weight->bytes();
      sizes.shape.gatheredParameters = weight->rows() * weight->k();
    }
    auto format = kernels::formatFromName(viewOf(weight->format()));
    if (format && !kernels::isFloatFormat(*format))
      sizes.quantized = true;
  }
  return sizes;
}
