/// \file
/// lathe tokenize: a text as a model sees it.

#include "kernels/abi/Types.h"
#include "runtime/support/Quote.h"
#include "tools/lathe/Command.h"
#include "tools/lathe/OpenModel.h"
#include "tools/lathe/Terminal.h"

#include <iostream>
#include <iterator>
#include <memory>

using namespace lathe;
using namespace lathe::tools;

namespace {

struct Options {
  std::string model;
  std::string text;
  bool ids = false;
  bool parseSpecial = false;
  bool noSpecial = false;
  bool json = false;
};

Result<int> tokenize(const Options &options) {
  auto tokenizer = openTokenizer(options.model);
  if (!tokenizer)
    return failFrom(tokenizer);
  std::string text = options.text;
  if (text == "-")
    text.assign(std::istreambuf_iterator<char>(std::cin), {});
  auto ids = tokenizer->encode(text, {.addSpecial = !options.noSpecial,
                                      .parseSpecial = options.parseSpecial});
  if (!ids)
    return failFrom(ids);
  if (options.json) {
    auto pieces = nlohmann::ordered_json::array();
    for (i32 id : *ids)
      pieces.push_back(std::string(tokenizer->tokenBytes(id)));
    printJson({{"ids", *ids}, {"pieces", std::move(pieces)}});
  } else if (options.ids) {
    printOut("{}\n", fmt::join(*ids, " "));
  } else {
    for (i32 id : *ids)
      printOut("{:>7}  {}\n", id, runtime::quoted(tokenizer->tokenBytes(id)));
  }
  return exitDone;
}

} // namespace

void tools::addTokenize(const CommandLine &line) {
  auto options = std::make_shared<Options>();
  CLI::App *command =
      line.add("tokenize", "Show a text as the tokens of a model",
               "  lathe tokenize smollm2 \"Hello, world\"\n"
               "  lathe tokenize model.gguf --ids - < text.txt");
  command
      ->add_option("MODEL", options->model,
                   "A GGUF model, an engine, or the name of a local one")
      ->required();
  command->add_option("TEXT", options->text, "The text; - is standard input")
      ->required();
  command->add_flag("--ids", options->ids, "Only the ids, on one line");
  command->add_flag("--parse-special", options->parseSpecial,
                    "Text that spells a control token becomes it");
  command->add_flag("--no-special", options->noSpecial,
                    "Without the begin and end tokens that the model asks for");
  command->add_flag("--json", options->json, "Print ids and pieces as JSON");
  line.onGiven(command, [options] { return tokenize(*options); });
}
