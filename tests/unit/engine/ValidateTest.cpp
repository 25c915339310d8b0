/// \file
/// What the validator finds in manifests whose hashes are right.
#include "tests/unit/engine/TinyEngine.h"

#include <gmock/gmock.h>
#include <random>

namespace lathe::tests {
namespace {

using fb::ManifestT;
using fb::Operand;
using fb::Role;
using fb::Size;
using fb::Space;
using runtime::Engine;
using runtime::ErrorKind;
using testing::AllOf;
using testing::HasSubstr;

/// A change that makes the manifest wrong, and what the error must say.
struct Fault {
  const char *name;
  std::function<void(ManifestT &)> change;
  const char *message;
};

fb::LaunchT &launchOf(ManifestT &manifest, size_t index) {
  return *manifest.programs[0]->entries[0]->launches[index];
}

fb::SectionT &sectionOf(ManifestT &manifest, fb::SectionKind kind) {
  for (auto &section : manifest.sections)
    if (section->kind == kind)
      return *section;
  std::abort();
}

/// Replaces one operand of a launch of `body`.
std::function<void(ManifestT &)> operand(size_t launch, size_t index,
                                         Operand value) {
  return [=](ManifestT &m) { launchOf(m, launch).operands[index] = value; };
}

const std::string longText(5000, 'n');
const std::string notUtf8("\xff\xfe");

// One row per field and way to be wrong. clang-format keeps a row on as few
// lines as it can.
const Fault faults[] = {
    // Versions and the producer.
    {"min_reader_0", [](auto &m) { m.min_reader = 0; }, "min_reader is 0"},
    {"format_below_reader", [](auto &m) { m.format_version = 0; },
     "format_version is 0"},
    {"producer_missing", [](auto &m) { m.producer.clear(); }, "producer"},
    {"producer_long", [](auto &m) { m.producer = longText; }, "producer"},
    {"producer_bytes", [](auto &m) { m.producer = notUtf8; },
     "expected UTF-8"},

    // The model.
    {"model_missing", [](auto &m) { m.model.reset(); }, "model is missing"},
    {"architecture", [](auto &m) { m.model->architecture.clear(); },
     "model.architecture"},
    {"model_name", [](auto &m) { m.model->name = notUtf8; }, "model.name"},
    {"vocab_0", [](auto &m) { m.model->vocab = 0; }, "model.vocab is 0"},
    {"vocab_big", [](auto &m) { m.model->vocab = 1u << 31; }, "model.vocab"},
    {"hidden_0", [](auto &m) { m.model->hidden = 0; }, "model.hidden"},
    {"hidden_big", [](auto &m) { m.model->hidden = ~0u; }, "model.hidden"},
    {"layers_0", [](auto &m) { m.model->layers = 0; }, "model.layers"},
    {"layers_big", [](auto &m) { m.model->layers = ~0u; }, "model.layers"},
    {"layers_fewer", [](auto &m) { m.model->layers = 2; }, "kv group 1: "},
    {"context_0", [](auto &m) { m.model->context = 0; }, "model.context"},
    {"context_big", [](auto &m) { m.model->context = ~0u; }, "model.context"},

    // Sections.
    {"sections_none", [](auto &m) { m.sections.clear(); }, "sections: found 0"},
    {"section_kind",
     [](auto &m) { m.sections[0]->kind = fb::SectionKind(9); },
     "section 0: its kind is 9, expected 0 to 5"},
    {"section_offset_0", [](auto &m) { m.sections[0]->offset = 0; },
     "section 0: it lies at 0"},
    {"section_unaligned", [](auto &m) { m.sections[1]->offset += 64; },
     "expected a multiple of 4096"},
    {"section_outside", [](auto &m) { m.sections[1]->offset = 1 << 30; },
     "section 1: it lies at"},
    {"section_wraps", [](auto &m) { m.sections[1]->offset = ~0xfffull; },
     "section 1: it lies at"},
    {"section_too_long",
     [](auto &m) {
       m.sections.back()->bytes += 1 << 20;
       m.sections.back()->raw_bytes += 1 << 20;
     },
     "expected a multiple of"},
    {"section_endless", [](auto &m) { m.sections[2]->bytes = ~0ull; },
     "section 2: it lies at"},
    {"section_empty", [](auto &m) { m.sections[2]->bytes = 0; },
     "section 2: it lies at"},
    {"sections_overlap",
     [](auto &m) { m.sections[3]->offset = m.sections[2]->offset; },
     "expected it behind the end of the one before"},
    {"sections_swapped",
     [](auto &m) { std::swap(m.sections[3], m.sections[4]); },
     "behind the end of the one before"},
    {"raw_bytes_code",
     [](auto &m) { sectionOf(m, fb::SectionKind::Code).raw_bytes++; },
     "when unpacked"},
    {"raw_bytes_text",
     [](auto &m) { sectionOf(m, fb::SectionKind::Ir).raw_bytes = 1ull << 40; },
     "when unpacked, expected at most"},
    {"hash_missing", [](auto &m) { m.sections[2]->sha256.clear(); },
     "sha256: found 0 entries, expected 32"},
    {"hash_long", [](auto &m) { m.sections[2]->sha256.resize(33); },
     "sha256: found 33"},
    {"hash_of_weights", [](auto &m) { m.sections[0]->sha256.resize(32); },
     "sha256: found 32"},
    {"ir_unnamed",
     [](auto &m) { sectionOf(m, fb::SectionKind::Ir).name.clear(); },
     "name is a text of 0 bytes"},
    {"ir_twice",
     [](auto &m) {
       sectionOf(m, fb::SectionKind::Ir).name = "plan-memory";
     },
     "is there twice"},
    {"weights_missing",
     [](auto &m) {
       m.sections[0]->kind = fb::SectionKind::Ir;
       m.sections[0]->name = "extra";
       m.sections[0]->sha256.resize(32);
     },
     "no section of kind Weights"},
    {"weights_twice",
     [](auto &m) {
       m.sections[1]->kind = fb::SectionKind::Weights;
       m.sections[1]->name = "more";
       m.sections[1]->sha256.clear();
     },
     "two sections of kind Weights"},
    {"hashes_missing",
     [](auto &m) {
       m.sections[1]->kind = fb::SectionKind::Ir;
       m.sections[1]->name = "extra";
     },
     "no section of kind ChunkHashes"},
    {"hashes_short",
     [](auto &m) {
       m.sections[1]->bytes = 31;
       m.sections[1]->raw_bytes = 31;
     },
     "section of chunk hashes has 31 bytes, expected 32"},
    {"root_missing", [](auto &m) { m.weights_root.clear(); }, "weights_root"},
    {"root_other", [](auto &m) { m.weights_root[4] ^= 1; },
     "weights_root differs"},

    // Weights.
    {"weights_none", [](auto &m) { m.weights.clear(); }, "weights: found 0"},
    {"weight_unnamed", [](auto &m) { m.weights[1]->name.clear(); },
     "name is a text of 0 bytes"},
    {"weight_twice", [](auto &m) { m.weights[1]->name = "token_embd"; },
     "weight 'token_embd': it is there twice"},
    {"weight_model_name", [](auto &m) { m.weights[1]->model_name = longText; },
     "weight 'output_norm': model_name"},
    {"weight_format", [](auto &m) { m.weights[0]->format = "q9_9"; },
     "weight 'token_embd': its format is 'q9_9'"},
    {"weight_layout", [](auto &m) { m.weights[0]->layout = "r17"; },
     "its layout is 'r17'"},
    {"weight_rows_0", [](auto &m) { m.weights[0]->rows = 0; }, "rows is 0"},
    {"weight_k_0", [](auto &m) { m.weights[0]->k = 0; }, "k is 0"},
    {"weight_rows_more", [](auto &m) { m.weights[0]->rows = 17; },
     "17 x 32 of Q8_0 in layout r16 has 1088 bytes, found 544"},
    {"weight_k_odd", [](auto &m) { m.weights[0]->k = 33; }, "has no whole"},
    {"weight_shape_wraps",
     [](auto &m) {
       m.weights[1]->rows = 1ull << 32;
       m.weights[1]->k = 1ull << 32;
     },
     "rows is 4294967296"},
    {"weight_bytes", [](auto &m) { m.weights[0]->bytes++; }, "found 545"},
    {"weight_unaligned", [](auto &m) { m.weights[1]->offset++; },
     "expected a multiple of 64"},
    {"weight_outside", [](auto &m) { m.weights[2]->offset = 1 << 20; },
     "weight 'blk.0.attn_q': it lies at"},
    {"weight_wraps", [](auto &m) { m.weights[2]->offset = ~63ull; },
     "it lies at"},
    {"weights_overlap", [](auto &m) { m.weights[1]->offset = 0; },
     "weight 'output_norm': it lies at 0"},
    {"weights_end_early", [](auto &m) { m.weights.pop_back(); },
     "expected the end of their section"},

    // The KV cache.
    {"kv_without_groups", [](auto &m) { m.kv_groups.clear(); },
     "kv_groups: found 0"},
    {"groups_without_kv", [](auto &m) { m.kv = false; }, "kv_groups: found 2"},
    {"group_id", [](auto &m) { m.kv_groups[1]->id = 0; },
     "kv group 1: id is 0"},
    {"group_kind", [](auto &m) { m.kv_groups[0]->kind = fb::KvKind(7); },
     "kv group 0: its kind is 7"},
    {"group_state", [](auto &m) { m.kv_groups[0]->kind = fb::KvKind::State; },
     "its kind is 3"},
    {"window_0", [](auto &m) { m.kv_groups[1]->window = 0; }, "window is 0"},
    {"window_full", [](auto &m) { m.kv_groups[0]->window = 5; },
     "window is 5"},
    {"page_tokens", [](auto &m) { m.kv_groups[0]->page_tokens = 32; },
     "page_tokens is 32"},
    {"dtype", [](auto &m) { m.kv_groups[0]->dtype = "f64"; },
     "its dtype is 'f64'"},
    // A head of int8 is 32 x 16 and 16 scales of 4 bytes: 576, not 512.
    {"int8_scales",
     [](auto &m) {
       fb::KvGroupT &group = *m.kv_groups[1];
       group.dtype = "int8";
       group.page_bytes = 1088;
       group.k_offsets = {0};
       group.v_offsets = {512};
     },
     "K or V of a layer lies at 512, expected a multiple of 64 from 576"},
    {"kv_heads_0", [](auto &m) { m.kv_groups[0]->kv_heads = 0; }, "kv_heads"},
    {"head_dim_0", [](auto &m) { m.kv_groups[0]->head_dim = 0; }, "head_dim"},
    {"head_dim_more", [](auto &m) { m.kv_groups[0]->head_dim = 64; },
     "K or V of a layer lies at"},
    {"query_heads_0", [](auto &m) { m.kv_groups[0]->query_heads = 0; },
     "query_heads"},
    {"query_heads_uneven",
     [](auto &m) {
       m.kv_groups[0]->kv_heads = 2;
       m.kv_groups[0]->head_dim = 16;
       m.kv_groups[0]->query_heads = 3;
     },
     "3 query heads do not share 2 KV heads"},
    {"page_bytes_0", [](auto &m) { m.kv_groups[0]->page_bytes = 0; },
     "page_bytes is 0"},
    {"page_bytes_less", [](auto &m) { m.kv_groups[0]->page_bytes = 4032; },
     "an end before 4032"},
    {"page_bytes_odd", [](auto &m) { m.kv_groups[0]->page_bytes = 4097; },
     "page_bytes is 4097, expected a multiple"},
    {"page_bytes_big", [](auto &m) { m.kv_groups[0]->page_bytes = ~0ull; },
     "page_bytes"},
    {"group_layers_none", [](auto &m) { m.kv_groups[0]->layers.clear(); },
     "layers: found 0"},
    {"group_layer_outside", [](auto &m) { m.kv_groups[0]->layers[1] = 3; },
     "layer is 3"},
    {"group_layer_twice", [](auto &m) { m.kv_groups[0]->layers[1] = 0; },
     "layer 0 has a place already"},
    {"group_layer_of_other", [](auto &m) { m.kv_groups[1]->layers[0] = 1; },
     "kv group 1: layer 1 has a place already"},
    {"k_offsets_few", [](auto &m) { m.kv_groups[0]->k_offsets.pop_back(); },
     "k_offsets: found 1"},
    {"v_offsets_many", [](auto &m) { m.kv_groups[0]->v_offsets.push_back(0); },
     "v_offsets: found 3"},
    {"k_outside", [](auto &m) { m.kv_groups[0]->k_offsets[1] = 4096; },
     "K or V of a layer lies at 4096"},
    {"k_wraps", [](auto &m) { m.kv_groups[0]->k_offsets[1] = ~63ull; },
     "K or V of a layer"},
    {"v_unaligned", [](auto &m) { m.kv_groups[0]->v_offsets[1] -= 32; },
     "K or V of a layer"},
    {"k_on_v", [](auto &m) { m.kv_groups[0]->k_offsets[0] = 1024; },
     "K or V of a layer"},

    // Programs.
    {"programs_none", [](auto &m) { m.programs.clear(); },
     "programs: found 0"},
    {"numerics_id", [](auto &m) { m.programs[0]->numerics_id.clear(); },
     "program 0: numerics_id"},
    {"chunk_0", [](auto &m) { m.programs[0]->attention_chunk = 0; },
     "attention_chunk is 0"},
    {"chunk_uneven", [](auto &m) { m.programs[0]->attention_chunk = 100; },
     "attention_chunk % page tokens is 4"},
    {"row_tile_0", [](auto &m) { m.programs[0]->attention_row_tile = 0; },
     "attention_row_tile is 0"},
    {"kernels_none", [](auto &m) { m.programs[0]->kernels.clear(); },
     "kernels: found 0"},
    {"kernel_symbol",
     [](auto &m) { m.programs[0]->kernels[0]->symbol = "a b"; },
     "program 0: kernel 'a b': symbol is 'a b'"},
    {"kernel_symbol_digit",
     [](auto &m) { m.programs[0]->kernels[0]->symbol = "0a"; }, "symbol"},
    {"kernel_twice", [](auto &m) { m.programs[0]->kernels[0]->symbol = "k1"; },
     "kernel 'k1': it is there twice"},
    {"row_bytes_count",
     [](auto &m) { m.programs[0]->kernels[0]->operand_row_bytes = {4}; },
     "operand_row_bytes: found 1 entries, expected 2 to 2"},
    {"row_bytes_large",
     [](auto &m) {
       m.programs[0]->kernels[0]->operand_row_bytes = {0, uint64_t(1) << 41};
     },
     "bytes of an operand's row"},
    {"skeleton", [](auto &m) { m.programs[0]->kernels[0]->skeleton.clear(); },
     "skeleton"},
    {"summary", [](auto &m) { m.programs[0]->kernels[0]->summary = longText; },
     "summary"},
    {"operand_names_none",
     [](auto &m) { m.programs[0]->kernels[0]->operand_names.clear(); },
     "operand_names"},
    {"operand_names_more",
     [](auto &m) { m.programs[0]->kernels[0]->operand_names += " more"; },
     "launch 0: operands: found 2 entries, expected 3"},
    {"slot_huge",
     [](auto &m) { m.programs[0]->slots[0] = Size(~0ull, 0, 0, 0, 0); },
     "program 0: slot 0: a term of its size is"},
    {"slot_constant_huge",
     [](auto &m) { m.programs[0]->slots[1] = Size(0, 0, 0, 0, 1ull << 41); },
     "slot 1: a term of its size is 2199023255552"},
    {"slots_fewer", [](auto &m) { m.programs[0]->slots.pop_back(); },
     "slot 1 of space Arena, expected less than 1"},
    {"slots_none", [](auto &m) { m.programs[0]->slots.clear(); },
     "of space Arena, expected less than 0"},
    {"entries_none", [](auto &m) { m.programs[0]->entries.clear(); },
     "entries: found 0"},
    {"entry_name", [](auto &m) { m.programs[0]->entries[0]->name = "1"; },
     "entry '1': name"},
    {"entry_symbol",
     [](auto &m) { m.programs[0]->entries[0]->symbol = "../x"; },
     "entry 'body': symbol is '../x'"},
    {"entry_twice", [](auto &m) { m.programs[0]->entries[1]->name = "body"; },
     "is there twice"},
    {"entry_symbol_twice",
     [](auto &m) { m.programs[0]->entries[1]->symbol = "lathe_body_v1"; },
     "'lathe_body_v1' is there twice"},
    {"body_missing", [](auto &m) { m.programs[0]->entries[0]->name = "pick"; },
     "the entry 'body' is missing"},
    {"head_missing", [](auto &m) { m.programs[0]->entries.pop_back(); },
     "the entry 'head' is missing"},
    {"launches_none",
     [](auto &m) { m.programs[0]->entries[1]->launches.clear(); },
     "entry 'head': launches: found 0"},

    // Launches.
    {"launch_kernel", [](auto &m) { launchOf(m, 0).kernel = 3; },
     "program 0: entry 'body': launch 0: kernel is 3, expected 0 to 2"},
    {"launch_rows", [](auto &m) { launchOf(m, 0).rows = fb::Rows(4); },
     "rows is 4"},
    {"launch_wanted",
     [](auto &m) {
       launchOf(m, 0).rows = fb::Rows::Head;
       launchOf(m, 0).wanted = true;
     },
     "it is for wanted rows, but runs over Head"},
    {"launch_label", [](auto &m) { launchOf(m, 0).label = notUtf8; },
     "label"},
    {"launch_layer", [](auto &m) { launchOf(m, 0).layer = 3; },
     "its layer is 3, expected -1 to 2"},
    {"launch_layer_negative", [](auto &m) { launchOf(m, 0).layer = -2; },
     "its layer is -2"},
    {"wait_self", [](auto &m) { launchOf(m, 1).waits = {1}; },
     "launch 1: it waits for launch 1"},
    {"wait_later", [](auto &m) { launchOf(m, 0).waits = {2}; },
     "launch 0: it waits for launch 2"},
    {"waits_many", [](auto &m) { launchOf(m, 1).waits.resize(300); },
     "waits: found 300"},
    {"operands_few", [](auto &m) { launchOf(m, 1).operands.pop_back(); },
     "operands: found 2 entries, expected 3"},
    {"operand_space", operand(0, 0, Operand(Space(4), Role::Read, 0, 0)),
     "operand 0: its space is 4"},
    {"operand_role", operand(0, 1, Operand(Space::Arena, Role(3), 0, 0)),
     "role 3 does not fit"},
    {"weight_written",
     operand(0, 0, Operand(Space::Weights, Role::Write, 0, 0)),
     "role 1 does not fit space Weights"},
    {"weight_read_write",
     operand(0, 0, Operand(Space::Weights, Role::ReadWrite, 0, 0)),
     "role 2 does not fit"},
    {"weight_slot", operand(0, 0, Operand(Space::Weights, Role::Read, 1, 0)),
     "slot 1 of space Weights"},
    {"weight_inside", operand(0, 0, Operand(Space::Weights, Role::Read, 0, 64)),
     "nothing starts at offset 64"},
    {"weight_behind",
     operand(0, 0, Operand(Space::Weights, Role::Read, 0, ~63ull)),
     "nothing starts at offset"},
    {"arena_slot", operand(0, 1, Operand(Space::Arena, Role::Write, 2, 0)),
     "slot 2 of space Arena, expected less than 2"},
    {"arena_offset", operand(0, 1, Operand(Space::Arena, Role::Write, 0, 64)),
     "nothing starts at offset 64 of slot 0 of space Arena"},
    {"kv_group", operand(2, 1, Operand(Space::Kv, Role::ReadWrite, 2, 0)),
     "slot 2 of space Kv, expected less than 2"},
    {"kv_offset", operand(2, 1, Operand(Space::Kv, Role::ReadWrite, 0, 512)),
     "nothing starts at offset 512 of slot 0 of space Kv"},
    {"kv_offset_of_other",
     operand(2, 1, Operand(Space::Kv, Role::ReadWrite, 1, 3072)),
     "nothing starts at offset 3072 of slot 1 of space Kv"},
    {"step_buffer", operand(2, 3, Operand(Space::Step, Role::Write, 4, 0)),
     "slot 4 of space Step"},
    {"step_offset", operand(2, 3, Operand(Space::Step, Role::Write, 0, 4)),
     "nothing starts at offset 4"},
    {"head_input_written",
     operand(2, 3, Operand(Space::Step, Role::Write, 1, 0)),
     "role 1 does not fit space Step"},
    {"cuda_block",
     [](auto &m) {
       launchOf(m, 0).cuda = std::make_unique<fb::CudaLaunchT>();
       launchOf(m, 0).cuda->block = 2048;
     },
     "cuda.block is 2048"},
    {"cuda_divisor",
     [](auto &m) {
       launchOf(m, 0).cuda = std::make_unique<fb::CudaLaunchT>();
       launchOf(m, 0).cuda->block = 128;
     },
     "cuda.grid_divisor is 0"},

    // Targets.
    {"targets_none", [](auto &m) { m.targets.clear(); }, "targets: found 0"},
    {"target_name", [](auto &m) { m.targets[0]->name = "a\nb"; },
     R"(target 'a\x0ab': name is 'a\x0ab')"},
    {"target_twice", [](auto &m) { m.targets[1]->name = "cpu:generic"; },
     "target 'cpu:generic': it is there twice"},
    {"target_isa", [](auto &m) { m.targets[0]->isa.clear(); }, "isa is ''"},
    {"target_features",
     [](auto &m) { m.targets[0]->required_features = notUtf8; },
     "required_features"},
    {"target_program", [](auto &m) { m.targets[0]->program = 1; },
     "program is 1, expected 0 to 0"},
    {"target_code", [](auto &m) { m.targets[0]->code = 99; }, "code is 99"},
    {"target_code_kind",
     [](auto &m) { m.targets[0]->code = m.targets[0]->source; },
     "expected the Code section of 'cpu:generic'"},
    {"target_code_of_other",
     [](auto &m) { m.targets[0]->code = m.targets[1]->code; },
     "expected the Code section of 'cpu:generic'"},
    {"target_source", [](auto &m) { m.targets[0]->source = ~0u; },
     "source is 4294967295"},
    {"target_source_kind", [](auto &m) { m.targets[1]->source = 0; },
     "expected the Source section of 'cpu:avx2'"},

    // Where it came from.
    {"source_name", [](auto &m) { m.sources[0]->name.clear(); },
     "a source file's name"},
    {"source_hash_short", [](auto &m) { m.sources[0]->sha256 = "abc"; },
     "expected 64 hexadecimal digits"},
    {"source_hash_digits", [](auto &m) { m.sources[0]->sha256[3] = 'X'; },
     "expected 64 hexadecimal digits"},
    {"option", [](auto &m) { m.options[0] = notUtf8; }, "an option"},
};

void PrintTo(const Fault &fault, std::ostream *out) { *out << fault.name; }

/// The bytes of a whole engine; made once.
const Bytes &tinyBytes() {
  static const Bytes bytes = [] {
    TempDir dir;
    auto written = codegen::writeEngine(dir.path("e"), tinyDescription());
    EXPECT_TRUE(written) << written.error().message;
    return readBytes(dir.path("e"));
  }();
  return bytes;
}

class ManifestFault : public testing::TestWithParam<Fault> {};

TEST_P(ManifestFault, IsNamed) {
  TempDir dir;
  std::string path =
      dir.write("tiny.lathe", withFields(tinyBytes(), GetParam().change));
  auto opened = Engine::open(path, trustAll());
  ASSERT_FALSE(opened) << "opened";
  EXPECT_THAT(opened.error().message,
              AllOf(HasSubstr(path + ": "), HasSubstr(GetParam().message),
                    testing::Not(HasSubstr("\n"))));
  if (opened.error().kind == ErrorKind::InvalidInput)
    EXPECT_THAT(opened.error().message, HasSubstr("compile the model again"));
}

INSTANTIATE_TEST_SUITE_P(All, ManifestFault, testing::ValuesIn(faults),
                         [](const auto &info) { return info.param.name; });

TEST(Manifest, WithNothingChangedOpens) {
  TempDir dir;
  std::string path =
      dir.write("tiny.lathe", withFields(tinyBytes(), [](ManifestT &) {}));
  auto engine = openOrFail(path);
  ASSERT_TRUE(engine);
  EXPECT_GT(useEverything(*engine), 0u);
}

TEST(Manifest, BytesOutsideOfSectionsAreRefused) {
  TempDir dir;
  // The last section goes, its bytes stay.
  std::string path = dir.write(
      "tiny.lathe",
      withFields(tinyBytes(), [](ManifestT &m) { m.sections.pop_back(); }));
  auto opened = Engine::open(path, trustAll());
  if (!opened)
    EXPECT_THAT(opened.error().message,
                testing::AnyOf(HasSubstr("belong to no section"),
                               HasSubstr("between two sections")));
  else
    ADD_FAILURE() << "opened";
}

TEST(Manifest, WithoutIdentifierIsRefused) {
  TempDir dir;
  std::string path =
      dir.write("tiny.lathe", withManifest(tinyBytes(), [](Bytes manifest) {
                  manifest[4] = 'X';
                  return manifest;
                }));
  auto opened = Engine::open(path, trustAll());
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message, HasSubstr("identifier 'LTHE'"));
}

TEST(Manifest, EmptyIsRefused) {
  TempDir dir;
  for (size_t size : {0, 1, 4, 8, 12})
    EXPECT_FALSE(Engine::open(
        dir.write("tiny.lathe", withManifest(tinyBytes(),
                                             [&](Bytes manifest) {
                                               manifest.resize(size);
                                               return manifest;
                                             })),
        trustAll()))
        << size;
}

TEST(Manifest, UnpackedTextsKeepTheirSize) {
  TempDir dir;
  for (int64_t change : {-1, 1, 100000}) {
    std::string path =
        dir.write("tiny.lathe", withFields(tinyBytes(), [&](ManifestT &m) {
                    sectionOf(m, fb::SectionKind::Ir).raw_bytes +=
                        uint64_t(change);
                  }));
    auto text = openOrFail(path)->ir("canonicalize");
    ASSERT_FALSE(text) << change;
    EXPECT_THAT(text.error().message,
                HasSubstr("section 'canonicalize' (Ir) does not unpack"));
  }
}

/// Changes 1 to 4 places of a FlatBuffer: bits, and the values that offsets,
/// counts and sizes go wrong with.
Bytes mutated(Bytes bytes, std::mt19937_64 &random) {
  static constexpr uint64_t extreme[] = {
      0, 1, 4, 0x7fffffff, 0x80000000, 0xffffffff, 1ull << 62, UINT64_MAX};
  for (uint64_t n = 1 + random() % 4; n > 0; --n) {
    size_t at = random() % (bytes.size() - 8);
    switch (random() % 4) {
    case 0:
      bytes[at] ^= uint8_t(1u << random() % 8);
      break;
    case 1:
      std::memcpy(&bytes[at & ~size_t(3)], &extreme[random() % 8], 4);
      break;
    case 2:
      std::memcpy(&bytes[at & ~size_t(7)], &extreme[random() % 8], 8);
      break;
    default: // another place's value, so that references meet
      std::memcpy(&bytes[at & ~size_t(3)],
                  &bytes[random() % (bytes.size() - 8) & ~size_t(3)], 4);
    }
  }
  return bytes;
}

TEST(Manifest, SeededMutationsNeitherCrashNorPassUnseen) {
  TempDir dir;
  std::string path = dir.write("tiny.lathe", tinyBytes());
  // In place: replacing a file's content makes some file systems wait for the
  // disk each time.
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  std::mt19937_64 random(20240611);
  int opened = 0;
  constexpr int rounds = 4000;
  for (int i = 0; i < rounds; ++i) {
    Bytes bytes = withManifest(tinyBytes(), [&](const Bytes &manifest) {
      return mutated(manifest, random);
    });
    file.seekp(0);
    file.write(reinterpret_cast<const char *>(bytes.data()),
               std::streamsize(bytes.size()));
    file.flush();
    auto engine = Engine::open(path, trustAll());
    if (!engine) {
      ASSERT_THAT(engine.error().message, HasSubstr("tiny.lathe: "));
      continue;
    }
    ++opened;
    useEverything(**engine);
  }
  // Names, labels and the like may change; both outcomes must occur.
  EXPECT_GT(opened, rounds / 50);
  EXPECT_LT(opened, rounds / 2);
}

/// Replaces the tokenizer's section with other bytes of the same size or less,
/// all hashes right.
Bytes withTokenizer(const Bytes &file, Bytes tokenizer) {
  auto changed = withFields(file, [&](ManifestT &m) {
    fb::SectionT &section = sectionOf(m, fb::SectionKind::Tokenizer);
    ASSERT_LE(tokenizer.size(), section.bytes);
    tokenizer.resize(section.bytes);
    auto digest = runtime::Sha256::digest(tokenizer);
    section.sha256.assign(digest.begin(), digest.end());
  });
  fb::ManifestT fields;
  auto header = *runtime::decodeHeader(file);
  fb::GetManifest(&file[header.manifestOffset])->UnPackTo(&fields);
  std::copy(tokenizer.begin(), tokenizer.end(),
            changed.begin() +
                sectionOf(fields, fb::SectionKind::Tokenizer).offset);
  return changed;
}

TEST(TokenizerSection, FaultsAreNamed) {
  struct Row {
    std::function<void(runtime::TokenizerSpec &)> change;
    const char *message;
  };
  TempDir dir;
  for (const Row &row : std::initializer_list<Row>{
           {[](auto &t) { t.tokens.clear(); }, "has 0 tokens"},
           {[](auto &t) { t.tokens.resize(17); }, "has 17 tokens, expected 1 "
                                                  "to 16"},
           {[](auto &t) { t.scores.resize(3); }, "3 scores"},
           {[](auto &t) { t.types.resize(15); }, "15 types"},
           {[](auto &t) { t.types[2] = runtime::TokenType(9); }, "type 9"},
           {[](auto &t) { t.bosId = 16; }, "names token 16, expected -1 to 15"},
           {[](auto &t) { t.eosId = -2; }, "names token -2"},
           {[](auto &t) { t.eotId = 16; }, "names token 16"},
           {[](auto &t) { t.eomId = 1 << 30; }, "names token"},
           {[](auto &t) { t.unkId = INT32_MIN; }, "names token"},
           {[](auto &t) { t.padId = 99; }, "names token 99"},
           {[](auto &t) { t.endIds = {2, -1}; }, "ends at token -1"},
           {[](auto &t) { t.endIds = {16}; }, "ends at token 16"},
       }) {
    auto description = tinyDescription();
    row.change(*description.tokenizer);
    ASSERT_TRUE(codegen::writeEngine(dir.path("tiny.lathe"), description));
    auto spec = openOrFail(dir.path("tiny.lathe"))->tokenizer();
    ASSERT_FALSE(spec) << row.message;
    EXPECT_THAT(spec.error().message,
                AllOf(HasSubstr("tiny.lathe: "), HasSubstr(row.message),
                      HasSubstr("compile the model again")));
  }
}

TEST(TokenizerSection, SharedTextsCannotMultiply) {
  // 1,000 tokens that are all one text of 4,000 bytes: 8 KB that ask for 4 MB.
  flatbuffers::FlatBufferBuilder builder;
  auto text = builder.CreateString(std::string(4000, 'a'));
  std::vector<flatbuffers::Offset<flatbuffers::String>> tokens(1000, text);
  auto vector = builder.CreateVector(tokens);
  auto model = builder.CreateString("gpt2");
  fb::TokenizerBuilder tokenizer(builder);
  tokenizer.add_model(model);
  tokenizer.add_tokens(vector);
  builder.Finish(tokenizer.Finish(), fb::TokenizerIdentifier());
  auto spec = runtime::decodeTokenizer(
      {builder.GetBufferPointer(), builder.GetSize()}, 1000);
  ASSERT_FALSE(spec);
  EXPECT_THAT(spec.error().message, HasSubstr("overlap"));
}

TEST(TokenizerSection, SeededMutationsDoNotCrash) {
  TempDir dir;
  std::mt19937_64 random(7);
  Bytes tokenizer = codegen::encodeTokenizer(*tinyDescription().tokenizer);
  int accepted = 0;
  constexpr int rounds = 3000;
  for (int i = 0; i < rounds; ++i) {
    Bytes bytes = mutated(tokenizer, random);
    accepted += runtime::decodeTokenizer(bytes, 16).has_value();
  }
  EXPECT_GT(accepted, rounds / 50);
  EXPECT_LT(accepted, rounds);
  // And once through the file.
  Bytes other = tokenizer;
  other[4] = 'X';
  auto spec =
      openOrFail(dir.write("tiny.lathe", withTokenizer(tinyBytes(), other)))
          ->tokenizer();
  ASSERT_FALSE(spec);
  EXPECT_THAT(spec.error().message, HasSubstr("identifier 'LTOK'"));
}

TEST(SplitNames, TakesSingleSpaces) {
  EXPECT_THAT(runtime::splitNames(""), testing::IsEmpty());
  EXPECT_THAT(runtime::splitNames("a"), testing::ElementsAre("a"));
  EXPECT_THAT(runtime::splitNames("a bc  d "),
              testing::ElementsAre("a", "bc", "d"));
}

} // namespace
} // namespace lathe::tests
