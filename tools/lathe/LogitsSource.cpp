#include "tools/lathe/LogitsSource.h"

#include "runtime/support/Checked.h"
#include "runtime/support/MappedFile.h"
#include "runtime/support/Quote.h"

#include <algorithm>
#include <charconv>
#include <cstring>

using namespace lathe;
using namespace lathe::tools;
using runtime::displayPath;
using runtime::MappedFile;

namespace {

constexpr std::string_view npyMagic = "\x93NUMPY";
constexpr std::string_view llamaMagic = "_logits_";

std::string_view textOf(std::span<const uint8_t> bytes) {
  return {reinterpret_cast<const char *>(bytes.data()), bytes.size()};
}

class SessionSource : public LogitsSource {
public:
  explicit SessionSource(std::unique_ptr<runtime::Session> session)
      : session(std::move(session)) {}

  u32 vocab() const override { return session->vocab(); }

  Result<void> start(std::span<const i32> tokens) override {
    if (auto empty = session->truncate(0); !empty)
      return empty;
    return session->append(tokens);
  }

  Result<std::span<const f32>> rows(std::span<const i32> tokens) override {
    logits.clear();
    auto done = session->append(tokens, 0, [&](u32, std::span<const f32> row) {
      logits.insert(logits.end(), row.begin(), row.end());
    });
    if (!done)
      return failFrom(done);
    return std::span<const f32>(logits);
  }

private:
  std::unique_ptr<runtime::Session> session;
  std::vector<f32> logits;
};

/// The rows of a NumPy file, one after the other.
class NpySource : public LogitsSource {
public:
  static Result<std::unique_ptr<LogitsSource>> open(MappedFile file) {
    std::unique_ptr<NpySource> source(new NpySource(std::move(file)));
    if (!source->readHeader())
      return fail(ErrorKind::InvalidInput,
                  "{}: not a NumPy array of float32 [rows, vocabulary]",
                  displayPath(source->file.path()));
    return source;
  }

  u32 vocab() const override { return columns; }

  Result<void> start(std::span<const i32>) override { return {}; }

  Result<std::span<const f32>> rows(std::span<const i32> tokens) override {
    u64 bytes = tokens.size() * columns * sizeof(f32);
    if (bytes > file.size() - at)
      return fail(ErrorKind::InvalidInput,
                  "{}: has fewer rows than the text has predictions",
                  displayPath(file.path()));
    // The header's length need not be a multiple of four.
    logits.resize(tokens.size() * columns);
    std::memcpy(logits.data(), file.bytes().data() + at, bytes);
    at += bytes;
    return std::span<const f32>(logits);
  }

private:
  explicit NpySource(MappedFile file) : file(std::move(file)) {}

  /// The format: numpy.lib.format, versions 1 to 3.
  bool readHeader() {
    auto bytes = file.bytes();
    if (bytes.size() < 12)
      return false;
    u64 length = bytes[8] | u64(bytes[9]) << 8;
    u64 begin = 10;
    if (bytes[6] > 1) {
      length |= u64(bytes[10]) << 16 | u64(bytes[11]) << 24;
      begin = 12;
    }
    if (!runtime::rangeFits(begin, length, bytes.size()))
      return false;
    std::string_view header = textOf(bytes.subspan(begin, length));
    if (header.find("'descr': '<f4'") == header.npos ||
        header.find("'fortran_order': False") == header.npos)
      return false;
    size_t shape = header.find("'shape': (");
    size_t comma = header.find(", ", shape);
    if (shape == header.npos || comma == header.npos)
      return false;
    const char *end = header.data() + header.size();
    auto [rest, error] =
        std::from_chars(header.data() + comma + 2, end, columns);
    at = begin + length;
    return error == std::errc() && rest != end && *rest == ')' && columns != 0;
  }

  MappedFile file;
  u64 at = 0;
  u32 columns = 0;
  std::vector<f32> logits;
};

/// llama-perplexity's file: magic, then i32 chunk length, vocabulary and number
/// of chunks, the tokens of all chunks, and per row of a chunk's second half
/// f32 scale, f32 least log-probability and u16 steps above it.
class LlamaSource : public LogitsSource {
public:
  static Result<std::unique_ptr<LogitsSource>> open(MappedFile file,
                                                    u32 chunk) {
    std::unique_ptr<LlamaSource> source(new LlamaSource(std::move(file)));
    auto bytes = source->file.bytes();
    i32 header[3] = {};
    if (bytes.size() < headerBytes)
      return source->damaged();
    std::memcpy(header, bytes.data() + llamaMagic.size(), sizeof(header));
    if (header[0] != i32(chunk))
      return fail(ErrorKind::InvalidInput,
                  "{}: made with chunks of {} tokens, expected {} (--chunk)",
                  displayPath(source->file.path()), header[0], chunk);
    source->chunk = chunk;
    source->size = u32(header[1]);
    source->chunks = u32(header[2]);
    auto tokens = runtime::checkedMul<u64>(chunk, source->chunks);
    auto tokenBytes = runtime::checkedMul<u64>(tokens.value_or(~u64(0)), 4);
    if (header[1] <= 0 || header[2] < 0 || !tokenBytes ||
        !runtime::rangeFits(headerBytes, *tokenBytes, bytes.size()))
      return source->damaged();
    source->at = headerBytes + *tokenBytes;
    return source;
  }

