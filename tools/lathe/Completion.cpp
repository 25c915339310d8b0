/// \file
/// lathe completion: what a shell needs to complete our commands and options.
/// The lists come from the command line's own declaration.

#include "tools/lathe/Command.h"
#include "tools/lathe/Terminal.h"

#include <memory>

using namespace lathe;
using namespace lathe::tools;

namespace {

std::vector<const CLI::App *> commandsOf(const CLI::App &app) {
  return app.get_subcommands([](const CLI::App *) { return true; });
}

/// "-p", "--prompt", … of a command.
std::vector<std::string> optionsOf(const CLI::App &command) {
  std::vector<std::string> names;
  for (const CLI::Option *option : command.get_options()) {
    for (const std::string &name : option->get_snames())
      names.push_back("-" + name);
    for (const std::string &name : option->get_lnames())
      names.push_back("--" + name);
  }
  return names;
}

/// What may follow a command besides files.
std::vector<std::string> wordsOf(const CLI::App &command) {
  std::vector<std::string> words = optionsOf(command);
  for (const CLI::App *nested : commandsOf(command))
    words.push_back(nested->get_name());
  if (command.get_name() == "completion")
    words.insert(words.end(), {"bash", "zsh", "fish"});
  return words;
}

void printBash(const CLI::App &app) {
  std::vector<std::string> names = optionsOf(app);
  for (const CLI::App *command : commandsOf(app))
    names.push_back(command->get_name());
  printOut("_lathe() {{\n"
           "  local words\n"
           "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
           "    words='{}'\n"
           "  else\n"
           "    case ${{COMP_WORDS[1]}} in\n",
           fmt::join(names, " "));
  for (const CLI::App *command : commandsOf(app))
    printOut("    {}) words='{}' ;;\n", command->get_name(),
             fmt::join(wordsOf(*command), " "));
  write("    esac\n"
        "  fi\n"
        "  COMPREPLY=($(compgen -W \"$words\" -- "
        "\"${COMP_WORDS[COMP_CWORD]}\"))\n"
        "}\n"
        "complete -o bashdefault -o default -F _lathe lathe\n");
}

/// In single quotes for zsh and fish.
std::string inQuotes(const std::string &text) {
  std::string result = "'";
  for (char c : text)
    result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

void printZsh(const CLI::App &app) {
  write("#compdef lathe\n"
        "_lathe() {\n"
        "  local -a commands\n"
        "  commands=(\n");
  for (const CLI::App *command : commandsOf(app))
    printOut("    {}\n",
             inQuotes(command->get_name() + ":" + command->get_description()));
  printOut("  )\n"
           "  if (( CURRENT == 2 )); then\n"
           "    _describe command commands\n"
           "    compadd -- {}\n"
           "    return\n"
           "  fi\n"
           "  case $words[2] in\n",
           fmt::join(optionsOf(app), " "));
  for (const CLI::App *command : commandsOf(app))
    printOut("    {}) compadd -- {} ;;\n", command->get_name(),
             fmt::join(wordsOf(*command), " "));
  write("  esac\n"
        "  _files\n"
        "}\n"
        "if [ \"$funcstack[1]\" = _lathe ]; then _lathe; else compdef _lathe "
        "lathe; fi\n");
}

void printFish(const CLI::App &app) {
  for (const CLI::App *command : commandsOf(app)) {
    printOut("complete -c lathe -n __fish_use_subcommand -a {} -d {}\n",
             command->get_name(), inQuotes(command->get_description()));
    for (const CLI::Option *option : command->get_options()) {
      std::string names;
      for (const std::string &name : option->get_snames())
        names += " -s " + name;
      for (const std::string &name : option->get_lnames())
        names += " -l " + name;
      if (!names.empty())
        printOut("complete -c lathe -n '__fish_seen_subcommand_from "
                 "{}'{} -d {}\n",
                 command->get_name(), names,
                 inQuotes(option->get_description()));
    }
    for (const CLI::App *nested : commandsOf(*command))
      printOut("complete -c lathe -n '__fish_seen_subcommand_from {}' -a {} "
               "-d {}\n",
               command->get_name(), nested->get_name(),
               inQuotes(nested->get_description()));
  }
}

Result<int> complete(const CLI::App &app, const std::string &shell) {
  if (shell == "bash")
    printBash(app);
  else if (shell == "zsh")
    printZsh(app);
  else
    printFish(app);
  return exitDone;
}

} // namespace

void tools::addCompletion(const CommandLine &line) {
  auto shell = std::make_shared<std::string>();
  CLI::App *command = line.add(
      "completion", "Print a completion script for a shell",
      "  lathe completion bash > "
      "~/.local/share/bash-completion/completions/lathe\n"
      "  lathe completion zsh > ~/.zsh/completions/_lathe\n"
      "  lathe completion fish > ~/.config/fish/completions/lathe.fish");
  command->add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  line.onGiven(command,
               [shell, &app = line.app] { return complete(app, *shell); });
}
