/// \file
/// The account of launches against numbers computed by hand.
#include "runtime/engine/StepCost.h"

#include "kernels/formats/Layout.h"

#include <gtest/gtest.h>

namespace lathe::tests {
namespace {

namespace fb = engine::fb;
using fb::Operand, fb::Role, fb::Rows, fb::Space;
using kernels::Format;
using runtime::LaunchCost;
using runtime::StepShape;

/// A manifest that is made launch by launch. Full group 0 and group 1 with a
/// window of 4: one KV head of 16 elements, two query heads. Context 8.
class Program {
public:
  explicit Program(const char *dtype = "f16") {
    manifest.model = std::make_unique<fb::ModelT>();
    manifest.model->context = 8;
    manifest.programs.push_back(std::make_unique<fb::ProgramT>());
    auto entry = std::make_unique<fb::EntryPointT>();
    entry->name = "body";
    manifest.programs[0]->entries.push_back(std::move(entry));
    for (u32 window : {0u, 4u}) {
      auto group = std::make_unique<fb::KvGroupT>();
      group->kind = window ? fb::KvKind::Window : fb::KvKind::Full;
      group->window = window;
      group->dtype = dtype;
      group->kv_heads = 1;
      group->head_dim = 16;
      group->query_heads = 2;
      manifest.kv_groups.push_back(std::move(group));
    }
  }

  Operand weight(Format format, std::string_view layout, u64 rows, u64 k) {
    auto made = std::make_unique<fb::WeightT>();
    made->format = kernels::traitsOf(format).mnemonic;
    made->layout = layout;
    made->rows = rows;
    made->k = k;
    made->bytes = layout == kernels::r16Name
                      ? *kernels::packedBytes(format, rows, k)
                      : rows * *kernels::rowBytes(format, k);
    made->offset = end;
    end += (made->bytes + 63) / 64 * 64;
    Operand operand(Space::Weights, Role::Read, 0, made->offset);
    manifest.weights.push_back(std::move(made));
    return operand;
  }

  void launch(const char *skeleton, const char *names,
              std::vector<Operand> operands, std::vector<u64> rowBytes,
              u64 macsPerRow = 0, Rows rows = Rows::Tokens) {
    auto kernel = std::make_unique<fb::KernelT>();
    kernel->skeleton = skeleton;
    kernel->operand_names = names;
    kernel->operand_row_bytes = std::move(rowBytes);
    kernel->macs_per_row = macsPerRow;
    auto launch = std::make_unique<fb::LaunchT>();
    launch->kernel = u32(manifest.programs[0]->kernels.size());
    launch->operands = std::move(operands);
    launch->rows = rows;
    manifest.programs[0]->kernels.push_back(std::move(kernel));
    manifest.programs[0]->entries[0]->launches.push_back(std::move(launch));
  }

  /// Marks the last launch.
  void setWanted() {
    manifest.programs[0]->entries[0]->launches.back()->wanted = true;
  }

  LaunchCost cost(const StepShape &shape) {
    const fb::Manifest &packed = pack();
    const fb::Program &program = *(*packed.programs())[0];
    return runtime::costOf(packed, program, lastLaunch(program), shape);
  }

  std::vector<std::string> formats() {
    const fb::Manifest &packed = pack();
    return runtime::weightFormats(packed, lastLaunch(*(*packed.programs())[0]));
  }

private:
  const fb::Manifest &pack() {
    builder.Clear();
    builder.Finish(fb::Manifest::Pack(builder, &manifest));
    return *flatbuffers::GetRoot<fb::Manifest>(builder.GetBufferPointer());
  }

  static const fb::Launch &lastLaunch(const fb::Program &program) {
    const auto &launches = *(*program.entries())[0]->launches();
    return *launches[launches.size() - 1];
  }

