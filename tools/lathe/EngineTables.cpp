#include "tools/lathe/EngineTables.h"

#include "kernels/abi/StepArgs.h"
#include "runtime/device/CpuFeatures.h"
#include "runtime/device/Memory.h"
#include "runtime/engine/Validate.h"
#include "runtime/support/Quote.h"
#include "tools/lathe/Signer.h"
#include "tools/lathe/Terminal.h"

#include <algorithm>

using namespace lathe;
using namespace lathe::tools;
using runtime::displayPath;
using runtime::Engine;
using runtime::ErrorKind;
using runtime::fail;
using runtime::formatBytes;
using runtime::Result;
using runtime::viewOf;
using Json = nlohmann::ordered_json;
namespace fb = lathe::engine::fb;

namespace {

/// A string of the file, safe to show.
std::string shown(const flatbuffers::String *text) {
  return displayPath(viewOf(text));
}

uint64_t saturated(unsigned __int128 value) {
  return uint64_t(std::min<unsigned __int128>(value, ~uint64_t{0}));
}

/// KV bytes of one sequence of so many tokens, without the reserved pages.
uint64_t kvBytes(const fb::Manifest &manifest, uint64_t tokens) {
  unsigned __int128 bytes = 0;
  if (manifest.kv_groups())
    for (const fb::KvGroup *group : *manifest.kv_groups()) {
      uint64_t held = group->kind() == fb::KvKind::Window
                          ? std::min<uint64_t>(tokens, group->window())
                          : tokens;
      bytes +=
          static_cast<unsigned __int128>((held + pageTokens - 1) / pageTokens) *
          group->page_bytes();
    }
  return saturated(bytes);
}

} // namespace

void tools::printOverview(const Engine &engine, bool json) {
  const fb::Manifest &manifest = engine.manifest();
  const fb::Model &model = *manifest.model();
  Json targets = Json::array(), sources = Json::array(),
       options = Json::array();
  for (const fb::Target *target : *manifest.targets())
    targets.push_back(shown(target->name()));
  if (manifest.sources())
    for (const fb::SourceFile *source : *manifest.sources())
      sources.push_back({{"name", shown(source->name())},
                         {"bytes", source->bytes()},
                         {"sha256", shown(source->sha256())}});
  if (manifest.options())
    for (const flatbuffers::String *option : *manifest.options())
      options.push_back(shown(option));
  if (json) {
    printJson({{"file", engine.path()},
               {"bytes", engine.fileBytes()},
               {"producer", shown(manifest.producer())},
               {"architecture", shown(model.architecture())},
               {"name", shown(model.name())},
               {"parameters", model.parameters()},
               {"layers", model.layers()},
               {"hidden", model.hidden()},
               {"vocab", model.vocab()},
               {"context", model.context()},
               {"kv", manifest.kv()},
               {"weight_bytes", engine.weights().size()},
               {"targets", targets},
               {"options", options},
               {"sources", sources},
               {"signature", nameOf(engine.trust().state)}});
    return;
  }
  auto row = [](std::string_view name, std::string_view text) {
    printOut("{:<11} {}\n", name, text);
  };
  row("file", fmt::format("{}, {}", displayPath(engine.path()),
                          formatBytes(engine.fileBytes())));
  row("model", fmt::format("{} ({}), {:.1f} M parameters", shown(model.name()),
                           shown(model.architecture()),
                           double(model.parameters()) / 1e6));
  row("shape", fmt::format("{}, hidden {}, vocabulary {}, context {}",
                           counted(model.layers(), "layer"), model.hidden(),
                           model.vocab(), model.context()));
  row("weights",
      fmt::format("{}, {}", counted(manifest.weights()->size(), "tensor"),
                  formatBytes(engine.weights().size())));
  std::string list;
  for (const Json &target : targets)
    list += (list.empty() ? "" : ", ") + target.get<std::string>();
  row("targets", list);
  row("KV cache", manifest.kv()
                      ? fmt::format("{} per 1024 tokens",
                                    formatBytes(kvBytes(manifest, 1024)))
                      : std::string("none: each step evaluates the sequence"));
  for (const Json &source : sources)
    row("made from", fmt::format("{}, {}", source["name"].get<std::string>(),
                                 formatBytes(source["bytes"])));
  row("made by", shown(manifest.producer()));
  row("signature", describe(engine.trust()));
}

void tools::printWeights(const Engine &engine, bool json) {
  Json list = Json::array();
  for (const fb::Weight *weight : *engine.manifest().weights()) {
    if (json)
      list.push_back({{"name", shown(weight->name())},
                      {"model_name", shown(weight->model_name())},
                      {"format", shown(weight->format())},
                      {"layout", shown(weight->layout())},
                      {"rows", weight->rows()},
                      {"k", weight->k()},
                      {"offset", weight->offset()},
                      {"bytes", weight->bytes()}});
    else
      printOut("{:<32} {:<6} {:<5} {:>8} x {:<6} {:>12}\n",
               shown(weight->name()), shown(weight->format()),
               shown(weight->layout()), weight->rows(), weight->k(),
               formatBytes(weight->bytes()));
  }
  if (json)
    printJson(list);
}

