#include "tests/e2e/real/GoldenModel.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

using namespace lathe;
using namespace lathe::tests;

GoldenModel::GoldenModel(const std::string &name) {
  std::ifstream in("tests/golden/golden/" + name + ".json");
  golden = nlohmann::json::parse(in);
  auto file = golden.at("model").get<std::string>();
  const char *folder = std::getenv("LATHE_MODELS");
  path = folder ? std::string(folder) + "/" + file : "";
  if (!std::filesystem::exists(path))
    missing =
        "SKIPPED, NOT TESTED: set LATHE_MODELS to the folder that holds " +
        file;
}

std::vector<i32> GoldenModel::text(u32 length) const {
  std::vector<i32> tokens;
  while (tokens.size() < length)
    for (const auto &prompt : golden.at("prompts"))
      for (const char *part : {"ids", "greedy"})
        for (const auto &id : prompt.at(part))
          tokens.push_back(id.get<i32>());
  tokens.resize(length);
  return tokens;
}