  fb::ManifestT manifest;
  flatbuffers::FlatBufferBuilder builder;
  u64 end = 0;
};

Operand arena(u32 slot, Role role) { return {Space::Arena, role, slot, 0}; }
Operand kv(u32 group, Role role) { return {Space::Kv, role, group, 0}; }

/// One row at position 5 and two at 0 and 1; logits of two rows.
const StepShape threeRows = {.sequences = {{5, 1}, {0, 2}}, .headRows = 2};

TEST(StepCost, EmbedReadsTheRowsOfItsTokens) {
  Program program;
  // 100 rows are stored as 112; each has two blocks of 34 bytes.
  program.launch(
      "embed", "weight out",
      {program.weight(Format::Q8_0, "r16", 100, 64), arena(0, Role::Write)},
      {0, 256});
  EXPECT_EQ(program.cost(threeRows),
            (LaunchCost{.weightBytes = 3 * 68, .activationBytes = 3 * 256}));
}

TEST(StepCost, GemmReadsItsWeightsOnceForAllRows) {
  Program program;
  // 48 rows of two blocks of 18 bytes, 16 rows of two of 34, a bias of 48 f32.
  Operand first = program.weight(Format::Q4_0, "r16", 48, 64);
  Operand second = program.weight(Format::Q8_0, "r16", 16, 64);
  Operand bias = program.weight(Format::F32, "rows", 1, 48);
  // Rows of two 44-byte activation blocks in, 48 and 16 f32 out.
  program.launch("gemm", "x weight0 weight1 side0_0 out0 out1",
                 {arena(0, Role::Read), first, second, bias,
                  arena(1, Role::Write), arena(2, Role::Write)},
                 {88, 0, 0, 0, 192, 64}, 64 * 64);
  EXPECT_EQ(program.cost(threeRows),
            (LaunchCost{.weightBytes = 48 * 36 + 16 * 68 + 192,
                        .activationBytes = 3 * (88 + 192 + 64),
                        .int8Ops = 2 * 3 * 64 * 64}));
  EXPECT_EQ(program.formats(), (std::vector<std::string>{"Q4_0", "Q8_0"}));
}

TEST(StepCost, WantedLaunchesCostWantedRows) {
  Program program;
  program.launch("rowwise", "x out0_0",
                 {arena(0, Role::Read), arena(1, Role::Write)}, {100, 100});
  program.setWanted();
  StepShape shape = {.sequences = {{7, 20, 3}, {0, 10, 0}}};
  EXPECT_EQ(program.cost(shape), (LaunchCost{.activationBytes = 3 * 200}));
  // A short step does all of its rows.
  EXPECT_EQ(program.cost(threeRows), (LaunchCost{.activationBytes = 3 * 200}));
}

TEST(StepCost, FloatWeightsCountAsFloatOperations) {
  for (Format format : {Format::F16, Format::BF16}) {
    Program program;
    program.launch("gemm", "x weight0 out0",
                   {arena(0, Role::Read), program.weight(format, "r16", 16, 8),
                    Operand(Space::Step, Role::Write, 2, 0)},
                   {32, 0, 64}, 128, Rows::Head);
    bool brain = format == Format::BF16;
    EXPECT_EQ(program.cost(threeRows),
              (LaunchCost{.weightBytes = 256,
                          .activationBytes = 2 * (32 + 64),
                          .f32Ops = brain ? 0u : 2 * 2 * 128,
                          .bf16Ops = brain ? 2 * 2 * 128 : 0u}));
    EXPECT_EQ(program.formats(),
              std::vector<std::string>{brain ? "BF16" : "F16"});
  }
}

TEST(StepCost, RopeAppendWritesTheCacheAndLooksUpItsTable) {
  Program program;
  // 8 positions of 8 pairs of f32.
  program.launch(
      "rope_append", "q k v table k_pool v_pool q_out",
      {arena(0, Role::Read), arena(1, Role::Read), arena(2, Role::Read),
       program.weight(Format::F32, "rows", 64, 2), kv(0, Role::Write),
       kv(0, Role::Write), arena(3, Role::Write)},
      {128, 64, 64, 0, 0, 0, 128});
  EXPECT_EQ(program.cost(threeRows),
            (LaunchCost{.weightBytes = 3 * 64,
                        .kvBytes = 3 * 2 * 16 * 2,
                        .activationBytes = 3 * (128 + 64 + 64 + 128)}));
}

void addAttention(Program &program, u32 group) {
  program.launch("attention", "q k_pool v_pool partials out",
                 {arena(0, Role::Read), kv(group, Role::Read),
                  kv(group, Role::Read), arena(1, Role::Write),
                  arena(2, Role::Write)},
                 {128, 0, 0, 0, 44}, 0, Rows::Work);
}

TEST(StepCost, AttentionReadsWhatItsRowsSee) {
  Program program;
  addAttention(program, 0);
  // Keys 0 to 5 of one sequence, 0 and 1 of the other: 64 bytes with values.
  // The rows see 6, 1 and 2; a key is 2 * 16 multiply-adds for each query head.
  EXPECT_EQ(program.cost(threeRows),
            (LaunchCost{.kvBytes = 8 * 64,
                        .activationBytes = 3 * (128 + 44),
                        .f32Ops = 9 * 2 * 16 * 2 * 2}));
}

TEST(StepCost, Int8KeysHaveScalesAndIntegerProducts) {
  Program program("int8");
  addAttention(program, 0);
  // A key and a value of 16 bytes and a scale each.
  EXPECT_EQ(program.cost(threeRows),
            (LaunchCost{.kvBytes = 8 * 40,
                        .activationBytes = 3 * (128 + 44),
                        .int8Ops = 9 * 2 * 16 * 2 * 2}));
}

TEST(StepCost, AttentionSeesNoFurtherThanItsWindow) {
  Program program;
  addAttention(program, 1);
  // Rows at 3 to 6 see 4 keys each; together keys 0 to 6.
  EXPECT_EQ(program.cost({.sequences = {{3, 4}}, .headRows = 1}),
            (LaunchCost{.kvBytes = 7 * 64,
                        .activationBytes = 4 * (128 + 44),
                        .f32Ops = 16 * 2 * 16 * 2 * 2}));
  // A row at 5 sees 2 to 5.
  EXPECT_EQ(program.cost({.sequences = {{5, 1}}, .headRows = 1}).kvBytes,
            4u * 64);
}

TEST(StepCost, EnginesThatDoNotTellRowBytesHaveNoActivations) {
  Program program;
  program.launch("rowwise", "x side0_0 out0_0",
                 {arena(0, Role::Read),
                  program.weight(Format::F32, "rows", 1, 64),
                  arena(1, Role::Write)},
                 {});
  EXPECT_EQ(program.cost(threeRows), LaunchCost{.weightBytes = 256});
  EXPECT_TRUE(program.formats().empty());
}

} // namespace
} // namespace lathe::tests
