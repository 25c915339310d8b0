/// \file
/// lathe verify: is an engine whole, and who made it?

#include "runtime/device/Memory.h"
#include "runtime/support/Quote.h"
#include "tools/lathe/Command.h"
#include "tools/lathe/Places.h"
#include "tools/lathe/Signer.h"
#include "tools/lathe/Terminal.h"

#include <memory>

using namespace lathe;
using namespace lathe::tools;
using runtime::Engine;

namespace {

struct Options {
  std::string engine;
  bool json = false;
};

Result<int> verify(const Options &options) {
  auto path = findModel(options.engine);
  if (!path)
    return failFrom(path);
  auto engine = Engine::open(*path);
  if (!engine)
    return failFrom(engine);
  if (auto whole = (*engine)->verifySections(); !whole)
    return failFrom(whole);
  Progress progress;
  auto whole = (*engine)->verifyWeights([&](uint64_t done, uint64_t total) {
    progress.update("hashing the weights", done, total);
  });
  progress.clear();
  if (!whole)
    return failFrom(whole);
  const runtime::Trust &trust = (*engine)->trust();
  if (trust.state == runtime::TrustState::Bad)
    return fail(ErrorKind::Untrusted,
                "{}: its signature by {} does not fit: it was changed after it "
                "was signed",
                runtime::displayPath(*path), trust.key.text());
  if (options.json)
    printJson({{"file", *path},
               {"bytes", (*engine)->fileBytes()},
               {"signature", nameOf(trust.state)},
               {"key", hasKey(trust) ? nlohmann::ordered_json(trust.key.text())
                                     : nlohmann::ordered_json()}});
  else
    printOut("{}: whole, {}; {}\n", runtime::displayPath(*path),
             runtime::formatBytes((*engine)->fileBytes()), describe(trust));
  return exitDone;
}

} // namespace

void tools::addVerify(const CommandLine &line) {
  auto options = std::make_shared<Options>();
  CLI::App *command =
      line.add("verify", "Check every byte of an engine against its hashes",
               "  lathe verify model.lathe");
  command->add_option("ENGINE", options->engine, "An engine file")->required();
  command->add_flag("--json", options->json, "Print the result as JSON");
  line.onGiven(command, [options] { return verify(*options); });
}
