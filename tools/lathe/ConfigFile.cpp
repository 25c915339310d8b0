/// \file
/// A config.json as Hugging Face's transformers writes it: which keys decide a
/// model's sizes.

#include "tools/lathe/Decoder.h"
#include "tools/lathe/ModelSizes.h"

#include "runtime/support/MappedFile.h"
#include "runtime/support/Quote.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

using namespace lathe;
using namespace lathe::tools;
using nlohmann::json;
using runtime::displayPath;
using runtime::Error;
using runtime::ErrorKind;
using runtime::fail;
using runtime::failFrom;
using runtime::Result;

namespace {

/// Hundreds of times larger than what models have.
constexpr u64 configBytesMax = 16 << 20;

/// Reads values of one object; the first error is kept.
class Keys {
public:
  explicit Keys(const json &object) : object(object) {}

  bool has(const char *key) const {
    auto found = object.find(key);
    return found != object.end() && !found->is_null();
  }

  u64 number(const char *key, std::optional<u64> fallback = std::nullopt) {
    if (!has(key)) {
      if (!fallback)
        keep("key '{}' is missing", key);
      return fallback.value_or(0);
    }
    const json &value = object.at(key);
    if (value.is_number_unsigned())
      return value.get<u64>();
    keep("key '{}' is not a whole number", key);
    return 0;
  }

  bool flag(const char *key, bool fallback) {
    if (!has(key))
      return fallback;
    const json &value = object.at(key);
    if (!value.is_boolean())
      keep("key '{}' is neither true nor false", key);
    return value.is_boolean() && value.get<bool>();
  }

  std::string text(const char *key) {
    if (!has(key))
      return {};
    const json &value = object.at(key);
    if (!value.is_string())
      keep("key '{}' is not a string", key);
    return value.is_string() ? value.get<std::string>() : std::string();
  }

  const json *find(const char *key) const {
    return has(key) ? &object.at(key) : nullptr;
  }

  Result<void> check() const {
    if (first)
      return tl::unexpected(*first);
    return {};
  }

private:
  void keep(fmt::format_string<const char *&> message, const char *key) {
    if (!first)
      first = {ErrorKind::InvalidInput, fmt::format(message, key)};
  }

  const json &object;
  std::optional<Error> first;
};

/// How many layers see only a window: those that layer_types says, those that
/// are no Nth of a pattern, those behind max_window_layers, or all.
u64 windowedLayers(Keys &keys, const Decoder &model) {
  if (const json *types = keys.find("layer_types"); types && types->is_array())
    return u64(std::ranges::count(*types, json("sliding_attention")));
  if (model.family->name == "gemma3") {
    u64 every = keys.number("sliding_window_pattern", 6);
    return every == 0 ? model.layers : model.layers - model.layers / every;
  }
  if (!model.family->name.starts_with("qwen"))
    return model.layers;
  if (!keys.flag("use_sliding_window", false))
    return 0;
  u64 full = keys.number("max_window_layers", 0);
  return model.layers - std::min(model.layers, full);
}

Decoder readDecoder(Keys &keys, const DecoderFamily &family) {
  // What transformers' classes assume where a file is silent.
  bool gemma = family.name == "gemma3";
  auto ofGemma = [&](u64 value) {
    return gemma ? std::optional(value) : std::nullopt;
  };
  Decoder model{.family = &family};
  model.layers = keys.number("num_hidden_layers");
  model.hidden = keys.number("hidden_size");
  model.feedForward = keys.number("intermediate_size");
  model.heads = keys.number("num_attention_heads", ofGemma(8));
  model.kvHeads = keys.number("num_key_value_heads", gemma ? 4 : model.heads);
  model.headDim =
      keys.number("head_dim", gemma              ? 256
                              : model.heads != 0 ? model.hidden / model.heads
                                                 : 0);
  model.vocab = keys.number("vocab_size", ofGemma(262208));
  model.context = keys.number("max_position_embeddings", ofGemma(131072));
  model.window = keys.number("sliding_window", gemma ? 4096 : 0);
  model.windowedLayers = windowedLayers(keys, model);
  model.tied = keys.flag("tie_word_embeddings", gemma);
  return model;
}

/// Bits of a weight as the file says that they are stored.
Result<f64> bitsOf(Keys &keys) {
  if (const json *quantization = keys.find("quantization_config");
      quantization && quantization->is_object()) {
    Keys own(*quantization);
    u64 bits = own.number("bits", 0);
    for (const auto &precision : runtime::weightPrecisions())
      if (precision.bits == bits)
        return precision.formatBits;
    return fail(ErrorKind::Unsupported,
                "quantization_config has no 'bits' of 4, 8, 16 or 32; say with "
                "--weights how weights are stored");
  }
  std::string dtype = keys.text("torch_dtype");
  if (dtype.empty())
    dtype = keys.text("dtype");
  return dtype == "float32" ? 32 : 16;
}

Result<ModelSizes> read(const json &document) {
  // Of a model that also sees, the part that reads and writes text.
  const json &part =
      document.contains("text_config") && document.at("text_config").is_object()
          ? document.at("text_config")
          : document;
  Keys outer(document), keys(part);
  std::string type = keys.text("model_type");
  if (type.empty())
    type = outer.text("model_type");
  for (const Keys *each : {&keys, &outer})
    if (auto valid = each->check(); !valid)
      return failFrom(valid);
  if (type.empty())
    return fail(ErrorKind::InvalidInput,
                "key 'model_type' is missing; is this a model's config.json?");
  const DecoderFamily *family =
      findFamily(type == "gemma3_text" ? "gemma3" : type);
  if (!family)
    return fail(ErrorKind::Unsupported,
                "architecture {} is not known; known are {}",
                runtime::quoted(type), knownFamilies());
  Decoder model = readDecoder(keys, *family);
  if (&part != &document && !keys.has("tie_word_embeddings"))
    model.tied = outer.flag("tie_word_embeddings", model.tied);
  model.name = outer.text("_name_or_path");
  auto bits =
      bitsOf(keys.has("torch_dtype") || keys.has("dtype") ? keys : outer);
  for (const Keys *each : {&keys, &outer})
    if (auto valid = each->check(); !valid)
      return failFrom(valid);
  if (!bits)
    return failFrom(bits);
  auto shape = model.shape();
  if (!shape)
    return failFrom(shape);
  return ModelSizes{
      .shape = *shape,
      .weightBytes = runtime::bytesOfWeights(shape->parameters, *bits),
      .gatheredBytes =
          runtime::bytesOfWeights(shape->gatheredParameters, *bits),
      .quantized = *bits < 16};
}

} // namespace

Result<ModelSizes> tools::sizesOfConfig(const std::string &path) {
  auto file = runtime::MappedFile::open(path);
  if (!file)
    return failFrom(file);
  std::string where = displayPath(path);
  auto bytes = file->bytes();
  json document = bytes.size() > configBytesMax
                      ? json(json::value_t::discarded)
                      : json::parse(bytes.begin(), bytes.end(), nullptr, false);
  if (!document.is_object())
    return fail(ErrorKind::InvalidInput,
                "{}: neither a GGUF model nor an engine nor a config.json",
                where);
  auto sizes = read(document);
  if (!sizes)
    return failFrom(sizes, where);
  if (sizes->shape.name.empty())
    sizes->shape.name = where;
  return sizes;
}
