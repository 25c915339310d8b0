/// \file
/// lathe bench --serve: many requests at once, continuous batching beside
/// static.
#ifndef LATHE_TOOLS_LATHE_SERVEBENCH_H
#define LATHE_TOOLS_LATHE_SERVEBENCH_H

#include "tools/lathe/Command.h"
#include "tools/lathe/DraftOptions.h"
#include "tools/lathe/OpenModel.h"
#include "tools/lathe/ServeLoad.h"

#include <string>

namespace lathe::tools {

struct ServeBenchOptions {
  LoadOptions load;
  runtime::ServingOptions serving; ///< maxRunning is the concurrency.
  DraftOptions drafts;
  bool withStatic = false;
};

/// Declares the options on the command of lathe bench; returns them.
std::vector<CLI::Option *> addServeBenchOptions(CLI::App &command,
                                                ServeBenchOptions &options);

/// Measures and prints. Returns an exit status.
Result<int> benchServe(const std::string &model, const ModelOptions &open,
                       ServeBenchOptions options, bool json);

} // namespace lathe::tools

#endif // LATHE_TOOLS_LATHE_SERVEBENCH_H
