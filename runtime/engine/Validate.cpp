#include "runtime/engine/Validate.h"

#include "kernels/formats/Layout.h"
#include "runtime/engine/Checker.h"
#include "runtime/engine/FileLayout.h"
#include "runtime/support/Checked.h"

#include <algorithm>
#include <unordered_set>

namespace lathe::runtime {

namespace fb = engine::fb;

namespace {

constexpr uint64_t maxTables = uint64_t(1) << 18;
constexpr uint64_t maxSections = 1024;
constexpr uint64_t maxTargets = 64;
constexpr uint64_t maxWeights = uint64_t(1) << 17;
constexpr uint64_t hashBytes = sizeof(Sha256::Digest);

bool checkModel(Checker &check, const fb::Manifest &manifest) {
  const fb::Model *model = manifest.model();
  if (!model)
    return check.invalid("the model is missing");
  return check.isText("model.architecture", model->architecture(), 1, 128) &&
         check.isText("model.name", model->name(), 0, 1024) &&
         // Token ids are i32.
         check.inRange("model.vocab", model->vocab(), 1, INT32_MAX) &&
         check.inRange("model.hidden", model->hidden(), 1, 1 << 20) &&
         check.inRange("model.layers", model->layers(), 1, 1 << 16) &&
         check.inRange("model.context", model->context(), 1, INT32_MAX);
}

std::string nameOf(const fb::Section &section, size_t index) {
  std::string name = fmt::format("section {} ({}", index,
                                 fb::EnumNameSectionKind(section.kind()));
  if (section.name() && section.name()->size())
    name += " " + quoted(viewOf(section.name()));
  return name + ")";
}

bool checkSection(Checker &check, const fb::Section &section, size_t index,
                  uint64_t sectionsEnd) {
  Checker::Scope scope(check, "section", index);
  using Kind = fb::SectionKind;
  Kind kind = section.kind();
  if (kind > Kind::MAX)
    return check.invalid("its kind is {}, expected 0 to {}", unsigned(kind),
                         unsigned(Kind::MAX));
  bool named = kind == Kind::Ir || kind == Kind::Code || kind == Kind::Source;
  if (!check.isText("name", section.name(), named ? 1 : 0, 128))
    return false;
  if (section.offset() < sectionAlignment ||
      section.offset() % sectionAlignment != 0 || section.bytes() == 0 ||
      !rangeFits(section.offset(), section.bytes(), sectionsEnd))
    return check.invalid("it lies at {} + {} bytes, expected a multiple of {} "
                         "and an end before {}",
                         section.offset(), section.bytes(), sectionAlignment,
                         sectionsEnd);
  bool text = kind == Kind::Ir || kind == Kind::Source;
  if (text ? section.raw_bytes() > maxTextBytes
           : section.raw_bytes() != section.bytes())
    return check.invalid("it has {} bytes when unpacked, expected {}{}",
                         section.raw_bytes(), text ? "at most " : "",
                         text ? maxTextBytes : section.bytes());
  if (kind == Kind::Tokenizer &&
      !check.inRange("bytes", section.bytes(), 1, maxTokenizerBytes))
    return false;
  uint64_t hash = kind == Kind::Weights ? 0 : hashBytes;
  return check.sized("sha256", section.sha256(), hash, hash);
}

/// The only section of its kind, or null; notes an error if there are several.
bool only(Checker &check, const fb::Manifest &manifest, fb::SectionKind kind,
          const fb::Section *&found) {
  found = nullptr;
  for (const fb::Section *section : *manifest.sections()) {
    if (section->kind() != kind)
      continue;
    if (found)
      return check.invalid("there are two sections of kind {}, expected one",
                           fb::EnumNameSectionKind(kind));
    found = section;
  }
  return true;
}

bool checkSections(Checker &check, const fb::Manifest &manifest,
                   uint64_t sectionsEnd) {
  if (!check.sized("sections", manifest.sections(), 1, maxSections))
    return false;
  const auto &sections = *manifest.sections();
  std::unordered_set<std::string> names;
  uint64_t end = 0;
  for (unsigned i = 0; i < sections.size(); ++i) {
    const fb::Section &section = *sections[i];
    if (!checkSection(check, section, i, sectionsEnd))
      return false;
    if (section.offset() < end)
      return check.invalid("{} starts at {}, expected it behind the end of the "
                           "one before at {}",
                           nameOf(section, i), section.offset(), end);
    end = section.offset() + section.bytes();
    if (!names
             .insert(fmt::format("{}{}", char('0' + unsigned(section.kind())),
                                 viewOf(section.name())))
             .second)
      return check.invalid("{} is there twice, expected once",
                           nameOf(section, i));
  }

  const fb::Section *weights, *hashes, *tokenizer;
  if (!only(check, manifest, fb::SectionKind::Weights, weights) ||
      !only(check, manifest, fb::SectionKind::ChunkHashes, hashes) ||
      !only(check, manifest, fb::SectionKind::Tokenizer, tokenizer))
    return false;
  if (!weights || !hashes)
    return check.invalid("there is no section of kind {}, expected one",
                         weights ? "ChunkHashes" : "Weights");
  uint64_t chunks = weights->bytes() / weightChunkBytes +
                    (weights->bytes() % weightChunkBytes != 0);
  if (hashes->bytes() != hashBytes * chunks)
    return check.invalid("the section of chunk hashes has {} bytes, expected "
                         "{} for {} chunks of the weights",
                         hashes->bytes(), hashBytes * chunks, chunks);
  if (!check.sized("weights_root", manifest.weights_root(), hashBytes,
                   hashBytes))
    return false;
  return std::equal(hashes->sha256()->begin(), hashes->sha256()->end(),
                    manifest.weights_root()->begin()) ||
         check.invalid(
             "weights_root differs from the hash of the chunk hashes");
}

/// Bytes of a weight by its shape; nothing if there is no such weight.
std::optional<uint64_t> bytesOf(kernels::Format format, std::string_view layout,
                                uint64_t rows, uint64_t k) {
  if (layout == kernels::r16Name)
    return kernels::packedBytes(format, rows, k);
  auto row = kernels::rowBytes(format, k);
  return row ? checkedMul<uint64_t>(*row, rows) : std::nullopt;
}

bool checkWeights(Checker &check, const fb::Manifest &manifest) {
  if (!check.sized("weights", manifest.weights(), 1, maxWeights))
    return false;
  const fb::Section *section = nullptr;
  if (!only(check, manifest, fb::SectionKind::Weights, section))
    return false;
  std::unordered_set<std::string_view> names;
  uint64_t end = 0;
  for (const fb::Weight *weight : *manifest.weights()) {
    Checker::Scope scope(check, "weight", weight->name());
    if (!check.isText("name", weight->name(), 1, 512) ||
        !check.isText("model_name", weight->model_name(), 0, 1024))
      return false;
    if (!names.insert(viewOf(weight->name())).second)
      return check.invalid("it is there twice, expected once");
    auto format = kernels::formatFromName(viewOf(weight->format()));
    if (!format)
      return check.reject(ErrorKind::Unsupported,
                          "its format is {}, which this version of lathe "
                          "does not know",
                          quoted(viewOf(weight->format())));
    std::string_view layout = viewOf(weight->layout());
    if (layout != kernels::r16Name && layout != "rows")
      return check.reject(ErrorKind::Unsupported,
                          "its layout is {}, expected 'r16' or 'rows'",
                          quoted(layout));
    if (!check.inRange("rows", weight->rows(), 1, UINT32_MAX) ||
        !check.inRange("k", weight->k(), 1, UINT32_MAX))
      return false;
    auto bytes = bytesOf(*format, layout, weight->rows(), weight->k());
    if (!bytes || *bytes != weight->bytes())
      return check.invalid(
          "{} x {} of {} in layout {} has {} bytes, found "
          "{}",
          weight->rows(), weight->k(), kernels::traitsOf(*format).name, layout,
          bytes ? std::to_string(*bytes) : "no whole", weight->bytes());
    if (weight->offset() % weightAlignment != 0 || weight->offset() < end ||
        !rangeFits(weight->offset(), weight->bytes(), section->bytes()))
      return check.invalid("it lies at {} + {} bytes, expected a multiple of "
                           "{} from {} on and an end before {}",
                           weight->offset(), weight->bytes(), weightAlignment,
                           end, section->bytes());
    end = weight->offset() + weight->bytes();
  }
  return end == section->bytes() ||
         check.invalid("the weights end at {}, expected the end of their "
                       "section at {}",
                       end, section->bytes());
}

/// Index `index` names a section of `kind` with the target's name.
bool checkTargetSection(Checker &check, const fb::Manifest &manifest,
                        std::string_view item, std::string_view target,
                        uint64_t index, fb::SectionKind kind) {
  const auto &sections = *manifest.sections();
  if (!check.inRange(item, index, 0, sections.size() - 1))
    return false;
  const fb::Section &section = *sections[static_cast<unsigned>(index)];
  return (section.kind() == kind && viewOf(section.name()) == target) ||
         check.invalid("{} is {}, expected the {} section of {}", item,
                       nameOf(section, index), fb::EnumNameSectionKind(kind),
                       quoted(target));
}

bool checkTargets(Checker &check, const fb::Manifest &manifest) {
  if (!check.sized("targets", manifest.targets(), 1, maxTargets))
    return false;
  std::unordered_set<std::string_view> names;
  for (const fb::Target *target : *manifest.targets()) {
    std::string_view name = viewOf(target->name());
    Checker::Scope scope(check, "target", target->name());
    if (!check.isName("name", target->name(), ":-.") ||
        !check.isName("isa", target->isa(), "-.") ||
        !check.isText("required_features", target->required_features(), 0,
                      2048))
      return false;
    if (!names.insert(name).second)
      return check.invalid("it is there twice, expected once");
    if (!check.inRange("program", target->program(), 0,
                       manifest.programs()->size() - 1) ||
        !checkTargetSection(check, manifest, "code", name, target->code(),
                            fb::SectionKind::Code) ||
        !checkTargetSection(check, manifest, "source", name, target->source(),
                            fb::SectionKind::Source))
      return false;
  }
  return true;
}

bool checkSources(Checker &check, const fb::Manifest &manifest) {
  if (!check.sized("sources", manifest.sources(), 0, 1024) ||
      !check.sized("options", manifest.options(), 0, 1024))
    return false;
  if (manifest.sources())
    for (const fb::SourceFile *source : *manifest.sources()) {
      std::string_view hash = viewOf(source->sha256());
      if (!check.isText("a source file's name", source->name(), 1, 4096))
        return false;
      if (hash.size() != 2 * hashBytes ||
          hash.find_first_not_of("0123456789abcdef") != std::string_view::npos)
        return check.invalid("source {}: its sha256 is {}, expected 64 "
                             "hexadecimal digits",
                             quoted(viewOf(source->name())), quoted(hash));
    }
  if (manifest.options())
    for (const flatbuffers::String *option : *manifest.options())
      if (!check.isText("an option", option, 1, 4096))
        return false;
  return true;
}

bool checkManifest(Checker &check, const fb::Manifest &manifest,
                   uint64_t sectionsEnd) {
  return check.isText("producer", manifest.producer(), 1, 256) &&
         checkModel(check, manifest) &&
         checkSections(check, manifest, sectionsEnd) &&
         checkWeights(check, manifest) && checkKvGroups(check, manifest) &&
         checkPrograms(check, manifest) && checkTargets(check, manifest) &&
         checkSources(check, manifest);
}

} // namespace

Result<const fb::Manifest *> validateManifest(std::span<const uint8_t> bytes,
                                              uint64_t sectionsEnd) {
  flatbuffers::Verifier::Options options;
  options.max_tables = maxTables;
  if (bytes.size() > maxManifestBytes)
    return fail(ErrorKind::InvalidInput,
                "the manifest has {} bytes, expected at most {}", bytes.size(),
                maxManifestBytes);
  flatbuffers::Verifier verifier(bytes.data(), bytes.size(), options);
  if (!fb::VerifyManifestBuffer(verifier))
    return fail(ErrorKind::InvalidInput,
                "the manifest is not a well-formed FlatBuffer with identifier "
                "'{}'",
                fb::ManifestIdentifier());
  const fb::Manifest *manifest = fb::GetManifest(bytes.data());
  if (manifest->min_reader() > engineFormatVersion)
    return fail(ErrorKind::Unsupported,
                "it needs a reader of format version {}, this one knows {}: "
                "{} made it; use that version of lathe or compile the model "
                "again",
                manifest->min_reader(), engineFormatVersion,
                quoted(viewOf(manifest->producer())));
  if (manifest->format_version() != 0 &&
      manifest->format_version() < oldestFormatVersion)
    return fail(ErrorKind::Unsupported,
                "it is of format version {}, this one reads {} and later: an "
                "older {} made it; compile the model again",
                manifest->format_version(), oldestFormatVersion,
                quoted(viewOf(manifest->producer())));
  Checker check;
  bool valid = check.inRange("min_reader", manifest->min_reader(), 1,
                             engineFormatVersion) &&
               check.inRange("format_version", manifest->format_version(),
                             manifest->min_reader(), UINT32_MAX) &&
               checkManifest(check, *manifest, sectionsEnd);
  if (!valid)
    return tl::unexpected<Error>(std::move(*check.error));
  return manifest;
}

std::vector<std::string> splitNames(std::string_view list) {
  std::vector<std::string> names;
  while (!list.empty()) {
    size_t end = std::min(list.find(' '), list.size());
    if (end > 0)
      names.emplace_back(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return names;
}

} // namespace lathe::runtime
