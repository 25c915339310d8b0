/// \file
/// lathe eval: how well a model predicts a text, and how far it is from
/// another.

#include "runtime/sample/LogProbs.h"
#include "runtime/support/MappedFile.h"
#include "runtime/support/Quote.h"
#include "tools/lathe/Checks.h"
#include "tools/lathe/Command.h"
#include "tools/lathe/Interrupt.h"
#include "tools/lathe/LogitsSource.h"
#include "tools/lathe/OpenModel.h"
#include "tools/lathe/Places.h"
#include "tools/lathe/Terminal.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>

using namespace lathe;
using namespace lathe::tools;
using runtime::displayPath;
using runtime::LogProbs;

namespace {

struct Options {
  std::string model;
  std::string textFile;
  std::string logitsFile;
  std::string compare;
  u32 chunk = 512;
  u32 chunks = 0; ///< Most chunks; 0: all.
  runtime::SessionOptions session;
  ModelOptions open;
  bool json = false;
};

/// Rows evaluated and compared at a time: bounds the logits held.
constexpr size_t sliceRows = 32;

/// Sums over all predictions.
struct Sums {
  u64 count = 0;
  f64 nll = 0;
  f64 referenceNll = 0;
  u64 sameTop = 0;
  std::vector<f64> kl;
};

/// KL(reference || model) of one row, in nat.
f64 divergence(const LogProbs &reference, const LogProbs &model, u32 vocab) {
  f64 sum = 0;
  for (u32 token = 0; token < vocab; ++token) {
    f64 expected = reference.of(token);
    // Less than this adds nothing that could be seen; -infinity adds nothing.
    if (expected > -40)
      sum += std::exp(expected) * (expected - model.of(token));
  }
  return sum;
}

u32 topOf(std::span<const f32> row) {
  return u32(std::max_element(row.begin(), row.end()) - row.begin());
}

/// llama-perplexity's percentile: linear between neighbours.
f64 percentile(const std::vector<f64> &sorted, f64 share) {
  f64 place = share * f64(sorted.size() - 1);
  auto below = size_t(place);
  f64 rest = place - f64(below);
  size_t above = std::min(below + 1, sorted.size() - 1);
  return (1 - rest) * sorted[below] + rest * sorted[above];
}

class Evaluation {
public:
  Evaluation(const Options &options, std::unique_ptr<LogitsSource> model,
             std::unique_ptr<LogitsSource> reference,
             std::optional<NpyWriter> writer, i32 bos)
      : chunk(options.chunk), model(std::move(model)),
        reference(std::move(reference)), writer(std::move(writer)), bos(bos) {}

  /// Evaluates the first `chunks` chunks. As llama-perplexity: a chunk begins
  /// with BOS instead of its first token if the model begins texts with it, and
  /// of its predictions those of the second half count.
  Result<Sums> run(std::span<const i32> tokens, u32 chunks) {
    Progress progress;
    for (u32 i = 0; i < chunks && !wasInterrupted(); ++i) {
      progress.update("evaluating", i, chunks);
      std::vector<i32> part(tokens.begin() + i64(i) * chunk,
                            tokens.begin() + i64(i + 1) * chunk);
      if (bos != runtime::kNoToken)
        part[0] = bos;
      if (auto done = evaluate(part); !done)
        return failFrom(done);
    }
    if (writer && !wasInterrupted())
      if (auto written = writer->commit(); !written)
        return failFrom(written);
    return std::move(sums);
  }

private:
  Result<void> evaluate(std::span<const i32> part) {
    u32 first = chunk / 2;
    if (auto begun = model->start(part.first(first)); !begun)
      return begun;
    if (reference)
      if (auto begun = reference->start(part.first(first)); !begun)
        return begun;
    for (size_t at = first; at + 1 < chunk;) {
      size_t count = std::min(sliceRows, chunk - 1 - at);
      // The tokens fed, and the ones that they should predict.
      if (auto done =
              compare(part.subspan(at, count), part.subspan(at + 1, count));
          !done)
        return done;
      at += count;
    }
    return {};
  }

