#include "kernels/abi/StepArgs.h"
#include "runtime/engine/Engine.h"
#include "runtime/engine/Validate.h"
#include "runtime/support/Quote.h"

#include <algorithm>
#include <cstdlib>

namespace lathe::runtime {

namespace fb = engine::fb;

namespace {

/// The features in a target's list that the CPU lacks, with ", " between.
std::string missing(const fb::Target &target, const CpuFeatures &cpu) {
  std::string text;
  for (const std::string &feature :
       splitNames(viewOf(target.required_features())))
    if (!cpu.has(feature))
      text += (text.empty() ? "" : ", ") + displayPath(feature);
  return text;
}

/// Place of an ISA layer in isaLayers(), greater is better; -1 if unknown.
int rankOf(std::string_view isa) {
  const auto &layers = isaLayers();
  auto found =
      std::find_if(layers.begin(), layers.end(),
                   [&](const IsaLayer &layer) { return layer.name == isa; });
  return found == layers.end() ? -1 : int(found - layers.begin());
}

/// "cpu:avx2 (this CPU lacks fma), cpu:generic".
std::string listOf(const fb::Manifest &manifest, const CpuFeatures &cpu) {
  std::string text;
  for (const fb::Target *target : *manifest.targets()) {
    std::string lacks = missing(*target, cpu);
    text += text.empty() ? "" : ", ";
    text += viewOf(target->name());
    if (!lacks.empty())
      text += " (this CPU lacks " + lacks + ")";
    else if (rankOf(viewOf(target->isa())) < 0)
      text += " (unknown to this version of lathe)";
  }
  return text;
}

} // namespace

Result<void> Engine::checkStepAbi() const {
  if (root->step_abi() == stepAbiVersion)
    return {};
  return failHere(
      {ErrorKind::Unsupported,
       fmt::format("its code is built for step ABI {}, expected {}: {} made "
                   "it; use that version of lathe or compile the model again",
                   root->step_abi(), stepAbiVersion,
                   quoted(viewOf(root->producer())))});
}

Result<uint32_t> Engine::selectTarget(const CpuFeatures &cpu,
                                      std::string_view forced) const {
  if (auto abi = checkStepAbi(); !abi)
    return failFrom(abi);
  std::string_view asked = forced;
  if (asked.empty())
    if (const char *variable = std::getenv("LATHE_ISA"))
      asked = variable;
  if (asked == "native" || asked == "cpu:native")
    asked = {};
  std::optional<uint32_t> best;
  int bestRank = -1;
  const auto &targets = *root->targets();
  for (uint32_t i = 0; i < targets.size(); ++i) {
    std::string_view name = viewOf(targets[i]->name());
    std::string_view isa = viewOf(targets[i]->isa());
    if (!asked.empty() && asked != isa && asked != name)
      continue;
    int rank = rankOf(isa);
    if (rank > bestRank && missing(*targets[i], cpu).empty()) {
      best = i;
      bestRank = rank;
    }
  }
  if (best)
    return *best;
  std::string wanted = asked.empty() ? "no code fits this CPU"
                                     : fmt::format("no code for {} that fits "
                                                   "this CPU",
                                                   quoted(asked));
  return failHere(
      {ErrorKind::Environment,
       fmt::format("{}: it has {}; compile the model again with --target "
                   "cpu:native{}",
                   wanted, listOf(*root, cpu),
                   forced.empty() && !asked.empty() ? ", or unset LATHE_ISA"
                                                    : "")});
}

Result<void> Engine::checkTrust() const {
  if (origin.state == TrustState::Bad)
    return failHere(
        {ErrorKind::Untrusted,
         fmt::format("its signature by {} does not fit: it was changed after "
                     "it was signed; compile the model again",
                     origin.key.text())});
  if (trustCode || origin.state == TrustState::Own ||
      origin.state == TrustState::Accepted)
    return {};
  std::string problem =
      origin.problem.empty() ? "" : " (" + origin.problem + ")";
  if (origin.state == TrustState::Unsigned)
    return failHere({ErrorKind::Untrusted,
                     "its code is not signed, and running it is running a "
                     "program; compile the model yourself, or give "
                     "--trust-code if you trust its maker" +
                         problem});
  return failHere(
      {ErrorKind::Untrusted,
       fmt::format("its code is signed with a key that you have not accepted; "
                   "if you trust its maker: lathe trust add {}, or give "
                   "--trust-code{}",
                   origin.key.text(), problem)});
}

Result<CpuCode> Engine::loadCode(uint32_t index, const CpuFeatures &cpu) const {
  const fb::Target &target = *(*root->targets())[index];
  if (auto abi = checkStepAbi(); !abi)
    return failFrom(abi);
  if (auto trusted = checkTrust(); !trusted)
    return failFrom(trusted);
  if (std::string lacks = missing(target, cpu); !lacks.empty())
    return failHere(
        {ErrorKind::Environment,
         fmt::format("the code of {} needs {}, which this CPU lacks; compile "
                     "the model again with --target cpu:native",
                     viewOf(target.name()), lacks)});
  auto object = checkedCopy(*(*root->sections())[target.code()]);
  if (!object)
    return failFrom(object);
  auto code = CpuCode::load(*object, *(*root->programs())[target.program()]);
  if (!code)
    return failHere(
        {code.error().kind, fmt::format("target {}: {}", viewOf(target.name()),
                                        code.error().message)});
  return code;
}

} // namespace lathe::runtime
