/// \file
/// What the commands of the lathe program have in common.
#ifndef LATHE_TOOLS_LATHE_COMMAND_H
#define LATHE_TOOLS_LATHE_COMMAND_H

#include "runtime/support/Result.h"

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

namespace lathe::tools {

using runtime::Error;
using runtime::ErrorKind;
using runtime::fail;
using runtime::failFrom;
using runtime::Result;

/// The program's exit statuses.
enum ExitStatus : int {
  exitDone = 0,
  exitFailed = 1,
  exitUsage = 2,
  exitNoReader = 141, ///< 128 + SIGPIPE; interruptedStatus() for others.
};

/// A command's work; returns an exit status or the error to show.
using Action = std::function<Result<int>()>;

/// The command line being declared. Each command adds its subcommand and, when
/// that is the one given, sets the action.
struct CommandLine {
  CLI::App &app;
  Action &action;

  /// Adds a command. `example` is shown below its help, one command per line.
  CLI::App *add(const std::string &name, const std::string &description,
                const std::string &example) const;

  /// Runs `work` when `command` was given.
  void onGiven(CLI::App *command, Action work) const;
};

void addCompile(const CommandLine &line);
void addRun(const CommandLine &line);
void addServe(const CommandLine &line);
void addBench(const CommandLine &line);
void addExplain(const CommandLine &line);
void addEval(const CommandLine &line);
void addTokenize(const CommandLine &line);
void addPlan(const CommandLine &line);
void addInspect(const CommandLine &line);
void addVerify(const CommandLine &line);
void addTrust(const CommandLine &line);
void addReplay(const CommandLine &line);
void addCompletion(const CommandLine &line);

/// A wrong combination of options, found after parsing: ends with exitUsage.
class UsageError : public CLI::ValidationError {
public:
  explicit UsageError(const std::string &message)
      : CLI::ValidationError(message, CLI::ExitCodes::ValidationError) {}
};

} // namespace lathe::tools

#endif // LATHE_TOOLS_LATHE_COMMAND_H
