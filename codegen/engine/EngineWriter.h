/// \file
/// Writing engine files (docs/engine-format.md). Plain C++: no MLIR, so that
/// tests and tools can make engines without the compiler.
#ifndef LATHE_CODEGEN_ENGINE_ENGINEWRITER_H
#define LATHE_CODEGEN_ENGINE_ENGINEWRITER_H

#include "codegen/engine/engine_generated.h"
#include "kernels/formats/Format.h"
#include "runtime/engine/Ed25519.h"
#include "runtime/support/Result.h"
#include "runtime/text/TokenizerSpec.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lathe::codegen {

/// Takes the next bytes of a weight.
using ByteSink = std::function<runtime::Result<void>(std::span<const uint8_t>)>;

/// Gives all bytes of one weight to the sink, in order and in pieces of any
/// size: what it holds at once is up to it. Called once.
using WeightProducer = std::function<runtime::Result<void>(const ByteSink &)>;

/// Where a weight lies in the weights section.
struct WeightPlace {
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

/// Gives weights their places, in the order in which they are added. Programs
/// and code are made with the offsets before any weight is written, so whoever
/// makes them and writeEngine() both use this.
class WeightPlacer {
public:
  /// The place of the next weight, of `rows` × `k` elements. Errors:
  /// InvalidInput (no such shape in the format, or the size does not fit).
  runtime::Result<WeightPlace> add(kernels::Format format,
                                   std::string_view layout, uint64_t rows,
                                   uint64_t k);

private:
  uint64_t end = 0;
};

/// A weight: its name in the IR, its name in the model file, "r16" or "rows",
/// its shape, and its bytes.
struct EngineWeight {
  std::string name;
  std::string modelName;
  kernels::Format format = kernels::Format::F32;
  std::string layout;
  uint64_t rows = 0;
  uint64_t k = 0;
  WeightProducer produce;
};

/// The code of one target.
struct EngineTarget {
  std::string name; ///< "cpu:avx2"
  std::string isa;  ///< "avx2"
  std::vector<std::string> requiredFeatures;
  uint32_t program = 0; ///< Index into EngineDescription::programs.
  std::vector<uint8_t> object;
  std::string source;
};

/// The IR after one phase.
struct EngineIr {
  std::string phase;
  std::string text;
};

/// Everything that goes into an engine. Order is kept: it decides the bytes.
struct EngineDescription {
  std::string producer; ///< "lathe 0.1.0"
  engine::fb::ModelT model;
  std::vector<engine::fb::KvGroupT> kvGroups; ///< Empty: no cache.
  std::vector<engine::fb::ProgramT> programs;
  std::vector<EngineTarget> targets;
  std::vector<EngineWeight> weights;
  std::vector<EngineIr> ir;
  std::vector<engine::fb::SourceFileT> sources;
  std::vector<std::string> options; ///< "key=value"
  std::optional<runtime::TokenizerSpec> tokenizer;
};

struct WriteOptions {
  /// Signs the manifest; null: the engine is unsigned.
  const runtime::SigningKey *signer = nullptr;
  /// Told after each piece of a weight: its name, bytes of weights written and
  /// in all. On the calling thread.
  std::function<void(std::string_view weight, uint64_t done, uint64_t total)>
      progress;
};

struct WrittenEngine {
  uint64_t fileBytes = 0;
  uint64_t weightBytes = 0;
};

/// Writes an engine to `path`, which appears whole or not at all. The same
/// description and key give the same bytes. Weights are written one by one
/// through a buffer of 1 MiB. What a reader would refuse is not written.
/// Errors: those of AtomicFile and of the producers, InvalidInput (a producer
/// gives another number of bytes than the shape has, or the description
/// contradicts itself). One thread per path; different paths may be written at
/// once.
runtime::Result<WrittenEngine> writeEngine(const std::string &path,
                                           const EngineDescription &engine,
                                           const WriteOptions &options = {});

/// A tokenizer as the bytes of its section; runtime/engine/TokenizerSection.h
/// reads them.
std::vector<uint8_t> encodeTokenizer(const runtime::TokenizerSpec &spec);

} // namespace lathe::codegen

#endif // LATHE_CODEGEN_ENGINE_ENGINEWRITER_H