  Result<void> compare(std::span<const i32> fed,
                       std::span<const i32> expected) {
    auto rows = model->rows(fed);
    if (!rows)
      return failFrom(rows);
    if (writer)
      if (auto written = writer->append(*rows); !written)
        return written;
    std::span<const f32> others;
    if (reference) {
      auto result = reference->rows(fed);
      if (!result)
        return failFrom(result);
      others = *result;
    }
    u32 vocab = model->vocab();
    for (size_t i = 0; i < expected.size(); ++i) {
      auto row = rows->subspan(i * vocab, vocab);
      auto logProbs = LogProbs::of(row);
      if (!logProbs)
        return failFrom(logProbs);
      sums.nll -= logProbs->of(u32(expected[i]));
      ++sums.count;
      if (!reference)
        continue;
      auto other = others.subspan(i * vocab, vocab);
      auto otherLogProbs = LogProbs::of(other);
      if (!otherLogProbs)
        return failFrom(otherLogProbs, "the reference");
      sums.referenceNll -= otherLogProbs->of(u32(expected[i]));
      sums.kl.push_back(divergence(*otherLogProbs, *logProbs, vocab));
      sums.sameTop += topOf(row) == topOf(other);
    }
    return {};
  }

  u32 chunk;
  std::unique_ptr<LogitsSource> model;
  std::unique_ptr<LogitsSource> reference;
  std::optional<NpyWriter> writer;
  i32 bos;
  Sums sums;
};

void print(const Options &options, u32 chunks, Sums sums) {
  f64 count = f64(sums.count);
  f64 perplexity = std::exp(sums.nll / count);
  nlohmann::ordered_json json = {
      {"perplexity", perplexity}, {"tokens", sums.count}, {"chunks", chunks}};
  if (!options.json)
    printOut("perplexity {:.4f} over {} in {} of {}\n", perplexity,
             counted(sums.count, "token"), counted(chunks, "chunk"),
             options.chunk);
  if (!sums.kl.empty()) {
    std::sort(sums.kl.begin(), sums.kl.end());
    f64 mean = 0;
    for (f64 value : sums.kl)
      mean += value / count;
    f64 other = std::exp(sums.referenceNll / count);
    f64 share = f64(sums.sameTop) / count;
    json["reference_perplexity"] = other;
    json["kl_divergence"] = {{"mean", mean},
                             {"p99", percentile(sums.kl, 0.99)},
                             {"max", sums.kl.back()}};
    json["top1_agreement"] = share;
    if (!options.json)
      printOut("reference  {:.4f}\n"
               "KL divergence from it, nat per token: mean {:.6f}, 99 % "
               "{:.6f}, maximum {:.6f}\n"
               "same likeliest token: {:.2f} %\n",
               other, mean, percentile(sums.kl, 0.99), sums.kl.back(),
               share * 100);
  }
  if (options.json)
    printJson(json);
}

Result<std::unique_ptr<LogitsSource>>
openModelSource(std::shared_ptr<const runtime::LoadedEngine> engine,
                const Options &options) {
  runtime::SessionOptions session = options.session;
  session.context = options.chunk;
  session.names = {.context = "--chunk", .chunk = "--chunk"};
  auto made = runtime::Session::create(std::move(engine), session);
  if (!made)
    return failFrom(made);
  return sourceOf(std::move(*made));
}

/// The other side of --compare. A model must make the same tokens of the text.
Result<std::unique_ptr<LogitsSource>>
openReference(const Options &options, const std::string &text,
              const std::vector<i32> &tokens) {
  if (holdsLogits(options.compare))
    return openLogits(options.compare, options.chunk);
  auto engine = loadModel(options.compare, options.open);
  if (!engine)
    return failFrom(engine);
  auto tokenizer = tokenizerOf((*engine)->engine());
  if (!tokenizer)
    return failFrom(tokenizer);
  auto ids = tokenizer->encode(text, {.addSpecial = true});
  if (!ids)
    return failFrom(ids);
  if (*ids != tokens)
    return fail(ErrorKind::InvalidInput,
                "{}: makes other tokens of this text, so its predictions "
                "cannot be compared",
                displayPath(options.compare));
  return openModelSource(std::move(*engine), options);
}

Result<int> eval(const Options &options) {
  warnOfThreads(options.session.threads);
  auto file = runtime::MappedFile::open(options.textFile);
  if (!file)
    return failFrom(file);
  std::string text(file->bytes().begin(), file->bytes().end());
  auto engine = loadModel(options.model, options.open);
  if (!engine)
    return failFrom(engine);
  auto tokenizer = tokenizerOf((*engine)->engine());
  if (!tokenizer)
    return failFrom(tokenizer);
  auto tokens = tokenizer->encode(text, {.addSpecial = true});
  if (!tokens)
    return failFrom(tokens);
  u64 chunks = tokens->size() / options.chunk;
  if (chunks == 0)
    return fail(ErrorKind::InvalidInput,
                "{}: {}, fewer than a chunk of {} (--chunk)",
                displayPath(options.textFile), counted(tokens->size(), "token"),
                options.chunk);
  if (options.chunks != 0)
    chunks = std::min<u64>(chunks, options.chunks);

  std::unique_ptr<LogitsSource> reference;
  if (!options.compare.empty()) {
    auto opened = openReference(options, text, *tokens);
    if (!opened)
      return failFrom(opened);
    reference = std::move(*opened);
  }
  auto model = openModelSource(*engine, options);
  if (!model)
    return failFrom(model);
  u32 vocab = (*model)->vocab();
  if (reference && reference->vocab() != vocab)
    return fail(ErrorKind::InvalidInput,
                "{}: has a vocabulary of {}, expected {}",
                displayPath(options.compare), reference->vocab(), vocab);
  std::optional<NpyWriter> writer;
  for (const std::string &path :
       {options.model, options.textFile, options.compare})
    if (std::error_code error;
        !path.empty() &&
        std::filesystem::equivalent(path, options.logitsFile, error))
      return fail(ErrorKind::InvalidInput,
                  "{} is read and must not be written over; give another "
                  "--logits",
                  displayPath(path));
  if (!options.logitsFile.empty()) {
    u64 rows = chunks * (options.chunk - 1 - options.chunk / 2);
    auto created = NpyWriter::create(options.logitsFile, rows, vocab);
    if (!created)
      return failFrom(created);
    writer = std::move(*created);
  }
  catchInterrupts();
  const runtime::TokenizerSpec &spec = tokenizer->spec();
  Evaluation evaluation(options, std::move(*model), std::move(reference),
                        std::move(writer),
                        spec.addBos ? spec.bosId : runtime::kNoToken);
  auto sums = evaluation.run(*tokens, u32(chunks));
  if (!sums)
    return failFrom(sums);
  if (wasInterrupted())
    return interruptedStatus();
  print(options, u32(chunks), std::move(*sums));
  return exitDone;
}

} // namespace