void tools::printMemory(const Engine &engine, bool json) {
  const fb::Manifest &manifest = engine.manifest();
  Json groups = Json::array(), slots = Json::array();
  if (manifest.kv_groups())
    for (const fb::KvGroup *group : *manifest.kv_groups())
      groups.push_back({{"id", group->id()},
                        {"kind", fb::EnumNameKvKind(group->kind())},
                        {"window", group->window()},
                        {"layers", group->layers()->size()},
                        {"kv_heads", group->kv_heads()},
                        {"head_dim", group->head_dim()},
                        {"dtype", shown(group->dtype())},
                        {"page_bytes", group->page_bytes()}});
  // All targets of one compilation share a plan.
  const fb::Program &program = *(*manifest.programs())[0];
  for (const fb::Size *size : *program.slots())
    slots.push_back({{"per_row", size->t()},
                     {"per_sequence", size->s()},
                     {"per_partial", size->c()},
                     {"per_thread", size->n()},
                     {"constant", size->e()}});
  uint64_t context = manifest.model()->context();
  if (json) {
    printJson({{"weight_bytes", engine.weights().size()},
               {"kv_groups", groups},
               {"kv_bytes_of_context", kvBytes(manifest, context)},
               {"slots", slots}});
    return;
  }
  printOut("weights  {}, mapped\n", formatBytes(engine.weights().size()));
  for (const Json &group : groups)
    printOut("KV group {}: {}{}, {}, {} of {} in {}, {} per page of {} "
             "tokens\n",
             group["id"].get<uint32_t>(), group["kind"].get<std::string>(),
             group["window"] == 0
                 ? ""
                 : fmt::format(" of {}", group["window"].get<uint32_t>()),
             counted(group["layers"].get<uint32_t>(), "layer"),
             counted(group["kv_heads"].get<uint32_t>(), "head"),
             group["head_dim"].get<uint32_t>(),
             group["dtype"].get<std::string>(),
             formatBytes(group["page_bytes"]), pageTokens);
  for (uint64_t tokens : {uint64_t{1024}, context})
    printOut("KV cache of {} tokens: {}\n", tokens,
             formatBytes(kvBytes(manifest, tokens)));
  uint32_t number = 0;
  for (const Json &slot : slots)
    printOut("slot {:<3} {:>8} bytes per row, {} per sequence, {} per partial, "
             "{} per thread, {} constant\n",
             number++, slot["per_row"].get<uint64_t>(),
             slot["per_sequence"].get<uint64_t>(),
             slot["per_partial"].get<uint64_t>(),
             slot["per_thread"].get<uint64_t>(),
             slot["constant"].get<uint64_t>());
}

void tools::printTargets(const Engine &engine, bool json) {
  runtime::CpuFeatures cpu = runtime::CpuFeatures::detect();
  Json list = Json::array();
  for (const fb::Target *target : *engine.manifest().targets()) {
    std::string missing;
    for (const std::string &feature :
         runtime::splitNames(viewOf(target->required_features())))
      if (!cpu.has(feature))
        missing += (missing.empty() ? "" : " ") + displayPath(feature);
    const fb::Section &code = *(*engine.manifest().sections())[target->code()];
    list.push_back({{"name", shown(target->name())},
                    {"required_features",
                     std::string(viewOf(target->required_features()))},
                    {"missing_here", missing},
                    {"code_bytes", code.bytes()}});
  }
  if (json) {
    printJson(list);
    return;
  }
  printOut("this CPU: {}\n", cpu.summary());
  for (const Json &target : list) {
    std::string missing = target["missing_here"];
    std::string required = target["required_features"];
    printOut("{:<12} {:>10} of code, {}; needs {}\n",
             target["name"].get<std::string>(),
             formatBytes(target["code_bytes"]),
             missing.empty() ? "runs here" : "this CPU lacks " + missing,
             required.empty() ? "nothing beyond x86-64" : printable(required));
  }
}

void tools::printKernels(const Engine &engine, uint32_t target, bool json) {
  const fb::Manifest &manifest = engine.manifest();
  const fb::Program &program =
      *(*manifest.programs())[(*manifest.targets())[target]->program()];
  std::vector<uint32_t> launches(program.kernels()->size());
  for (const fb::EntryPoint *entry : *program.entries())
    for (const fb::Launch *launch : *entry->launches())
      ++launches[launch->kernel()];
  Json list = Json::array();
  for (uint32_t i = 0; i < program.kernels()->size(); ++i) {
    const fb::Kernel &kernel = *(*program.kernels())[i];
    if (json)
      list.push_back({{"symbol", shown(kernel.symbol())},
                      {"skeleton", shown(kernel.skeleton())},
                      {"summary", shown(kernel.summary())},
                      {"launches", launches[i]},
                      {"weight_bytes", kernel.weight_bytes()},
                      {"macs_per_row", kernel.macs_per_row()},
                      {"operands", shown(kernel.operand_names())}});
    else
      printOut("{:<16} {:>4} {:<9} {:>10} of weights each  {}\n",
               shown(kernel.symbol()), launches[i],
               launches[i] == 1 ? "launch," : "launches,",
               formatBytes(kernel.weight_bytes()), shown(kernel.summary()));
  }
  if (json)
    printJson(list);
}

Result<std::string> tools::findKernel(const Engine &engine, uint32_t target,
                                      const std::string &name) {
  const fb::Manifest &manifest = engine.manifest();
  const fb::Program &program =
      *(*manifest.programs())[(*manifest.targets())[target]->program()];
  std::string known;
  for (uint32_t i = 0; i < program.kernels()->size(); ++i) {
    std::string symbol(viewOf((*program.kernels())[i]->symbol()));
    if (name == symbol || name == std::to_string(i) ||
        name == "k" + std::to_string(i))
      return symbol;
    known += (known.empty() ? "" : ", ") + displayPath(symbol);
  }
  return fail(ErrorKind::NotFound, "{}: has no kernel {}; it has {}",
              displayPath(engine.path()), runtime::quoted(name), known);
}