  u32 vocab() const override { return size; }

  Result<void> start(std::span<const i32> tokens) override {
    if (started == chunks)
      return fail(ErrorKind::InvalidInput,
                  "{}: has {} chunks, the text has more (--chunks)",
                  displayPath(file.path()), chunks);
    position = u64(started++) * chunk + tokens.size();
    return {};
  }

  Result<std::span<const f32>> rows(std::span<const i32> tokens) override {
    u64 steps = (u64(size) + 1) / 2 * 2;
    u64 rowBytes = (steps + 4) * sizeof(u16);
    if (!runtime::rangeFits(at, tokens.size() * rowBytes, file.size()))
      return damaged();
    logits.resize(tokens.size() * size);
    for (size_t row = 0; row < tokens.size(); ++row, at += rowBytes) {
      const u8 *bytes = file.bytes().data();
      i32 token = 0;
      std::memcpy(&token, bytes + headerBytes + (position++) * 4, 4);
      if (token != tokens[row])
        return fail(ErrorKind::InvalidInput,
                    "{}: made from another text or tokenizer (token {} where "
                    "this one has {})",
                    displayPath(file.path()), token, tokens[row]);
      f32 scale = 0, least = 0;
      std::memcpy(&scale, bytes + at, 4);
      std::memcpy(&least, bytes + at + 4, 4);
      for (u32 i = 0; i < size; ++i) {
        u16 step = 0;
        std::memcpy(&step, bytes + at + 8 + u64(i) * 2, 2);
        logits[row * size + i] = scale * f32(step) + least;
      }
    }
    return std::span<const f32>(logits);
  }

private:
  static constexpr u64 headerBytes = llamaMagic.size() + 12;

  explicit LlamaSource(MappedFile file) : file(std::move(file)) {}

  tl::unexpected<Error> damaged() const {
    return fail(ErrorKind::InvalidInput, "{}: cut or damaged",
                displayPath(file.path()));
  }

  MappedFile file;
  u32 chunk = 0, size = 0, chunks = 0;
  u32 started = 0;
  u64 position = 0; ///< Of the next token, over all chunks.
  u64 at = 0;
  std::vector<f32> logits;
};

bool startsWith(const MappedFile &file, std::string_view magic) {
  return textOf(file.bytes()).starts_with(magic);
}

} // namespace

std::unique_ptr<LogitsSource>
tools::sourceOf(std::unique_ptr<runtime::Session> session) {
  return std::make_unique<SessionSource>(std::move(session));
}

bool tools::holdsLogits(const std::string &path) {
  auto file = MappedFile::open(path);
  return file && (startsWith(*file, npyMagic) || startsWith(*file, llamaMagic));
}

Result<std::unique_ptr<LogitsSource>> tools::openLogits(const std::string &path,
                                                        u32 chunk) {
  auto file = MappedFile::open(path);
  if (!file)
    return failFrom(file);
  if (startsWith(*file, llamaMagic))
    return LlamaSource::open(std::move(*file), chunk);
  return NpySource::open(std::move(*file));
}

Result<NpyWriter> NpyWriter::create(const std::string &path, u64 rows,
                                    u64 columns) {
  auto file = runtime::AtomicFile::create(path);
  if (!file)
    return failFrom(file);
  std::string header = fmt::format(
      "{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}), }}", rows,
      columns);
  // Magic, version 1.0, u16 length; values begin at a multiple of 64.
  constexpr size_t before = npyMagic.size() + 4;
  header.resize((before + header.size() + 1 + 63) / 64 * 64 - before - 1, ' ');
  header += '\n';
  std::string start(npyMagic);
  start +=
      {'\x01', '\x00', char(header.size() & 0xFF), char(header.size() >> 8)};
  start += header;
  NpyWriter writer(std::move(*file));
  auto written = writer.file.append(
      {reinterpret_cast<const uint8_t *>(start.data()), start.size()});
  if (!written)
    return failFrom(written);
  return writer;
}

Result<void> NpyWriter::append(std::span<const f32> values) {
  return file.append(
      {reinterpret_cast<const uint8_t *>(values.data()), values.size_bytes()});
}
