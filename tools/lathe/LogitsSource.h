/// \file
/// Where eval gets logits from: a model that runs, or a file with another
/// run's.
#ifndef LATHE_TOOLS_LATHE_LOGITSSOURCE_H
#define LATHE_TOOLS_LATHE_LOGITSSOURCE_H

#include "runtime/schedule/Session.h"
#include "runtime/support/AtomicFile.h"
#include "runtime/support/Result.h"
#include "tools/lathe/OpenModel.h"

#include <memory>
#include <span>
#include <string>

namespace lathe::tools {

/// Logits of chunks of a text, in order. One thread at a time.
class LogitsSource {
public:
  virtual ~LogitsSource() = default;

  virtual u32 vocab() const = 0;

  /// Begins the next chunk with the tokens whose predictions nobody asks for.
  virtual Result<void> start(std::span<const i32> tokens) = 0;

  /// The logits [tokens.size()][vocab] that follow each of the next tokens of
  /// the chunk; valid until the next call.
  virtual Result<std::span<const f32>> rows(std::span<const i32> tokens) = 0;
};

/// A model that is run.
std::unique_ptr<LogitsSource>
sourceOf(std::unique_ptr<runtime::Session> session);

/// True if the file holds logits instead of a model.
bool holdsLogits(const std::string &path);

/// Logits that `lathe eval --logits` wrote (NumPy, float32 [rows, vocab]) or
/// log-probabilities that `llama-perplexity --kl-divergence-base` wrote, for
/// chunks of `chunk` tokens. Errors: InvalidInput (damaged, another kind of
/// array, other chunks); rows() has InvalidInput when the file ends early, or
/// was made from another text as far as it tells.
Result<std::unique_ptr<LogitsSource>> openLogits(const std::string &path,
                                                 u32 chunk);

/// Writes a NumPy array of float32 [rows, columns], row by row.
class NpyWriter {
public:
  /// Errors: those of AtomicFile::create.
  static Result<NpyWriter> create(const std::string &path, u64 rows,
                                  u64 columns);
  Result<void> append(std::span<const f32> values);
  /// All rows were appended: the file appears.
  Result<void> commit() { return file.commit(); }

private:
  explicit NpyWriter(runtime::AtomicFile file) : file(std::move(file)) {}
  runtime::AtomicFile file;
};

} // namespace lathe::tools

#endif // LATHE_TOOLS_LATHE_LOGITSSOURCE_H
