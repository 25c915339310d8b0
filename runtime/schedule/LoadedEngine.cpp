#include "runtime/schedule/LoadedEngine.h"
#include "runtime/engine/Validate.h"

namespace lathe::runtime {

namespace fb = engine::fb;

Result<std::shared_ptr<const LoadedEngine>>
LoadedEngine::load(std::shared_ptr<const Engine> engine, std::string_view isa) {
  CpuFeatures cpu = CpuFeatures::detect();
  auto target = engine->selectTarget(cpu, isa);
  if (!target)
    return failFrom(target);
  auto code = engine->loadCode(*target, cpu);
  if (!code)
    return failFrom(code);
  return std::shared_ptr<const LoadedEngine>(
      new LoadedEngine(std::move(engine), *target, std::move(*code)));
}

/// A strip for each head's K and V in each layer.
static std::vector<KvStrip> stripsOf(const fb::KvGroup &group) {
  u64 bytes = kvTileBytes(group);
  std::vector<KvStrip> strips;
  for (const auto *offsets : {group.k_offsets(), group.v_offsets()})
    for (u64 offset : *offsets)
      for (u64 head = 0; head < group.kv_heads(); ++head)
        strips.push_back({offset + head * bytes, bytes});
  return strips;
}

StepProgram sizesOf(const fb::Manifest &manifest, const fb::Program &program) {
  StepProgram sizes;
  sizes.vocab = manifest.model()->vocab();
  sizes.hidden = manifest.model()->hidden();
  sizes.context = manifest.model()->context();
  sizes.kv = manifest.kv();
  if (manifest.kv())
    for (const fb::KvGroup *group : *manifest.kv_groups())
      sizes.groups.push_back({.window = group->window(),
                              .pageBytes = group->page_bytes(),
                              .strips = stripsOf(*group),
                              .kvHeads = group->kv_heads()});
  if (program.slots())
    for (const fb::Size *size : *program.slots())
      sizes.slots.push_back({.rows = size->t(),
                             .sequences = size->s(),
                             .partials = size->c(),
                             .threads = size->n(),
                             .constant = size->e()});
  sizes.attentionChunk = program.attention_chunk();
  sizes.attentionRowTile = program.attention_row_tile();
  return sizes;
}

LoadedEngine::LoadedEngine(std::shared_ptr<const Engine> newEngine, u32 target,
                           CpuCode code)
    : opened(std::move(newEngine)), targetIndex(target),
      loadedCode(std::move(code)),
      stepProgram(sizesOf(opened->manifest(), manifestProgram())) {
  stepProgram.weights = opened->weights().data();
  stepProgram.body = loadedCode.entry("body");
  stepProgram.head = loadedCode.entry("head");
  stepProgram.pick = loadedCode.entry("pick");
}

std::string_view LoadedEngine::targetName() const {
  return viewOf((*opened->manifest().targets())[targetIndex]->name());
}

const fb::Program &LoadedEngine::manifestProgram() const {
  const fb::Manifest &manifest = opened->manifest();
  return *(*manifest.programs())[(*manifest.targets())[targetIndex]->program()];
}

} // namespace lathe::runtime
