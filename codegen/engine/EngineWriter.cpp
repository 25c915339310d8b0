#include "codegen/engine/EngineWriter.h"

#include "codegen/engine/SectionStream.h"
#include "kernels/abi/StepArgs.h"
#include "kernels/formats/Layout.h"
#include "runtime/engine/FileLayout.h"
#include "runtime/engine/Validate.h"
#include "runtime/support/Checked.h"
#include "runtime/support/Quote.h"

#include <array>
#include <cstring>

namespace lathe::codegen {

using namespace runtime;
namespace fb = engine::fb;

namespace {

template <typename T>
std::vector<std::unique_ptr<T>> toOwned(const std::vector<T> &list) {
  std::vector<std::unique_ptr<T>> owned;
  owned.reserve(list.size());
  for (const T &item : list)
    owned.push_back(std::make_unique<T>(item));
  return owned;
}

std::string joinNames(const std::vector<std::string> &names) {
  return fmt::to_string(fmt::join(names, " "));
}

/// One engine on its way into a file.
class Writer {
public:
  Writer(AtomicFile &file, const EngineDescription &engine,
         const WriteOptions &options)
      : file(file), engine(engine), options(options), stream(file) {}

  Result<WrittenEngine> write() {
    using Step = Result<void> (Writer::*)();
    for (Step step :
         {&Writer::reserveHeader, &Writer::placeWeights, &Writer::writeWeights,
          &Writer::writeTargets, &Writer::writeTexts, &Writer::writeManifest})
      if (auto done = (this->*step)(); !done)
        return failFrom(done);
    return WrittenEngine{file.size(), stream.weightBytes()};
  }

private:
  Result<void> reserveHeader() {
    return file.append(std::array<uint8_t, engineHeaderBytes>{});
  }

  Result<void> placeWeights() {
    WeightPlacer placer;
    for (const EngineWeight &weight : engine.weights) {
      auto place =
          placer.add(weight.format, weight.layout, weight.rows, weight.k);
      if (!place)
        return failFrom(place, "weight " + quoted(weight.name));
      auto entry = std::make_unique<fb::WeightT>();
      entry->name = weight.name;
      entry->model_name = weight.modelName;
      entry->format = kernels::traitsOf(weight.format).mnemonic;
      entry->layout = weight.layout;
      entry->rows = weight.rows;
      entry->k = weight.k;
      entry->offset = place->offset;
      entry->bytes = place->bytes;
      weightsEnd = place->offset + place->bytes;
      manifest.weights.push_back(std::move(entry));
    }
    return {};
  }

  Result<void> writeWeights() {
    if (auto begun = stream.beginWeights(); !begun)
      return begun;
    for (size_t i = 0; i < engine.weights.size(); ++i)
      if (auto written = writeWeight(engine.weights[i], *manifest.weights[i]);
          !written)
        return written;
    return stream.endWeights();
  }

  Result<void> writeWeight(const EngineWeight &weight,
                           const fb::WeightT &place) {
    static constexpr std::array<uint8_t, weightAlignment> zeros = {};
    uint64_t gap = place.offset - stream.weightBytes();
    if (auto padded = stream.appendWeights(std::span(zeros).first(gap));
        !padded)
      return padded;
    uint64_t end = place.offset + place.bytes;
    uint64_t given = 0;
    auto produced =
        weight.produce([&](std::span<const uint8_t> bytes) -> Result<void> {
          given += bytes.size();
          if (!rangeFits(stream.weightBytes(), bytes.size(), end))
            return wrongSize(weight, place, given);
          auto appended = stream.appendWeights(bytes);
          if (appended && options.progress)
            options.progress(weight.name, stream.weightBytes(), weightsEnd);
          return appended;
        });
    if (!produced)
      return produced;
    if (given != place.bytes)
      return wrongSize(weight, place, given);
    return {};
  }

  static tl::unexpected<Error> wrongSize(const EngineWeight &weight,
                                         const fb::WeightT &place,
                                         uint64_t given) {
    return fail(ErrorKind::InvalidInput,
                "weight {}: its source gives {} bytes, expected {}",
                quoted(weight.name), given, place.bytes);
  }

  Result<void> writeTargets() {
    for (const EngineTarget &target : engine.targets) {
      auto code = stream.add(fb::SectionKind::Code, target.name, target.object);
      if (!code)
        return failFrom(code);
      auto source =
          stream.addText(fb::SectionKind::Source, target.name, target.source);
      if (!source)
        return failFrom(source);
      auto entry = std::make_unique<fb::TargetT>();
      entry->name = target.name;
      entry->isa = target.isa;
      entry->required_features = joinNames(target.requiredFeatures);
      entry->program = target.program;
      entry->code = *code;
      entry->source = *source;
      manifest.targets.push_back(std::move(entry));
    }
    return {};
  }

