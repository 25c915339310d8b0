#include "kernels/abi/StepArgs.h"
#include "runtime/engine/Checker.h"
#include "runtime/support/Checked.h"

#include <algorithm>
#include <unordered_set>

namespace lathe::runtime {

namespace fb = engine::fb;

namespace {

constexpr uint64_t maxGroups = 64;
constexpr uint64_t maxPrograms = 64;
constexpr uint64_t maxKernels = 1 << 16;
constexpr uint64_t maxEntries = 16;
constexpr uint64_t maxLaunches = 1 << 16;
constexpr uint64_t maxSlots = 1 << 16;
constexpr uint64_t maxOperands = 128;
constexpr uint64_t maxWaits = 256;
/// Bytes per row, sequence, partial or thread, and constant ones, of a slot.
constexpr uint64_t maxSizeTerm = uint64_t(1) << 40;
/// K and V of a layer start at multiples of this in a page, pages at multiples
/// of it in a pool: what kernels may load at once.
constexpr uint64_t kvAlignment = 64;

/// The FlatBuffers verifier checks the alignment of a vector's length only, not
/// that of 8-byte elements behind it.
template <typename T>
bool isAligned(Checker &check, std::string_view item,
               const flatbuffers::Vector<T> *list) {
  return !list || reinterpret_cast<uintptr_t>(list->Data()) % 8 == 0 ||
         check.invalid("{}: its entries are not aligned to 8 bytes", item);
}

/// K and V of all layers lie in the page, apart from each other.
bool checkPage(Checker &check, const fb::KvGroup &group) {
  // At most 2^16 heads of 2^16 elements.
  uint64_t bytes = group.kv_heads() * kvTileBytes(group);
  std::vector<uint64_t> offsets(group.k_offsets()->begin(),
                                group.k_offsets()->end());
  offsets.insert(offsets.end(), group.v_offsets()->begin(),
                 group.v_offsets()->end());
  std::sort(offsets.begin(), offsets.end());
  uint64_t end = 0;
  for (uint64_t offset : offsets) {
    if (offset % kvAlignment != 0 || offset < end ||
        !rangeFits(offset, bytes, group.page_bytes()))
      return check.invalid("K or V of a layer lies at {}, expected a "
                           "multiple of {} from {} on and an end before {}",
                           offset, kvAlignment, end, group.page_bytes());
    end = offset + bytes;
  }
  return true;
}

bool checkGroup(Checker &check, const fb::Manifest &manifest,
                const fb::KvGroup &group, unsigned index,
                std::vector<bool> &taken) {
  Checker::Scope scope(check, "kv group", index);
  if (group.kind() != fb::KvKind::Full && group.kind() != fb::KvKind::Window)
    return check.reject(ErrorKind::Unsupported,
                        "its kind is {}, expected 0 (full) or 1 (window); "
                        "a newer lathe may know it",
                        unsigned(group.kind()));
  bool window = group.kind() == fb::KvKind::Window;
  if (!check.inRange("id", group.id(), index, index) ||
      !check.inRange("window", group.window(), window ? 1 : 0,
                     window ? INT32_MAX : 0) ||
      !check.inRange("page_tokens", group.page_tokens(), pageTokens,
                     pageTokens) ||
      !check.inRange("kv_heads", group.kv_heads(), 1, 1 << 16) ||
      !check.inRange("head_dim", group.head_dim(), 1, 1 << 16) ||
      !check.inRange("query_heads", group.query_heads(), group.kv_heads(),
                     1 << 16) ||
      !check.inRange("page_bytes", group.page_bytes(), 1, uint64_t(1) << 40))
    return false;
  if (group.query_heads() % group.kv_heads() != 0)
    return check.invalid("{} query heads do not share {} KV heads evenly",
                         group.query_heads(), group.kv_heads());
  if (!kvTypeFromName(viewOf(group.dtype())))
    return check.reject(ErrorKind::Unsupported,
                        "its dtype is {}, expected 'f16', 'bf16', 'f32' or "
                        "'int8'; a newer lathe may know it",
                        quoted(viewOf(group.dtype())));
  if (group.page_bytes() % kvAlignment != 0)
    return check.invalid("page_bytes is {}, expected a multiple of {}",
                         group.page_bytes(), kvAlignment);

  uint32_t modelLayers = manifest.model()->layers();
  if (!check.sized("layers", group.layers(), 1, modelLayers))
    return false;
  uint64_t layers = group.layers()->size();
  if (!check.sized("k_offsets", group.k_offsets(), layers, layers) ||
      !check.sized("v_offsets", group.v_offsets(), layers, layers) ||
      !isAligned(check, "k_offsets", group.k_offsets()) ||
      !isAligned(check, "v_offsets", group.v_offsets()))
    return false;
  for (uint32_t layer : *group.layers()) {
    if (!check.inRange("layer", layer, 0, modelLayers - 1))
      return false;
    if (taken[layer])
      return check.invalid("layer {} has a place already, expected one", layer);
    taken[layer] = true;
  }
  return checkPage(check, group);
}

/// What the launches of a program may refer to.
struct ProgramFacts {
  const fb::Manifest &manifest;
  const fb::Program &program;
  /// Operands of each kernel.
  std::vector<uint32_t> operandCounts;
};

bool checkKernels(Checker &check, ProgramFacts &facts) {
  if (!check.sized("kernels", facts.program.kernels(), 1, maxKernels))
    return false;
  std::unordered_set<std::string_view> symbols;
  for (const fb::Kernel *kernel : *facts.program.kernels()) {
    Checker::Scope scope(check, "kernel", kernel->symbol());
    if (!check.isName("symbol", kernel->symbol(), ".-$") ||
        !check.isName("skeleton", kernel->skeleton()) ||
        !check.isText("summary", kernel->summary(), 0, 4096) ||
        !check.isText("operand_names", kernel->operand_names(), 1, 8192))
      return false;
    if (!symbols.insert(viewOf(kernel->symbol())).second)
      return check.invalid("it is there twice, expected once");
    std::string_view names = viewOf(kernel->operand_names());
    facts.operandCounts.push_back(
        1 + uint32_t(std::count(names.begin(), names.end(), ' ')));
    const auto *rowBytes = kernel->operand_row_bytes();
    if (!rowBytes)
      continue;
    uint64_t operands = facts.operandCounts.back();
    if (!check.sized("operand_row_bytes", rowBytes, operands, operands) ||
        !isAligned(check, "operand_row_bytes", rowBytes))
      return false;
    for (uint64_t bytes : *rowBytes)
      if (!check.inRange("bytes of an operand's row", bytes, 0, maxSizeTerm))
        return false;
  }
  return true;
}

bool checkSlots(Checker &check, const ProgramFacts &facts) {
  if (!check.sized("slots", facts.program.slots(), 0, maxSlots) ||
      !isAligned(check, "slots", facts.program.slots()))
    return false;
  for (uint32_t i = 0;
       facts.program.slots() && i < facts.program.slots()->size(); ++i) {
    Checker::Scope scope(check, "slot", i);
    const fb::Size &size = *facts.program.slots()->Get(i);
    for (uint64_t term : {size.t(), size.s(), size.c(), size.n(), size.e()})
      if (!check.inRange("a term of its size", term, 0, maxSizeTerm))
        return false;
  }
  return true;
}

bool isWeightStart(const fb::Manifest &manifest, uint64_t offset) {
  const auto &weights = *manifest.weights();
  auto found = std::lower_bound(weights.begin(), weights.end(), offset,
                                [](const fb::Weight *weight, uint64_t at) {
                                  return weight->offset() < at;
                                });
  return found != weights.end() && found->offset() == offset;
}

bool isKvStart(const fb::KvGroup &group, uint64_t offset) {
  for (const auto *offsets : {group.k_offsets(), group.v_offsets()})
    if (std::find(offsets->begin(), offsets->end(), offset) != offsets->end())
      return true;
  return false;
}

bool checkOperand(Checker &check, const ProgramFacts &facts,
                  const fb::Operand &operand) {
  auto listSize = [](const auto *list) -> uint64_t {
    return list ? list->size() : 0;
  };
  uint64_t slots = 1;
  bool placed = operand.offset() == 0;
  bool allowed = true;
  switch (operand.space()) {
  case fb::Space::Weights:
    placed = isWeightStart(facts.manifest, operand.offset());
    allowed = operand.role() == fb::Role::Read;
    break;
  case fb::Space::Arena:
    slots = listSize(facts.program.slots());
    break;
  case fb::Space::Kv:
    slots = listSize(facts.manifest.kv_groups());
    placed = operand.slot() < slots &&
             isKvStart(*(*facts.manifest.kv_groups())[operand.slot()],
                       operand.offset());
    break;
  case fb::Space::Step:
    slots = uint64_t(fb::StepBuffer::MAX) + 1;
    allowed = operand.slot() != uint32_t(fb::StepBuffer::HeadInput) ||
              operand.role() == fb::Role::Read;
    break;
  default:
    return check.invalid("its space is {}, expected 0 to {}",
                         unsigned(operand.space()), unsigned(fb::Space::MAX));
  }
  if (operand.role() > fb::Role::MAX || !allowed)
    return check.invalid("role {} does not fit space {}",
                         unsigned(operand.role()),
                         fb::EnumNameSpace(operand.space()));
  if (operand.slot() >= slots)
    return check.invalid("slot {} of space {}, expected less than {}",
                         operand.slot(), fb::EnumNameSpace(operand.space()),
                         slots);
  return placed ||
         check.invalid("nothing starts at offset {} of slot {} of space {}",
                       operand.offset(), operand.slot(),
                       fb::EnumNameSpace(operand.space()));
}

bool checkLaunch(Checker &check, const ProgramFacts &facts,
                 const fb::Launch &launch, uint32_t index) {
  Checker::Scope scope(check, "launch", index);
  if (!check.inRange("kernel", launch.kernel(), 0,
                     facts.operandCounts.size() - 1) ||
      !check.inRange("rows", uint64_t(launch.rows()), 0,
                     uint64_t(fb::Rows::MAX)) ||
      !check.isText("label", launch.label(), 0, 1024))
    return false;
  if (launch.rows() == fb::Rows::Work && !facts.manifest.kv())
    return check.invalid("it runs over attention work, but the engine has no "
                         "KV cache");
  if (launch.wanted() && launch.rows() != fb::Rows::Tokens &&
      launch.rows() != fb::Rows::Work)
    return check.invalid("it is for wanted rows, but runs over {}",
                         fb::EnumNameRows(launch.rows()));
  int64_t layers = facts.manifest.model()->layers();
  if (launch.layer() < -1 || launch.layer() >= layers)
    return check.invalid("its layer is {}, expected -1 to {}", launch.layer(),
                         layers - 1);
  uint64_t operands = facts.operandCounts[launch.kernel()];
  if (!check.inRange("operands", operands, 1, maxOperands) ||
      !check.sized("operands", launch.operands(), operands, operands) ||
      !isAligned(check, "operands", launch.operands()) ||
      !check.sized("waits", launch.waits(), 0, maxWaits))
    return false;
  for (uint32_t i = 0; i < operands; ++i) {
    Checker::Scope scope(check, "operand", i);
    if (!checkOperand(check, facts, *launch.operands()->Get(i)))
      return false;
  }
  if (launch.waits())
    for (uint32_t wait : *launch.waits())
      if (wait >= index)
        return check.invalid("it waits for launch {}, expected an earlier one",
                             wait);
  if (const fb::CudaLaunch *cuda = launch.cuda())
    return check.inRange("cuda.block", cuda->block(), 1, 1024) &&
           check.inRange("cuda.shared_bytes", cuda->shared_bytes(), 0,
                         1 << 20) &&
           check.inRange("cuda.grid_divisor", cuda->grid_divisor(), 1,
                         INT32_MAX) &&
           check.inRange("cuda.grid_factor", cuda->grid_factor(), 1, INT32_MAX);
  return true;
}

bool checkEntries(Checker &check, const ProgramFacts &facts) {
  if (!check.sized("entries", facts.program.entries(), 1, maxEntries))
    return false;
  std::unordered_set<std::string_view> names, symbols;
  for (const fb::EntryPoint *entry : *facts.program.entries()) {
    Checker::Scope scope(check, "entry", entry->name());
    if (!check.isName("name", entry->name()) ||
        !check.isName("symbol", entry->symbol()) ||
        !check.sized("launches", entry->launches(), 1, maxLaunches))
      return false;
    if (!names.insert(viewOf(entry->name())).second ||
        !symbols.insert(viewOf(entry->symbol())).second)
      return check.invalid("its name or symbol {} is there twice, expected "
                           "once",
                           quoted(viewOf(entry->symbol())));
    for (uint32_t i = 0; i < entry->launches()->size(); ++i)
      if (!checkLaunch(check, facts, *entry->launches()->Get(i), i))
        return false;
  }
  for (std::string_view needed : {"body", "head"})
    if (!names.contains(needed))
      return check.invalid("the entry '{}' is missing", needed);
  return true;
}

} // namespace

bool checkKvGroups(Checker &check, const fb::Manifest &manifest) {
  if (!check.sized("kv_groups", manifest.kv_groups(), manifest.kv() ? 1 : 0,
                   manifest.kv() ? maxGroups : 0))
    return false;
  if (!manifest.kv())
    return true;
  std::vector<bool> taken(manifest.model()->layers());
  for (unsigned i = 0; i < manifest.kv_groups()->size(); ++i)
    if (!checkGroup(check, manifest, *(*manifest.kv_groups())[i], i, taken))
      return false;
  return true;
}

bool checkPrograms(Checker &check, const fb::Manifest &manifest) {
  if (!check.sized("programs", manifest.programs(), 1, maxPrograms))
    return false;
  for (unsigned i = 0; i < manifest.programs()->size(); ++i) {
    const fb::Program &program = *(*manifest.programs())[i];
    Checker::Scope scope(check, "program", i);
    ProgramFacts facts{manifest, program, {}};
    if (!check.isText("numerics_id", program.numerics_id(), 1, 1024) ||
        !checkKernels(check, facts) || !checkSlots(check, facts))
      return false;
    // Attention is cut by these; without a cache they mean nothing.
    if (manifest.kv() &&
        (!check.inRange("attention_chunk", program.attention_chunk(),
                        pageTokens, 1 << 16) ||
         !check.inRange("attention_chunk % page tokens",
                        program.attention_chunk() % pageTokens, 0, 0) ||
         !check.inRange("attention_row_tile", program.attention_row_tile(), 1,
                        1 << 16)))
      return false;
    if (!checkEntries(check, facts))
      return false;
  }
  return true;
}

} // namespace lathe::runtime
