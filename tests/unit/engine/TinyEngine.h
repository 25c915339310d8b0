/// \file
/// A small engine with one of everything, for tests, and ways to change its
/// bytes.
#ifndef LATHE_TESTS_UNIT_ENGINE_TINYENGINE_H
#define LATHE_TESTS_UNIT_ENGINE_TINYENGINE_H

#include "codegen/engine/EngineWriter.h"
#include "codegen/engine/tokenizer_generated.h"
#include "runtime/engine/Engine.h"
#include "runtime/engine/TokenizerSection.h"
#include "runtime/engine/Validate.h"
#include "tests/unit/support/TempDir.h"

#include <cstring>
#include <functional>
#include <gtest/gtest.h>

namespace lathe::tests {

namespace fb = engine::fb;
using Bytes = std::vector<uint8_t>;

inline Bytes readBytes(const std::string &path) {
  std::string text = readFile(path);
  return {text.begin(), text.end()};
}

/// Byte i of weight `seed`: anything but constant.
inline uint8_t patternByte(uint32_t seed, uint64_t i) {
  return uint8_t((i * 2654435761u + seed * 97u) >> 11);
}

/// A producer of patternBytes in pieces of up to 1000 bytes.
inline codegen::WeightProducer patternProducer(uint32_t seed, uint64_t bytes) {
  return [=](const codegen::ByteSink &sink) -> runtime::Result<void> {
    Bytes piece;
    for (uint64_t i = 0; i < bytes; ++i) {
      piece.push_back(patternByte(seed, i));
      if (piece.size() < 1000 && i + 1 < bytes)
        continue;
      if (auto taken = sink(piece); !taken)
        return taken;
      piece.clear();
    }
    return {};
  };
}

inline std::unique_ptr<fb::LaunchT> launch(uint32_t kernel,
                                           std::vector<fb::Operand> operands,
                                           std::vector<uint32_t> waits,
                                           fb::Rows rows, int32_t layer) {
  auto made = std::make_unique<fb::LaunchT>();
  made->kernel = kernel;
  made->operands = std::move(operands);
  made->waits = std::move(waits);
  made->rows = rows;
  made->layer = layer;
  made->label = "launch";
  return made;
}

inline std::unique_ptr<fb::KernelT>
kernel(std::string symbol, std::string skeleton, std::string operands) {
  auto made = std::make_unique<fb::KernelT>();
  made->symbol = std::move(symbol);
  made->skeleton = std::move(skeleton);
  made->operand_names = std::move(operands);
  made->summary = "a kernel of the tests";
  return made;
}

/// Three layers, the last with a window; two targets that share a program.
inline codegen::EngineDescription tinyDescription() {
  using kernels::Format;
  codegen::EngineDescription engine;
  engine.producer = "lathe test";
  engine.model.architecture = "llama";
  engine.model.name = "tiny";
  engine.model.vocab = 16;
  engine.model.hidden = 32;
  engine.model.layers = 3;
  engine.model.context = 64;
  engine.model.parameters = 2560;

  auto weight = [&](const char *name, Format format, const char *layout,
                    uint64_t rows, uint64_t k) {
    codegen::WeightPlacer placer;
    uint64_t bytes = placer.add(format, layout, rows, k)->bytes;
    engine.weights.push_back(
        {name, std::string(name) + ".weight", format, layout, rows, k,
         patternProducer(uint32_t(engine.weights.size()), bytes)});
  };
  weight("token_embd", Format::Q8_0, "r16", 16, 32);
  weight("output_norm", Format::F32, "rows", 1, 32);
  weight("blk.0.attn_q", Format::Q4_0, "r16", 32, 32);
  codegen::WeightPlacer placer;
  uint64_t embd = placer.add(Format::Q8_0, "r16", 16, 32)->offset;
  (void)placer.add(Format::F32, "rows", 1, 32);
  uint64_t query = placer.add(Format::Q4_0, "r16", 32, 32)->offset;

  auto group = [&](uint32_t id, fb::KvKind kind, uint32_t window,
                   std::vector<uint32_t> layers) {
    fb::KvGroupT made;
    made.id = id;
    made.kind = kind;
    made.window = window;
    made.page_tokens = pageTokens;
    made.dtype = "f16";
    made.kv_heads = 1;
    made.head_dim = 32;
    made.query_heads = 2;
    made.layers = layers;
    made.page_bytes = 2048 * layers.size();
    for (size_t i = 0; i < layers.size(); ++i) {
      made.k_offsets.push_back(2048 * i);
      made.v_offsets.push_back(2048 * i + 1024);
    }
    engine.kvGroups.push_back(made);
  };
  group(0, fb::KvKind::Full, 0, {0, 1});
  group(1, fb::KvKind::Window, 32, {2});

  using fb::Operand, fb::Space, fb::Role, fb::Rows;
  fb::ProgramT program;
  program.kernels.push_back(kernel("k0", "embed", "weight out"));
  program.kernels.push_back(kernel("k1", "gemm", "x weight out"));
  program.kernels.push_back(kernel("k2", "attention", "q k v out"));
  program.slots = {fb::Size(128, 0, 0, 0, 0), fb::Size(128, 4, 8, 64, 64)};
  program.attention_chunk = 128;
  program.attention_row_tile = 4;
  program.numerics_id = "test-1";
  auto body = std::make_unique<fb::EntryPointT>();
  body->name = "body";
  body->symbol = "lathe_body_v1";
  body->launches.push_back(launch(0,
                                  {Operand(Space::Weights, Role::Read, 0, embd),
                                   Operand(Space::Arena, Role::Write, 0, 0)},
                                  {}, Rows::Tokens, -1));
  body->launches.push_back(
      launch(1,
             {Operand(Space::Arena, Role::Read, 0, 0),
              Operand(Space::Weights, Role::Read, 0, query),
              Operand(Space::Arena, Role::Write, 1, 0)},
             {0}, Rows::Tokens, 0));
  body->launches.push_back(launch(2,
                                  {Operand(Space::Arena, Role::Read, 1, 0),
                                   Operand(Space::Kv, Role::ReadWrite, 0, 2048),
                                   Operand(Space::Kv, Role::ReadWrite, 0, 3072),
                                   Operand(Space::Step, Role::Write, 0, 0)},
                                  {0, 1}, Rows::Work, 1));
  auto head = std::make_unique<fb::EntryPointT>();
  head->name = "head";
  head->symbol = "lathe_head_v1";
  head->launches.push_back(launch(1,
                                  {Operand(Space::Step, Role::Read, 1, 0),
                                   Operand(Space::Weights, Role::Read, 0, embd),
                                   Operand(Space::Step, Role::Write, 2, 0)},
                                  {}, Rows::Head, -1));
  program.entries.push_back(std::move(body));
  program.entries.push_back(std::move(head));
  engine.programs.push_back(program);

  Bytes object = readBytes(LATHE_TEST_CODE);
  engine.targets.push_back(
      {"cpu:generic", "generic", {}, 0, object, "// generic\n"});
  engine.targets.push_back(
      {"cpu:avx2", "avx2", {"avx2", "fma", "f16c"}, 0, object, "// avx2\n"});
  engine.ir.push_back({"canonicalize", "module { } // after canonicalize\n"});
  engine.ir.push_back({"plan-memory", std::string(5000, 'x')});
  fb::SourceFileT source;
  source.name = "tiny.gguf";
  source.bytes = 1234;
  source.sha256 = std::string(64, 'a');
  engine.sources.push_back(source);
  engine.options = {"target=cpu:generic,cpu:avx2"};

  runtime::TokenizerSpec tokenizer;
  tokenizer.preTokenizer = "smollm";
  for (int i = 0; i < 16; ++i)
    tokenizer.tokens.push_back(std::string("t\xff") + char('a' + i));
  tokenizer.types.assign(16, runtime::TokenType::Normal);
  tokenizer.merges = {"a b", "c d"};
  tokenizer.bosId = 1;
  tokenizer.eosId = 2;
  tokenizer.eotId = 3;
  tokenizer.endIds = {2, 3};
  tokenizer.addBos = true;
  tokenizer.spacePrefixAfterSpecial = false;
  tokenizer.charsmap = {1, 2, 3};
  tokenizer.chatTemplate = "{{ messages }}";
  engine.tokenizer = tokenizer;
  return engine;
}

/// Whoever made it: for tests that are not about trust.
inline runtime::OpenOptions trustAll() {
  runtime::OpenOptions options;
  options.trustCode = true;
  options.trust = runtime::TrustStore("/nonexistent");
  return options;
}

inline std::shared_ptr<const runtime::Engine>
openOrFail(const std::string &path,
           const runtime::OpenOptions &options = trustAll()) {
  auto opened = runtime::Engine::open(path, options);
  if (!opened) {
    ADD_FAILURE() << opened.error().message;
    return nullptr;
  }
  return *opened;
}

/// Replaces the manifest of an engine and makes header, digest and trailer fit
/// again (unsigned), so that only the checks behind the hashes can object.
inline Bytes withManifest(const Bytes &file,
                          const std::function<Bytes(const Bytes &)> &change) {
  auto header = *runtime::decodeHeader(file);
  Bytes manifest(file.begin() + header.manifestOffset,
                 file.begin() + header.manifestOffset + header.manifestBytes);
  manifest = change(manifest);
  header.manifestBytes = manifest.size();
  header.fileBytes =
      header.manifestOffset + manifest.size() + runtime::engineTrailerBytes;
  auto headerBytes = runtime::encodeHeader(header);
  runtime::EngineTrailer trailer;
  trailer.digest = runtime::manifestDigest(headerBytes, manifest);
  auto trailerBytes = runtime::encodeTrailer(trailer);
  Bytes result(file.begin(), file.begin() + header.manifestOffset);
  std::copy(headerBytes.begin(), headerBytes.end(), result.begin());
  result.insert(result.end(), manifest.begin(), manifest.end());
  result.insert(result.end(), trailerBytes.begin(), trailerBytes.end());
  return result;
}

/// withManifest() on the object form.
inline Bytes withFields(const Bytes &file,
                        const std::function<void(fb::ManifestT &)> &change) {
  return withManifest(file, [&](const Bytes &manifest) -> Bytes {
    fb::ManifestT fields;
    fb::GetManifest(manifest.data())->UnPackTo(&fields);
    change(fields);
    flatbuffers::FlatBufferBuilder builder;
    builder.Finish(fb::CreateManifest(builder, &fields),
                   fb::ManifestIdentifier());
    return {builder.GetBufferPointer(),
            builder.GetBufferPointer() + builder.GetSize()};
  });
}

/// Uses all that an opened engine offers without running its code; the number
/// keeps the compiler from dropping the reads.
inline uint64_t useEverything(const runtime::Engine &engine) {
  fb::ManifestT fields;
  engine.manifest().UnPackTo(&fields);
  uint64_t sum = fields.sections.size() + engine.weights().size();
  for (const std::string &phase : engine.phases())
    sum += engine.ir(phase).has_value();
  for (uint32_t i = 0; i < fields.targets.size(); ++i)
    sum += engine.sources(i).has_value();
  sum += engine.tokenizer().has_value();
  sum += engine.verifySections().has_value();
  sum += engine.verifyWeights().has_value();
  sum += engine.selectTarget(runtime::CpuFeatures()).has_value();
  return sum;
}

} // namespace lathe::tests

#endif // LATHE_TESTS_UNIT_ENGINE_TINYENGINE_H
