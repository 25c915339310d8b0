#include "runtime/engine/Engine.h"

#include "runtime/engine/TokenizerSection.h"
#include "runtime/engine/Validate.h"
#include "runtime/support/Quote.h"

#include <algorithm>
#include <zstd.h>

namespace lathe::runtime {

namespace fb = engine::fb;

tl::unexpected<Error> Engine::failHere(Error error) const {
  error.message = displayPath(file.path()) + ": " + error.message;
  return tl::unexpected<Error>(std::move(error));
}

Result<std::shared_ptr<const Engine>> Engine::open(const std::string &path,
                                                   const OpenOptions &options) {
  auto mapped = MappedFile::open(path);
  if (!mapped)
    return failFrom(mapped);
  std::shared_ptr<Engine> engine(new Engine);
  engine->file = std::move(*mapped);
  engine->trustCode = options.trustCode;

  auto trailer = engine->read();
  if (!trailer)
    return engine->failHere(trailer.error());
  engine->fileDigest = trailer->digest;
  engine->judge(options, *trailer);
  return engine;
}

Result<EngineTrailer> Engine::read() {
  std::span<const uint8_t> bytes = file.bytes();
  auto header = decodeHeader(bytes);
  if (!header)
    return failFrom(header);
  auto trailer = decodeTrailer(bytes.last(engineTrailerBytes));
  if (!trailer)
    return failFrom(trailer);

  auto stored = bytes.subspan(header->manifestOffset, header->manifestBytes);
  manifestBytes.resize((stored.size() + 7) / 8);
  std::copy(stored.begin(), stored.end(),
            reinterpret_cast<uint8_t *>(manifestBytes.data()));
  std::span<const uint8_t> manifest(
      reinterpret_cast<const uint8_t *>(manifestBytes.data()), stored.size());
  if (manifestDigest(bytes.first(engineHeaderBytes), manifest) !=
      trailer->digest)
    return fail(ErrorKind::InvalidInput,
                "the manifest is damaged: its hash is not the one in the "
                "trailer; copy the file again or compile the model again");
  auto valid = validateManifest(manifest, header->manifestOffset);
  if (!valid) {
    Error error = valid.error();
    if (error.kind == ErrorKind::InvalidInput)
      error.message += "; compile the model again";
    return tl::unexpected<Error>(std::move(error));
  }
  root = *valid;
  if (auto gaps = checkGaps(header->manifestOffset); !gaps)
    return failFrom(gaps);
  return trailer;
}

Result<void> Engine::checkGaps(uint64_t manifestOffset) const {
  auto check = [&](uint64_t from, uint64_t to) -> Result<void> {
    auto gap = file.bytes().subspan(from, to - from);
    auto stray = std::find_if(gap.begin(), gap.end(),
                              [](uint8_t byte) { return byte != 0; });
    if (gap.size() >= sectionAlignment)
      return fail(ErrorKind::InvalidInput,
                  "{} bytes from {} on belong to no section, expected less "
                  "than {}; compile the model again",
                  gap.size(), from, sectionAlignment);
    if (stray != gap.end())
      return fail(ErrorKind::InvalidInput,
                  "byte {} between two sections is {}, expected 0; copy the "
                  "file again or compile the model again",
                  from + uint64_t(stray - gap.begin()), *stray);
    return {};
  };
  uint64_t end = engineHeaderBytes;
  for (const fb::Section *section : *root->sections()) {
    if (auto gap = check(end, section->offset()); !gap)
      return gap;
    end = section->offset() + section->bytes();
  }
  return check(end, manifestOffset);
}

void Engine::judge(const OpenOptions &options, const EngineTrailer &trailer) {
  if (trailer.kind == SignatureKind::None)
    return;
  origin.key.bytes = trailer.key;
  if (!origin.key.verifies(signedMessage(trailer.digest), trailer.signature)) {
    origin.state = TrustState::Bad;
    return;
  }
  origin.state = TrustState::Unknown;
  auto note = [&](const Error &error) {
    origin.problem += (origin.problem.empty() ? "" : "; ") + error.message;
  };
  auto store =
      options.trust ? Result<TrustStore>(*options.trust) : TrustStore::ofUser();
  if (!store)
    return note(store.error());
  auto own = store->ownPublicKey();
  if (!own)
    note(own.error());
  else if (*own == origin.key)
    origin.state = TrustState::Own;
  auto accepted = store->accepted();
  if (!accepted)
    note(accepted.error());
  else if (origin.state == TrustState::Unknown &&
           std::any_of(
               accepted->begin(), accepted->end(),
               [&](const AcceptedKey &a) { return a.key == origin.key; }))
    origin.state = TrustState::Accepted;
}

const fb::Section *Engine::section(fb::SectionKind kind,
                                   std::string_view name) const {
  for (const fb::Section *section : *root->sections())
    if (section->kind() == kind && viewOf(section->name()) == name)
      return section;
  return nullptr;
}

std::span<const uint8_t> Engine::bytesOf(const fb::Section &section) const {
  return file.bytes().subspan(section.offset(), section.bytes());
}

std::span<const uint8_t> Engine::weights() const {
  for (const fb::Section *section : *root->sections())
    if (section->kind() == fb::SectionKind::Weights)
      return bytesOf(*section);
  return {}; // not reached: a manifest has one
}

Result<std::vector<uint8_t>>
Engine::checkedCopy(const fb::Section &section) const {
  auto stored = bytesOf(section);
  std::vector<uint8_t> copy(stored.begin(), stored.end());
  if (auto right = checkHash(section, copy); !right)
    return failFrom(right);
  return copy;
}

Result<std::string> Engine::unpackText(const fb::Section &section) const {
  auto stored = checkedCopy(section);
  if (!stored)
    return failFrom(stored);
  std::string text(section.raw_bytes(), '\0');
  size_t got =
      ZSTD_decompress(text.data(), text.size(), stored->data(), stored->size());
  if (ZSTD_isError(got) || got != text.size())
    return failHere(
        {ErrorKind::InvalidInput,
         fmt::format("section {} ({}) does not unpack to {} bytes: {}; compile "
                     "the model again",
                     quoted(viewOf(section.name())),
                     fb::EnumNameSectionKind(section.kind()), text.size(),
                     ZSTD_isError(got) ? ZSTD_getErrorName(got)
                                       : "too short")});
  return text;
}

std::vector<std::string> Engine::phases() const {
  std::vector<std::string> names;
  for (const fb::Section *section : *root->sections())
    if (section->kind() == fb::SectionKind::Ir)
      names.emplace_back(viewOf(section->name()));
  return names;
}

Result<std::string> Engine::ir(std::string_view phase) const {
  if (const fb::Section *found = section(fb::SectionKind::Ir, phase))
    return unpackText(*found);
  return failHere(
      {ErrorKind::NotFound,
       fmt::format("there is no IR of phase {}; it has {}", quoted(phase),
                   phases().empty()
                       ? "none"
                       : fmt::to_string(fmt::join(phases(), ", ")))});
}

Result<std::string> Engine::sources(uint32_t target) const {
  return unpackText(*(*root->sections())[(*root->targets())[target]->source()]);
}

Result<TokenizerSpec> Engine::tokenizer() const {
  const fb::Section *found = nullptr;
  for (const fb::Section *section : *root->sections())
    if (section->kind() == fb::SectionKind::Tokenizer)
      found = section;
  if (!found)
    return failHere({ErrorKind::NotFound,
                     "the engine has no tokenizer: its model file had none; "
                     "give prompts as token ids"});
  auto stored = checkedCopy(*found);
  if (!stored)
    return failFrom(stored);
  auto spec = decodeTokenizer(*stored, root->model()->vocab());
  if (!spec)
    return failHere({spec.error().kind,
                     spec.error().message + "; compile the model again"});
  return spec;
}

} // namespace lathe::runtime