void tools::addEval(const CommandLine &line) {
  auto options = std::make_shared<Options>();
  CLI::App *command = line.add(
      "eval", "Measure perplexity on a text, and the distance to another run",
      "  lathe eval smollm2 -f text.txt\n"
      "  lathe eval q4.gguf -f text.txt --compare f16.gguf --json");
  command
      ->add_option("MODEL", options->model,
                   "A GGUF model, an engine, or the name of a local one")
      ->required();
  command->add_option("-f,--file", options->textFile, "The text")->required();
  command
      ->add_option("--chunk", options->chunk,
                   "Tokens of a chunk; the second half of each is scored")
      ->check(wholeNumber(4, chunkMax))
      ->capture_default_str();
  command
      ->add_option("--chunks", options->chunks,
                   "Most chunks; 0: the whole text")
      ->check(wholeNumber(0, ~0u));
  command->add_option("--logits", options->logitsFile,
                      "Write all scored logits to this NumPy file");
  command->add_option("--compare", options->compare,
                      "A model, or a file of --logits or of llama-perplexity "
                      "--kl-divergence-base: prints the KL divergence from it");
  addThreads(*command, options->session.threads);
  options->open.addTo(*command);
  command->add_flag("--json", options->json, "Print the results as JSON");
  line.onGiven(command, [options] { return eval(*options); });
}
