#include "runtime/engine/StepCost.h"

#include "kernels/abi/StepArgs.h"
#include "kernels/formats/Layout.h"
#include "runtime/engine/Validate.h"

#include <algorithm>

namespace lathe::runtime {

namespace fb = engine::fb;

namespace {

const fb::Weight &weightAt(const fb::Manifest &manifest, u64 offset) {
  const auto &weights = *manifest.weights();
  return **std::lower_bound(
      weights.begin(), weights.end(), offset,
      [](const fb::Weight *weight, u64 at) { return weight->offset() < at; });
}

bool isMatrix(const fb::Weight &weight) {
  return viewOf(weight.layout()) == kernels::r16Name;
}

/// Bytes of a token's K and V in one layer of a group.
u64 tokenBytes(const fb::KvGroup &group) {
  return 2 * u64(group.kv_heads()) * kvTileBytes(group) / pageTokens;
}

/// Keys of a group that a row at `position` sees, its own included.
u64 keysSeen(const fb::KvGroup &group, u64 position) {
  u64 earlier = position + 1;
  return group.kind() == fb::KvKind::Window
             ? std::min<u64>(earlier, group.window())
             : earlier;
}

/// The KV cache's part of a launch that reads it: attention.
void addAttention(const fb::KvGroup &group, const StepShape &shape,
                  LaunchCost &cost) {
  u64 keyBytes = tokenBytes(group);
  // A product of query and key, one of weight and value.
  u64 LaunchCost::*ops = viewOf(group.dtype()) == kvTypeName(KvType::Int8)
                             ? &LaunchCost::int8Ops
                             : &LaunchCost::f32Ops;
  u64 opsPerKey = 2 * 2 * u64(group.query_heads()) * group.head_dim();
  for (const StepShape::Sequence &sequence : shape.sequences) {
    if (sequence.rows == 0)
      continue;
    u64 keys = keysSeen(group, sequence.start) + sequence.rows - 1;
    cost.kvBytes += keys * keyBytes;
    for (u64 row = 0; row < sequence.rows; ++row)
      cost.*ops += keysSeen(group, sequence.start + row) * opsPerKey;
  }
}

/// Names of a list separated by single spaces, one after the other.
std::string_view nextName(std::string_view &list) {
  std::string_view name = list.substr(0, list.find(' '));
  list.remove_prefix(std::min(list.size(), name.size() + 1));
  return name;
}

} // namespace

u64 StepShape::rows() const {
  u64 rows = 0;
  for (const Sequence &sequence : sequences)
    rows += sequence.rows;
  return rows;
}

StepShape StepShape::wantedPart() const {
  StepShape part = *this;
  // A short step does all of its rows.
  if (rows() > maxReplicatedRows)
    for (Sequence &sequence : part.sequences) {
      u32 wanted = std::min(sequence.wanted, sequence.rows);
      sequence.start += sequence.rows - wanted;
      sequence.rows = wanted;
    }
  return part;
}

LaunchCost &LaunchCost::operator+=(const LaunchCost &other) {
  weightBytes += other.weightBytes;
  kvBytes += other.kvBytes;
  activationBytes += other.activationBytes;
  int8Ops += other.int8Ops;
  f32Ops += other.f32Ops;
  bf16Ops += other.bf16Ops;
  return *this;
}

LaunchCost costOf(const fb::Manifest &manifest, const fb::Program &program,
                  const fb::Launch &launch, const StepShape &step) {
  StepShape shape = launch.wanted() ? step.wantedPart() : step;
  const fb::Kernel &kernel = *(*program.kernels())[launch.kernel()];
  u64 rows = launch.rows() == fb::Rows::Head        ? shape.headRows
             : launch.rows() == fb::Rows::Sequences ? shape.sequences.size()
                                                    : shape.rows();
  std::string_view skeleton = viewOf(kernel.skeleton());
  std::string_view names = viewOf(kernel.operand_names());
  LaunchCost cost;
  u64 LaunchCost::*ops = &LaunchCost::f32Ops;
  const fb::KvGroup *group = nullptr;
  bool writesKv = false;
  for (u32 i = 0; i < launch.operands()->size(); ++i) {
    const fb::Operand &operand = *launch.operands()->Get(i);
    std::string_view name = nextName(names);
    switch (operand.space()) {
    case fb::Space::Weights: {
      const fb::Weight &weight = weightAt(manifest, operand.offset());
      auto format = kernels::formatFromName(viewOf(weight.format()));
      if (format && !kernels::isFloatFormat(*format))
        ops = &LaunchCost::int8Ops;
      else if (format == kernels::Format::BF16)
        ops = &LaunchCost::bf16Ops;
      if (skeleton == "embed") {
        // Rows are padded to groups of 16.
        u64 groups = (weight.rows() + kernels::r16Rows - 1) / kernels::r16Rows;
        u64 stored = std::max<u64>(groups, 1) * kernels::r16Rows;
        cost.weightBytes += rows * (weight.bytes() / stored);
      } else if (skeleton == "pick") {
        // Of the head itself only the few rows that may win are read.
        cost.weightBytes = kernel.weight_bytes();
      } else if (name == "table") {
        // Cosines and sines of one position.
        cost.weightBytes +=
            rows * (weight.bytes() / manifest.model()->context());
      } else {
        cost.weightBytes += weight.bytes();
      }
      break;
    }
    case fb::Space::Kv:
      group = (*manifest.kv_groups())[operand.slot()];
      writesKv |= operand.role() != fb::Role::Read;
      break;
    case fb::Space::Arena:
    case fb::Space::Step:
      if (kernel.operand_row_bytes())
        cost.activationBytes += rows * kernel.operand_row_bytes()->Get(i);
      break;
    }
  }
  cost.*ops += 2 * rows * kernel.macs_per_row();
  if (group && writesKv)
    cost.kvBytes += rows * tokenBytes(*group);
  else if (group)
    addAttention(*group, shape, cost);
  return cost;
}

std::vector<std::string> weightFormats(const fb::Manifest &manifest,
                                       const fb::Launch &launch) {
  std::vector<std::string> formats;
  for (const fb::Operand *operand : *launch.operands()) {
    if (operand->space() != fb::Space::Weights)
      continue;
    const fb::Weight &weight = weightAt(manifest, operand->offset());
    auto format = kernels::formatFromName(viewOf(weight.format()));
    if (!format || !isMatrix(weight))
      continue;
    std::string name(kernels::traitsOf(*format).name);
    if (std::ranges::find(formats, name) == formats.end())
      formats.push_back(name);
  }
  return formats;
}

} // namespace lathe::runtime
