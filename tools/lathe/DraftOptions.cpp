#include "tools/lathe/DraftOptions.h"
#include "tools/lathe/Checks.h"

using namespace lathe;
using namespace lathe::tools;
using namespace lathe::runtime;

/// More are never worth it: the last ones are right too seldom.
static constexpr u64 draftTokensMax = 64;

std::vector<CLI::Option *> DraftOptions::addTo(CLI::App &command) {
  return {
      command
          .add_option("--speculate", by,
                      "Who drafts tokens for the model to check: ngram (what "
                      "followed the same words before), draft (a smaller "
                      "model), off (default); answers stay the same")
          ->check(CLI::IsMember({"off", "ngram", "draft"})),
      command.add_option("--draft", model,
                         "The draft model, of the same vocabulary; means "
                         "--speculate draft"),
      command
          .add_option("--draft-tokens", mostTokens,
                      "Most tokens of a draft; fewer are drafted where that "
                      "is faster")
          ->check(wholeNumber(0, draftTokensMax))
          ->capture_default_str(),
      command.add_flag("--draft-always", isFixed,
                       "Always draft so many tokens, to measure it")};
}

Result<DraftWishes> DraftOptions::load(const ModelOptions &open) const {
  DraftWishes wishes{
      .byLookup = by == "ngram",
      .speculation = {.mostTokens = mostTokens, .adapts = !isFixed}};
  if (model.empty()) {
    if (by == "draft")
      return fail(ErrorKind::InvalidInput,
                  "--speculate draft needs --draft MODEL");
    return wishes;
  }
  if (!by.empty() && by != "draft")
    return fail(ErrorKind::InvalidInput,
                "--draft names a draft model, but --speculate is {}", by);
  auto loaded = loadModel(model, open);
  if (!loaded)
    return failFrom(loaded, "--draft");
  wishes.model = std::move(*loaded);
  return wishes;
}