  Result<void> writeTexts() {
    for (const EngineIr &ir : engine.ir)
      if (auto added = stream.addText(fb::SectionKind::Ir, ir.phase, ir.text);
          !added)
        return failFrom(added);
    if (engine.tokenizer)
      if (auto added = stream.add(fb::SectionKind::Tokenizer, "",
                                  encodeTokenizer(*engine.tokenizer));
          !added)
        return failFrom(added);
    return {};
  }

  Result<void> writeManifest() {
    if (auto aligned = stream.align(manifestAlignment); !aligned)
      return aligned;
    manifest.format_version = engineFormatVersion;
    manifest.min_reader = engineFormatVersion;
    manifest.producer = engine.producer;
    manifest.step_abi = stepAbiVersion;
    manifest.model = std::make_unique<fb::ModelT>(engine.model);
    manifest.kv = !engine.kvGroups.empty();
    manifest.kv_groups = toOwned(engine.kvGroups);
    manifest.programs = toOwned(engine.programs);
    manifest.sections = stream.take();
    manifest.sources = toOwned(engine.sources);
    manifest.weights_root = stream.weightsRoot();
    manifest.options = engine.options;
    flatbuffers::FlatBufferBuilder builder;
    builder.Finish(fb::CreateManifest(builder, &manifest),
                   fb::ManifestIdentifier());
    std::span<const uint8_t> bytes(builder.GetBufferPointer(),
                                   builder.GetSize());

    // A reader's own checks, so that a fault in the compiler is seen by who
    // compiles. In a copy, since they need the alignment of the file.
    std::vector<uint64_t> aligned((bytes.size() + 7) / 8);
    std::memcpy(aligned.data(), bytes.data(), bytes.size());
    auto valid = validateManifest(
        {reinterpret_cast<const uint8_t *>(aligned.data()), bytes.size()},
        file.size());
    if (!valid)
      return failFrom(valid, "a reader would refuse the engine");

    EngineHeader header{file.size() + bytes.size() + engineTrailerBytes,
                        file.size(), bytes.size()};
    auto headerBytes = encodeHeader(header);
    auto trailer = sign(manifestDigest(headerBytes, bytes));
    if (!trailer)
      return failFrom(trailer);
    if (auto written = file.append(bytes); !written)
      return written;
    if (auto written = file.append(encodeTrailer(*trailer)); !written)
      return written;
    return file.writeAt(0, headerBytes);
  }

  Result<EngineTrailer> sign(const Sha256::Digest &digest) {
    EngineTrailer trailer;
    trailer.digest = digest;
    if (!options.signer)
      return trailer;
    auto signature = options.signer->sign(signedMessage(digest));
    if (!signature)
      return failFrom(signature);
    trailer.kind = SignatureKind::Ed25519;
    trailer.key = options.signer->publicKey().bytes;
    trailer.signature = *signature;
    return trailer;
  }

  AtomicFile &file;
  const EngineDescription &engine;
  const WriteOptions &options;
  SectionStream stream;
  fb::ManifestT manifest;
  uint64_t weightsEnd = 0;
};

} // namespace

Result<WeightPlace> WeightPlacer::add(kernels::Format format,
                                      std::string_view layout, uint64_t rows,
                                      uint64_t k) {
  std::optional<uint64_t> bytes;
  if (layout == kernels::r16Name)
    bytes = kernels::packedBytes(format, rows, k);
  else if (auto row = kernels::rowBytes(format, k))
    bytes = checkedMul<uint64_t>(*row, rows);
  auto offset = checkedAlign(end, weightAlignment);
  auto next = bytes && offset ? checkedAdd(*offset, *bytes) : std::nullopt;
  if (!next)
    return fail(ErrorKind::InvalidInput,
                "{} x {} of {} in layout {} has no whole number of bytes", rows,
                k, kernels::traitsOf(format).name, quoted(layout));
  end = *next;
  return WeightPlace{*offset, *bytes};
}

Result<WrittenEngine> writeEngine(const std::string &path,
                                  const EngineDescription &engine,
                                  const WriteOptions &options) {
  auto file = AtomicFile::create(path);
  if (!file)
    return failFrom(file);
  auto written = Writer(*file, engine, options).write();
  if (!written)
    return failFrom(written, "cannot write " + displayPath(path));
  if (auto committed = file->commit(); !committed)
    return failFrom(committed);
  return written;
}

} // namespace lathe::codegen
