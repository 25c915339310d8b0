#include "frontend/gguf/GgufFile.h"

#include "frontend/gguf/Header.h"
#include "runtime/support/Quote.h"

#include <algorithm>

namespace lathe::frontend {

using runtime::displayPath;
using runtime::Error;
using runtime::ErrorKind;
using runtime::fail;
using runtime::failFrom;
using runtime::MappedFile;
using runtime::quoted;
using runtime::Result;

namespace {

/// One file, mapped, its header read and its tensors checked.
struct Shard {
  MappedFile file;
  Header header;
  std::vector<GgufTensor> tensors;
  /// split.no and split.count; 0 of 1 for a file that is not split.
  uint32_t number = 0;
  uint32_t count = 1;
};

Result<void> readSplit(Shard &shard) {
  const GgufValue *count = shard.header.find("split.count");
  if (!count)
    return {};
  auto total = integerOf<uint16_t>(*count);
  if (!total)
    return fail(ErrorKind::InvalidInput,
                "key 'split.count' is no count of files");
  shard.count = std::max<uint32_t>(*total, 1);
  const GgufValue *number = shard.header.find("split.no");
  auto index =
      number ? integerOf<uint16_t>(*number) : std::optional<uint16_t>(0);
  if (!index || *index >= shard.count)
    return fail(ErrorKind::InvalidInput,
                "key 'split.no' is not below 'split.count', {}", shard.count);
  shard.number = *index;
  return {};
}

Result<Shard> openShard(const std::string &path, uint32_t index) {
  auto file = MappedFile::open(path);
  if (!file)
    return failFrom(file);
  Shard shard;
  shard.file = std::move(*file);
  std::span<const uint8_t> bytes = shard.file.bytes();
  std::string where = displayPath(path);
  if (auto magic = checkMagic(bytes); !magic)
    return failFrom(magic, where);
  auto header = parseHeader(bytes);
  if (!header)
    return failFrom(header, where);
  shard.header = std::move(*header);
  if (auto split = readSplit(shard); !split)
    return failFrom(split, where);
  // The first file opened learns its own index only now.
  index = shard.count > 1 ? shard.number : index;
  if (auto tensors = resolveTensors(shard.header, bytes, index, shard.tensors);
      !tensors)
    return failFrom(tensors, where);
  return shard;
}

/// "-00002-of-00003.gguf"
std::string shardSuffix(uint32_t number, uint32_t count) {
  return fmt::format("-{:05}-of-{:05}.gguf", number + 1, count);
}

/// All shards of the model that `opened` is one of, in order.
Result<std::vector<Shard>> openAllShards(Shard opened) {
  uint32_t number = opened.number, count = opened.count;
  std::vector<Shard> shards;
  if (count == 1) {
    shards.push_back(std::move(opened));
    return shards;
  }
  std::string path = opened.file.path(), where = displayPath(path);
  std::string suffix = shardSuffix(number, count);
  if (!path.ends_with(suffix))
    return fail(ErrorKind::InvalidInput,
                "{}: by its keys this is shard {} of {} of a split model, so "
                "its name must end in {} (shards joined with cat cannot be "
                "read: keep them apart, or merge them with llama.cpp's "
                "llama-gguf-split --merge)",
                where, number + 1, count, suffix);
  std::string stem = path.substr(0, path.size() - suffix.size());
  for (uint32_t i = 0; i < count; ++i) {
    if (i == number)
      continue;
    std::string other = stem + shardSuffix(i, count);
    auto shard = openShard(other, i);
    if (!shard) {
      Error error = shard.error();
      if (error.kind == ErrorKind::NotFound)
        error.message = fmt::format("{}: shard {} of {} is missing: {}", where,
                                    i + 1, count, displayPath(other));
      return tl::unexpected<Error>(std::move(error));
    }
    if (shard->number != i || shard->count != count)
      return fail(ErrorKind::InvalidInput,
                  "{}: by its keys this is shard {} of {}, by its name {} of "
                  "{}",
                  displayPath(other), shard->number + 1, shard->count, i + 1,
                  count);
    shards.push_back(std::move(*shard));
  }
  shards.insert(shards.begin() + number, std::move(opened));
  return shards;
}

} // namespace

Result<GgufFile> GgufFile::open(const std::string &path) {
  auto opened = openShard(path, 0);
  if (!opened)
    return failFrom(opened);
  auto all = openAllShards(std::move(*opened));
  if (!all)
    return failFrom(all);

  GgufFile model;
  model.openedPath = path;
  for (Shard &shard : *all) {
    for (GgufTensor &tensor : shard.tensors) {
      auto index = static_cast<uint32_t>(model.tensorList.size());
      auto [at, added] = model.tensorIndex.emplace(tensor.name, index);
      if (!added)
        return fail(ErrorKind::InvalidInput, "{}: tensor {} is in shard {} too",
                    displayPath(shard.file.path()), quoted(tensor.name),
                    model.tensorList[at->second].shard + 1);
      model.tensorList.push_back(tensor);
    }
    model.headerSizes.push_back(shard.header.size);
    model.shards.push_back(std::move(shard.file));
  }
  Header &first = all->front().header;
  model.entryList = std::move(first.entries);
  model.entryIndex = std::move(first.entryIndex);

  if (model.shards.size() > 1) {
    auto total = model.getU64("split.tensors.count", model.tensorList.size());
    if (!total)
      return failFrom(total);
    if (*total != model.tensorList.size())
      return fail(ErrorKind::InvalidInput,
                  "{}: the shards hold {} tensors, but key "
                  "'split.tensors.count' says {}",
                  displayPath(path), model.tensorList.size(), *total);
  }
  if (auto tokenizer = model.checkTokenizer(); !tokenizer)
    return failFrom(tokenizer);
  return model;
}

/// The vocabulary's arrays run in parallel: one length for all.
Result<void> GgufFile::checkTokenizer() const {
  std::string where = displayPath(path());
  const GgufValue *tokens = find("tokenizer.ggml.tokens");
  if (tokens && (tokens->type != GgufType::Array || tokens->count == 0 ||
                 tokens->elementType != GgufType::String))
    return fail(ErrorKind::InvalidInput,
                "{}: key 'tokenizer.ggml.tokens' is {}, not a list of strings",
                where,
                tokens->type == GgufType::Array && tokens->count == 0
                    ? "an empty array"
                    : describeType(*tokens));
  for (std::string_view key :
       {"tokenizer.ggml.scores", "tokenizer.ggml.token_type"}) {
    const GgufValue *other = find(key);
    if (other && (other->type != GgufType::Array || !tokens ||
                  other->count != tokens->count))
      return fail(ErrorKind::InvalidInput,
                  "{}: key '{}' must be an array as long as "
                  "'tokenizer.ggml.tokens', {}; it has {}",
                  where, key, tokens ? tokens->count : 0, other->count);
  }
  return {};
}

const GgufTensor *GgufFile::findTensor(std::string_view name) const {
  auto found = tensorIndex.find(name);
  return found == tensorIndex.end() ? nullptr : &tensorList[found->second];
}

Result<const GgufTensor *> GgufFile::getTensor(std::string_view name) const {
  if (const GgufTensor *tensor = findTensor(name))
    return tensor;
  return fail(ErrorKind::NotFound, "{}: tensor {} is missing",
              displayPath(path()), quoted(name));
}

} // namespace lathe::frontend
