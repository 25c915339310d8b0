/// \file
/// The lathe program: parses the command line and runs one command.

#include "tools/lathe/Command.h"
#include "tools/lathe/Terminal.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <new>
#include <spdlog/spdlog.h>

using namespace lathe;
using namespace lathe::tools;

namespace {

/// Shows an error; newlines in a message would hide where it ends.
void showError(std::string message) {
  for (char &c : message)
    if (c == '\n' || c == '\r')
      c = ' ';
  spdlog::error("{}", message);
}

/// The exit status after everything was written: a failed write to standard
/// output is an error, unless only the reader went away.
int finish(int status) {
  flushOutput();
  if (outputError() == 0)
    return status;
  if (outputError() == EPIPE)
    return exitNoReader;
  showError(fmt::format("cannot write to standard output: {}",
                        std::strerror(outputError())));
  return exitFailed;
}

int usageError(const CLI::ParseError &error, const CLI::App &app) {
  std::string command;
  for (const CLI::App *given : app.get_subcommands())
    command = " " + given->get_name();
  showError(fmt::format("{} (see lathe{} --help)", error.what(), command));
  return exitUsage;
}

int runProgram(int argc, char **argv) {
  CLI::App app("Compiles language models to engines and runs them.", "lathe");
  Action action;
  app.set_version_flag("--version", "lathe " LATHE_VERSION);
  app.set_help_flag("-h,--help", "Show this help");
  app.require_subcommand(0, 1);
  app.footer("example:\n  lathe run smollm2 -p \"What is a lathe?\"\n\n"
             "lathe COMMAND --help tells more about a command.");
  CommandLine line{app, action};
  addRun(line);
  addCompile(line);
  addServe(line);
  addBench(line);
  addExplain(line);
  addEval(line);
  addTokenize(line);
  addPlan(line);
  addInspect(line);
  addVerify(line);
  addTrust(line);
  addReplay(line);
  addCompletion(line);
  try {
    app.parse(argc, argv);
    if (!action) {
      write(app.help());
      return finish(argc == 1 ? exitDone : exitUsage);
    }
    Result<int> status = action();
    if (status)
      return finish(*status);
    flushOutput();
    if (outputError() == EPIPE)
      return exitNoReader;
    showError(status.error().message);
    return exitFailed;
  } catch (const CLI::CallForHelp &) {
    write(app.help()); // Of the command that was given, if one was.
    return finish(exitDone);
  } catch (const CLI::CallForVersion &) {
    write("lathe " LATHE_VERSION "\n");
    return finish(exitDone);
  } catch (const CLI::ParseError &error) {
    return usageError(error, app);
  }
}

} // namespace

CLI::App *CommandLine::add(const std::string &name,
                           const std::string &description,
                           const std::string &example) const {
  CLI::App *command = app.add_subcommand(name, description);
  command->set_help_flag("-h,--help", "Show this help");
  command->footer("example:\n" + example);
  return command;
}

void CommandLine::onGiven(CLI::App *command, Action work) const {
  Action &target = action;
  command->callback([&target, work = std::move(work)] { target = work; });
}

int main(int argc, char **argv) {
  // A reader that goes away or a file grown too large is a failed write.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  setUpMessages();
  try {
    return runProgram(argc, argv);
  } catch (const std::bad_alloc &) {
    showError("out of memory");
  } catch (const std::exception &error) {
    showError(fmt::format("internal error: {}", error.what()));
  }
  return exitFailed;
}
