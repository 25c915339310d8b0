/// \file
/// The interactive chat of lathe run.

#include "tools/lathe/Generation.h"
#include "tools/lathe/Interrupt.h"
#include "tools/lathe/Terminal.h"

#include <iostream>
#include <spdlog/spdlog.h>
#include <unistd.h>

using namespace lathe;
using namespace lathe::tools;
using Json = nlohmann::ordered_json;

namespace {

constexpr std::string_view helpText =
    "/clear forgets the conversation, /exit (or Ctrl-D) ends it, Ctrl-C stops "
    "an answer.\nA line that ends with \\ goes on in the next one.\n";

class Chat {
public:
  Chat(Runner &runner, const RunOptions &options)
      : runner(runner), options(options) {
    restart();
  }

  Result<int> run() {
    printOut("chatting with {}; /help tells more\n", printable(options.model));
    catchInterrupts();
    for (;;) {
      clearInterrupt();
      auto line = readLine();
      if (!line)
        break;
      if (*line == "/exit" || *line == "/bye")
        return exitDone;
      if (*line == "/help") {
        write(helpText);
      } else if (*line == "/clear") {
        restart();
      } else if (line->starts_with('/')) {
        printOut("unknown command {}; /help lists them\n", printable(*line));
      } else if (line->find_first_not_of(" \t\r\n") != std::string::npos) {
        if (auto done = turn(*line); !done)
          return failFrom(done);
      }
      if (outputError() != 0)
        return exitDone;
    }
    write("\n");
    return exitDone;
  }

private:
  void restart() {
    messages = Json::array();
    if (!options.system.empty())
      say("system", options.system);
    firstTurn = messages.size();
  }

  void say(std::string_view role, const std::string &content) {
    messages.push_back({{"role", role}, {"content", content}});
  }

  /// A line without its newline, or several joined; nothing at the end of
  /// input or when interrupted.
  std::optional<std::string> readLine() {
    std::string text;
    for (std::string_view sign = "> ";; sign = ". ") {
      write(sign);
      flushOutput();
      std::string line;
      if (!waitForInput(STDIN_FILENO) || !std::getline(std::cin, line))
        return std::nullopt;
      if (!line.ends_with('\\'))
        return text + line;
      line.back() = '\n';
      text += line;
    }
  }

  /// The ids of the conversation; the oldest turns are dropped until they fit
  /// with room for an answer.
  Result<std::vector<i32>> encode() {
    for (bool told = false;; told = true) {
      auto ids = runner.model->encodeChat(messages);
      if (!ids)
        return failFrom(ids);
      u32 context = runner.session->context();
      if (ids->size() + std::min(answerRoom, context / 4) <= context ||
          messages.size() <= firstTurn + 1)
        return ids;
      if (!told)
        spdlog::warn("the context of {} tokens is full; the oldest messages "
                     "are left out",
                     context);
      // A question goes with its answer: templates insist on taking turns.
      messages.erase(messages.begin() + i64(firstTurn),
                     messages.begin() + i64(firstTurn) + 2);
    }
  }

  Result<void> turn(const std::string &line) {
    say("user", line);
    auto ids = encode();
    auto made = ids ? answer(runner, options, *ids, /*show=*/true)
                    : Result<runtime::TextGeneration>(failFrom(ids));
    if (!made) {
      // Too long a message, or one that is no text, is not the end of the chat.
      if (made.error().kind != ErrorKind::InvalidInput)
        return failFrom(made);
      spdlog::error("{}", made.error().message);
      messages.erase(messages.size() - 1);
      return {};
    }
    if (!made->text.ends_with('\n'))
      write("\n");
    say("assistant", made->text);
    if (flushOutput()) {
      bool faint = mayColour(STDERR_FILENO);
      fmt::print(stderr, "{}{}{}\n", faint ? "\x1b[2m" : "",
                 figures(runner, made->generation), faint ? "\x1b[0m" : "");
    }
    return {};
  }

  /// Tokens that an answer should find free.
  static constexpr u32 answerRoom = 256;

  Runner &runner;
  const RunOptions &options;
  Json messages;        ///< As TextModel::encodeChat takes them.
  size_t firstTurn = 0; ///< Messages that stay: the system's.
};

} // namespace

Result<int> tools::chat(Runner &runner, const RunOptions &options) {
  if (options.raw)
    return fail(ErrorKind::InvalidInput,
                "--raw completes a prompt; give one with -p or -f");
  if (auto ready = runner.model->checkChat(); !ready)
    return failFrom(ready, "cannot chat (a prompt can still be completed: -p)");
  return Chat(runner, options).run();
}
