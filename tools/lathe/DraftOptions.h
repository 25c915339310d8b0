/// \file
/// The options by which commands that serve take drafts.
#ifndef LATHE_TOOLS_LATHE_DRAFTOPTIONS_H
#define LATHE_TOOLS_LATHE_DRAFTOPTIONS_H

#include "runtime/schedule/ServingEngine.h"
#include "tools/lathe/OpenModel.h"

#include <string>
#include <vector>

namespace lathe::tools {

/// Who drafts tokens for the model to check. The answers are the same with any.
struct DraftOptions {
  std::string by;    ///< "off", "ngram" or "draft"; empty: not given.
  std::string model; ///< Of "draft".
  u32 mostTokens = runtime::SpeculationOptions().mostTokens;
  bool isFixed = false;

  /// Declares --speculate, --draft, --draft-tokens and --draft-always.
  std::vector<CLI::Option *> addTo(CLI::App &command);

  /// Loads the draft model, if there is one, as `open` says. Errors:
  /// InvalidInput (options that do not go together), those of loadModel().
  runtime::Result<runtime::DraftWishes> load(const ModelOptions &open) const;
};

} // namespace lathe::tools

#endif // LATHE_TOOLS_LATHE_DRAFTOPTIONS_H
