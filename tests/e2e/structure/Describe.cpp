#include "tests/e2e/structure/Describe.h"

#include "frontend/gguf/GgufFile.h"
#include "runtime/engine/StepCost.h"
#include "runtime/engine/Validate.h"

#include <algorithm>
#include <map>
#include <sstream>
#include <stdexcept>

using namespace lathe;
using namespace lathe::tests;
using runtime::LoadedEngine;
using runtime::viewOf;

namespace {

namespace fb = engine::fb;

const fb::EntryPoint &entryOf(const LoadedEngine &engine,
                              std::string_view name) {
  for (const fb::EntryPoint *entry : *engine.manifestProgram().entries())
    if (viewOf(entry->name()) == name)
      return *entry;
  throw std::runtime_error("no entry point " + std::string(name));
}

/// A step of one token at the start of a text: no table or cache beyond it.
const runtime::StepShape oneToken = {.sequences = {{0, 1}}, .headRows = 1};

std::string launchText(const LoadedEngine &engine, const fb::Launch &launch) {
  const fb::Kernel &kernel =
      *(*engine.manifestProgram().kernels())[launch.kernel()];
  std::string text(viewOf(kernel.skeleton()));
  std::string formats;
  for (const std::string &format :
       runtime::weightFormats(engine.engine().manifest(), launch))
    formats += (formats.empty() ? "" : "+") + format;
  return text + (formats.empty() ? "" : ":") + formats +
         (launch.wanted() ? "*" : "");
}

/// What stands for a layer: its launches, each after the barrier before it in
/// steps of few and of many rows.
std::map<i32, std::string> layersOf(const LoadedEngine &engine,
                                    const std::string &name) {
  Barriers few = barriersOf(engine, name, true),
           many = barriersOf(engine, name, false);
  const auto &launches = *entryOf(engine, name).launches();
  std::map<i32, std::string> layers;
  for (u32 i = 0; i < launches.size(); ++i)
    layers[launches[i]->layer()] += std::string(few.before[i]    ? " |"
                                                : many.before[i] ? " /"
                                                                 : "") +
                                    " " + launchText(engine, *launches[i]);
  return layers;
}

std::string describeEntry(const LoadedEngine &engine, const std::string &name) {
  std::ostringstream out;
  out << name << ": " << entryOf(engine, name).launches()->size()
      << " launches, " << barriersOf(engine, name, true).all
      << " barriers in a step of few rows, "
      << barriersOf(engine, name, false).all << " in others\n";
  std::map<i32, std::string> layers = layersOf(engine, name);
  // Ranges of equal layers; the parts outside of layers come first.
  for (auto at = layers.begin(); at != layers.end();) {
    auto last = at;
    for (auto next = std::next(last);
         next != layers.end() && at->first >= 0 &&
         next->first == last->first + 1 && next->second == at->second;
         ++next)
      last = next;
    if (at->first < 0)
      out << "  outside:";
    else if (at == last)
      out << "  layer " << at->first << ":";
    else
      out << "  layers " << at->first << " to " << last->first << ":";
    out << at->second << "\n";
    at = std::next(last);
  }
  return out.str();
}

} // namespace

Barriers tests::barriersOf(const LoadedEngine &engine, const std::string &entry,
                           bool few) {
  auto sources = engine.engine().sources(engine.target());
  if (!sources)
    throw std::runtime_error(sources.error().message);
  const auto &described = entryOf(engine, entry);
  std::string function = "static void " +
                         std::string(viewOf(described.symbol())) +
                         (few ? "_few(" : "_many(");
  size_t begin = sources->find(function);
  size_t end = sources->find("\n}\n", begin);
  if (begin == std::string::npos || end == std::string::npos)
    throw std::runtime_error("no function " + function);
  std::istringstream lines(sources->substr(begin, end - begin));
  Barriers barriers;
  bool waits = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.find(" wait(args, threads);") != std::string::npos) {
      waits = true;
      ++barriers.all;
    } else if (line.starts_with("  { // ") && line.size() > 7 &&
               line[7] >= '0' && line[7] <= '9') {
      barriers.before.push_back(waits);
      waits = false;
    }
  }
  if (barriers.before.size() != described.launches()->size())
    throw std::runtime_error(function + " has not the program's launches");
  return barriers;
}

u32 tests::mostBarriersPerLayer(const LoadedEngine &engine) {
  Barriers barriers = barriersOf(engine, "body", true);
  const auto &launches = *entryOf(engine, "body").launches();
  std::map<i32, u32> counts;
  for (u32 i = 0; i < launches.size(); ++i)
    if (launches[i]->layer() >= 0)
      counts[launches[i]->layer()] += barriers.before[i];
  u32 most = 0;
  for (auto [layer, count] : counts)
    most = std::max(most, count);
  return most;
}

u64 tests::weightBytesPerToken(const LoadedEngine &engine) {
  runtime::LaunchCost cost;
  for (const char *name : {"body", "head"})
    for (const fb::Launch *launch : *entryOf(engine, name).launches())
      cost += runtime::costOf(engine.engine().manifest(),
                              engine.manifestProgram(), *launch, oneToken);
  return cost.weightBytes;
}

u64 tests::sourceBytesPerToken(const std::string &path) {
  auto file = frontend::GgufFile::open(path);
  if (!file)
    throw std::runtime_error(file.error().message);
  bool tied = !file->findTensor("output.weight");
  u64 bytes = 0;
  for (const frontend::GgufTensor &tensor : file->tensors()) {
    bool isEmbedding = tensor.name == "token_embd.weight";
    if (!isEmbedding || tied)
      bytes += tensor.data.size();
    if (isEmbedding)
      bytes += tensor.data.size() / tensor.rows();
  }
  return bytes;
}

std::string tests::describe(const LoadedEngine &engine) {
  return describeEntry(engine, "body") + describeEntry(engine, "head") +
         "weights of a token: " + std::to_string(weightBytesPerToken(engine)) +
         " bytes\n";
}
