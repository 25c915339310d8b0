#include "tests/e2e/seeded/SeededModel.h"

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

using namespace lathe;

namespace {

constexpr const char *goldenFolder = "tests/golden/seeded/";

const nlohmann::json &goldenJson() {
  static const nlohmann::json json = [] {
    std::ifstream in(std::string(goldenFolder) + "golden.json");
    return nlohmann::json::parse(in);
  }();
  return json;
}

} // namespace

std::vector<std::string> tests::seededNames() {
  std::vector<std::string> names;
  for (const auto &[name, entry] : goldenJson().at("cases").items())
    names.push_back(name);
  return names;
}

tests::Golden tests::readGolden(const std::string &name) {
  const nlohmann::json &json = goldenJson(), &entry = json.at("cases").at(name);
  Golden golden;
  json.at("tokens").get_to(golden.tokens);
  json.at("prompt_tokens").get_to(golden.promptTokens);
  json.at("logits_positions").get_to(golden.positions);
  json.at("vocabulary").get_to(golden.vocabulary);
  entry.at("greedy").get_to(golden.greedy);
  if (auto found = entry.find("peer_nmse"); found != entry.end())
    golden.peerNmse = found->get<f64>();
  golden.logits.resize(golden.positions.size() * golden.vocabulary);
  std::string path = std::string(goldenFolder) + "golden/" + name + ".f32";
  std::ifstream in(path, std::ios::binary);
  auto bytes = static_cast<std::streamsize>(golden.logits.size() * sizeof(f32));
  in.read(reinterpret_cast<char *>(golden.logits.data()), bytes);
  if (in.gcount() != bytes || in.peek() != std::ifstream::traits_type::eof())
    throw std::runtime_error(path + " is not a table of " +
                             std::to_string(bytes) + " bytes");
  return golden;
}

f64 tests::nmseOf(const std::vector<f32> &logits, const Golden &golden) {
  f64 error = 0, total = 0;
  for (size_t i = 0; i < golden.positions.size(); ++i)
    for (u32 v = 0; v < golden.vocabulary; ++v) {
      f64 wanted = golden.logits[i * golden.vocabulary + v];
      f64 found = logits[size_t(golden.positions[i]) * golden.vocabulary + v];
      error += (found - wanted) * (found - wanted);
      total += wanted * wanted;
    }
  return error / total;
}

std::string tests::seededPath(const std::string &name) {
  const char *build = std::getenv("LATHE_BINARY_DIR");
  return std::string(build ? build : ".") + "/tests/seeded/" + name + ".gguf";
}
