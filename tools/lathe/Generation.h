/// \file
/// What `lathe run` does for one prompt and for a chat alike: options, loading,
/// one answer as text.
#ifndef LATHE_TOOLS_LATHE_GENERATION_H
#define LATHE_TOOLS_LATHE_GENERATION_H

#include "runtime/api/TextModel.h"
#include "tools/lathe/OpenModel.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lathe::tools {

/// The command line of `lathe run`.
struct RunOptions {
  std::string model;
  std::optional<std::string> prompt;
  std::string promptFile;
  std::string system;
  bool raw = false;
  bool parseSpecial = false;
  bool ignoreEnd = false;
  bool json = false;
  std::vector<std::string> biases; ///< "ID=BIAS"
  std::vector<std::string> stops;
  u32 maxTokens = 512;
  runtime::SamplerOptions sampling;
  runtime::SessionOptions session;
  ModelOptions open;
};

/// A model ready to answer.
struct Runner {
  std::shared_ptr<const runtime::TextModel> model;
  std::unique_ptr<runtime::Session> session;
  f64 loadSeconds;
};

/// Opens, loads and sizes everything; prints notices.
Result<Runner> loadRunner(const RunOptions &options);

/// Generates from `prompt`, writing to standard output as text becomes certain
/// if `show`. Ends early when the user interrupts or standard output is gone.
Result<runtime::TextGeneration> answer(Runner &runner,
                                       const RunOptions &options,
                                       const std::vector<i32> &prompt,
                                       bool show);

/// Reads "ID=BIAS" options into sampling. Errors: InvalidInput.
Result<void> readBiases(const std::vector<std::string> &texts,
                        runtime::SamplerOptions &sampling);

/// The line of figures below an answer, without a newline.
std::string figures(const Runner &runner, const runtime::Generation &made);

/// An interactive chat on the terminal. Returns an exit status.
Result<int> chat(Runner &runner, const RunOptions &options);

} // namespace lathe::tools

#endif // LATHE_TOOLS_LATHE_GENERATION_H
