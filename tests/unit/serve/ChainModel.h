/// \file
/// A model whose next token depends on the last one alone, by a table: what it
/// answers, and how likely, can be written down. Its code is plain C++.
#ifndef LATHE_TESTS_UNIT_SERVE_CHAINMODEL_H
#define LATHE_TESTS_UNIT_SERVE_CHAINMODEL_H

#include "kernels/abi/Types.h"
#include "runtime/serve/Api.h"
#include "runtime/text/TokenizerSpec.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace lathe::tests {

/// Tokens that a token is followed by, with the logarithms of their
/// probabilities up to a constant; NaN makes the engine fail there.
using Followers = std::vector<std::pair<std::string, f32>>;

struct ChainSpec {
  runtime::TokenizerSpec tokenizer;
  /// By the token before, both by their texts. A token without any is followed
  /// by itself.
  std::map<std::string, Followers> followers = {};
  u32 pausesPerStep = 0; ///< Makes steps slow.
  runtime::ServingOptions options = {.threads = 1,
                                     .context = 0,
                                     .maxRunning = 4,
                                     .maxWaiting = 8,
                                     .stepRows = 32,
                                     .mixedRows = 16};
};

/// A byte-level vocabulary with the pieces DE, DEF and HI, a begin token
/// <|im_start|>, an end token <|im_end|> and a chat template of the usual form.
runtime::TokenizerSpec chainTokenizer();

/// followers of a chain: each is surely followed by the next.
std::map<std::string, Followers> chain(const std::vector<std::string> &tokens);

/// Writes a chain's engine file and loads it. Its options are not looked at.
std::shared_ptr<const runtime::LoadedEngine> loadChain(const ChainSpec &spec,
                                                       const std::string &path);

/// A model that is served from an engine file in `folder`.
class ChainServer {
public:
  ChainServer(const ChainSpec &spec, const std::string &folder);
  ~ChainServer();

  const std::shared_ptr<runtime::serve::ServedModel> &model() const {
    return served;
  }
  runtime::ServingEngine &engine() const { return *serving; }

private:
  std::unique_ptr<runtime::ServingEngine> serving;
  std::shared_ptr<runtime::serve::ServedModel> served;
};

} // namespace lathe::tests

#endif // LATHE_TESTS_UNIT_SERVE_CHAINMODEL_H
