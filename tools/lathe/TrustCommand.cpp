/// \file
/// lathe trust: whose engines run here.

#include "runtime/engine/TrustStore.h"
#include "runtime/support/Quote.h"
#include "tools/lathe/Command.h"
#include "tools/lathe/Terminal.h"

#include <memory>

using namespace lathe;
using namespace lathe::tools;
using runtime::PublicKey;
using runtime::TrustStore;
using Json = nlohmann::ordered_json;

namespace {

struct Options {
  std::string key;
  std::string note;
  bool json = false;
};

Result<int> show(const Options &options) {
  auto store = TrustStore::ofUser();
  if (!store)
    return failFrom(store);
  auto own = store->ownPublicKey();
  if (!own)
    return failFrom(own);
  auto accepted = store->accepted();
  if (!accepted)
    return failFrom(accepted);
  if (options.json) {
    Json list = Json::array();
    for (const runtime::AcceptedKey &key : *accepted)
      list.push_back({{"key", key.key.text()}, {"note", key.note}});
    printJson({{"own", *own ? Json((*own)->text()) : Json()},
               {"accepted", std::move(list)}});
    return exitDone;
  }
  if (*own)
    printOut("{}  your own\n", (*own)->text());
  else
    printOut("you have no key yet; the first lathe compile makes one\n");
  for (const runtime::AcceptedKey &key : *accepted)
    printOut("{}  accepted{}\n", key.key.text(),
             key.note.empty() ? "" : ": " + printable(key.note));
  return exitDone;
}

Result<int> add(const Options &options) {
  auto key = PublicKey::parse(options.key);
  if (!key)
    return failFrom(key);
  if (!key->isSound())
    return fail(ErrorKind::InvalidInput,
                "{} is no key of a signer: anybody could sign with it, or "
                "nobody; ask for the line that lathe trust show prints there",
                key->text());
  auto store = TrustStore::ofUser();
  if (!store)
    return failFrom(store);
  if (auto added = store->accept(*key, options.note); !added)
    return failFrom(added);
  printOut("engines signed with {} run from now on\n", key->text());
  return exitDone;
}

} // namespace

void tools::addTrust(const CommandLine &line) {
  auto options = std::make_shared<Options>();
  CLI::App *command =
      line.add("trust", "Show or accept the keys whose engines run here",
               "  lathe trust show\n"
               "  lathe trust add ed25519:<64 digits> --note \"build server\"");
  command->require_subcommand(1);
  CLI::App *showKeys =
      command->add_subcommand("show", "Your key and those you accepted");
  showKeys->set_help_flag("-h,--help", "Show this help");
  showKeys->footer("example:\n  lathe trust show --json");
  showKeys->add_flag("--json", options->json, "Print the keys as JSON");
  CLI::App *addKey = command->add_subcommand(
      "add", "Accept a key: engines signed with it run from now on");
  addKey->set_help_flag("-h,--help", "Show this help");
  addKey->footer("example:\n  lathe trust add ed25519:<64 digits>");
  addKey->add_option("KEY", options->key, "ed25519:<64 hexadecimal digits>")
      ->required();
  addKey->add_option("--note", options->note, "Whose key it is");
  line.onGiven(showKeys, [options] { return show(*options); });
  line.onGiven(addKey, [options] { return add(*options); });
}
