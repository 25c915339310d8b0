#include "tools/lathe/Places.h"

#include "runtime/engine/FileLayout.h"
#include "runtime/support/MappedFile.h"
#include "runtime/support/Quote.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>

using namespace lathe;
using namespace lathe::tools;
using runtime::displayPath;
using runtime::ErrorKind;
using runtime::fail;
using runtime::failFrom;
using runtime::quoted;
using runtime::Result;

namespace fs = std::filesystem;

namespace {

/// A short name and the file it stands for in the models directory.
struct KnownModel {
  std::string_view name;
  std::string_view file;
};

constexpr std::array<KnownModel, 2> knownModels = {{
    {"smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"},
    {"gemma3", "gemma-3-270m-Q4_K_M.gguf"},
}};

std::string absoluteVariable(const char *name) {
  const char *value = std::getenv(name);
  return value && *value == '/' ? value : "";
}

bool isFile(const fs::path &path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

/// A shard of a split model other than the first.
bool isLaterShard(std::string_view stem) {
  size_t of = stem.rfind("-of-");
  return of != std::string_view::npos && of >= 6 &&
         stem.substr(of - 6, 6) != "-00001";
}

void collect(const fs::path &folder, bool byName,
             std::vector<LocalModel> &models) {
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    const fs::path &path = it->path();
    if (!isFile(path) ||
        (path.extension() != ".gguf" && path.extension() != ".lathe") ||
        isLaterShard(path.stem().string()))
      continue;
    std::error_code sizeError;
    LocalModel model{path.filename().string(), path.string(),
                     fs::file_size(path, sizeError)};
    if (byName)
      for (const KnownModel &known : knownModels)
        if (known.file == model.name)
          model.name = known.name;
    models.push_back(std::move(model));
  }
}

} // namespace

std::string tools::cacheDirectory() {
  std::string cache = absoluteVariable("XDG_CACHE_HOME");
  if (!cache.empty())
    return cache + "/lathe";
  std::string home = absoluteVariable("HOME");
  return home.empty() ? "" : home + "/.cache/lathe";
}

std::string tools::engineCacheDirectory() {
  std::string cache = cacheDirectory();
  return cache.empty() ? "" : cache + "/engines";
}

std::string tools::modelsDirectory() {
  const char *models = std::getenv("LATHE_MODELS");
  if (models && *models)
    return models;
  std::string cache = cacheDirectory();
  return cache.empty() ? "" : cache + "/models";
}

Result<std::string> tools::findModel(const std::string &name) {
  if (name.empty())
    return fail(ErrorKind::InvalidInput, "the model's name is empty");
  std::error_code error;
  if (fs::exists(name, error) || name.find('/') != std::string::npos)
    return name;
  fs::path models = modelsDirectory();
  for (const KnownModel &known : knownModels) {
    if (known.name != name)
      continue;
    fs::path path = models / known.file;
    if (!models.empty() && isFile(path))
      return path.string();
    return fail(ErrorKind::NotFound,
                "{} is not in {}; tools/quickstart or tests/golden/"
                "fetch_models {} of Lathe's source tree fetches it",
                name, displayPath(models.string()), name);
  }
  if (!models.empty())
    for (std::string_view ending : {"", ".gguf", ".lathe"})
      if (fs::path path = models / (name + std::string(ending)); isFile(path))
        return path.string();
  return fail(ErrorKind::NotFound,
              "{}: no such file, nor a model of that name in {} (lathe run "
              "lists the models here)",
              displayPath(name), displayPath(models.string()));
}

Result<FileKind> tools::kindOf(const std::string &path) {
  auto file = runtime::MappedFile::open(path);
  if (!file)
    return failFrom(file);
  auto bytes = file->bytes();
  auto starts = [&](const auto &magic) {
    return bytes.size() >= magic.size() &&
           std::equal(magic.begin(), magic.end(), bytes.begin());
  };
  if (starts(std::string_view("GGUF")))
    return FileKind::Gguf;
  return path.ends_with(".lathe") || starts(runtime::engineMagic)
             ? FileKind::Engine
             : FileKind::Other;
}

std::vector<LocalModel> tools::localModels() {
  std::vector<LocalModel> models;
  if (std::string folder = modelsDirectory(); !folder.empty())
    collect(folder, true, models);
  collect(".", false, models);
  std::sort(models.begin(), models.end(),
            [](const LocalModel &a, const LocalModel &b) {
              return std::tie(a.name, a.path) < std::tie(b.name, b.path);
            });
  return models;
}
