#include "tools/lathe/ModelIdentity.h"

#include "frontend/gguf/GgufFile.h"
#include "runtime/support/AtomicFile.h"
#include "runtime/support/MappedFile.h"
#include "runtime/support/Sha256.h"
#include "tools/lathe/Terminal.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

using namespace lathe;
using namespace lathe::tools;
using runtime::failFrom;
using runtime::Result;
using runtime::Sha256;
using Json = nlohmann::ordered_json;

namespace fs = std::filesystem;

namespace {

std::span<const uint8_t> bytesOf(std::string_view text) {
  return {reinterpret_cast<const uint8_t *>(text.data()), text.size()};
}

/// What tells cheaply whether a model is the one seen before. The times are
/// those of content and inode: the latter cannot be set back.
Json identityOf(const frontend::GgufFile &model) {
  Json files = Json::array();
  Sha256 header;
  for (uint32_t shard = 0; shard < model.shardCount(); ++shard) {
    struct stat info{};
    if (stat(model.shardPath(shard).c_str(), &info) != 0)
      info = {}; // Renamed meanwhile: equals nothing that was seen.
    files.push_back({info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec,
                     info.st_ctim.tv_sec, info.st_ctim.tv_nsec, info.st_ino,
                     info.st_dev});
    header.update(model.headerBytes(shard));
  }
  return {{"files", std::move(files)},
          {"header", Sha256::toHex(header.finish())}};
}

/// The content hash that the index has for this identity, or nothing.
std::string recall(const std::string &indexFile, const std::string &path,
                   const Json &identity) {
  auto file = runtime::MappedFile::open(indexFile);
  if (!file)
    return {};
  Json entry = Json::parse(file->bytes().begin(), file->bytes().end(), nullptr,
                           /*allow_exceptions=*/false);
  if (!entry.is_object() || entry.value("path", "") != path ||
      !entry.contains("identity") || entry["identity"] != identity)
    return {};
  const Json content = entry.value("content", Json());
  return content.is_string() ? content.get<std::string>() : std::string();
}

void remember(const std::string &indexFile, const std::string &path,
              const Json &identity, const std::string &content) {
  Json entry = {{"path", path}, {"identity", identity}, {"content", content}};
  std::string text = entry.dump(1, ' ', true, Json::error_handler_t::replace);
  auto file = runtime::AtomicFile::create(indexFile, 0600);
  // Without it the content is hashed again the next time.
  if (file && file->append(bytesOf(text)))
    (void)file->commit();
}

} // namespace

std::string tools::shortHash(const std::string &text) {
  return Sha256::toHex(Sha256::digest(bytesOf(text))).substr(0, 32);
}

Result<std::string> tools::contentHash(const std::string &path,
                                       const std::string &indexDirectory) {
  std::error_code error;
  fs::path canonical = fs::canonical(path, error);
  std::string name = error ? path : canonical.string();
  auto model = frontend::GgufFile::open(path);
  if (!model)
    return failFrom(model);
  Json identity = identityOf(*model);
  std::string indexFile = indexDirectory + "/" + shortHash(name) + ".json";
  if (!indexDirectory.empty())
    if (std::string content = recall(indexFile, name, identity);
        !content.empty())
      return content;

  constexpr size_t piece = size_t{16} << 20;
  Progress progress;
  uint64_t total = 0, done = 0;
  for (uint32_t shard = 0; shard < model->shardCount(); ++shard)
    total += model->shardBytes(shard).size();
  Sha256 hash;
  for (uint32_t shard = 0; shard < model->shardCount(); ++shard) {
    auto bytes = model->shardBytes(shard);
    for (size_t at = 0; at < bytes.size(); at += piece) {
      auto part = bytes.subspan(at, std::min(piece, bytes.size() - at));
      hash.update(part);
      done += part.size();
      progress.update("reading the model", done, total);
    }
  }
  std::string content = Sha256::toHex(hash.finish());
  if (!indexDirectory.empty())
    remember(indexFile, name, identity, content);
  return content;
}
