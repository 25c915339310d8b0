#include "tests/sim/SimProposer.h"

#include "tests/sim/SimExecutor.h"

#include <algorithm>
#include <set>

using namespace lathe;
using namespace lathe::runtime;
using namespace lathe::tests;

namespace {

struct Known : Proposer::Sequence {
  std::vector<i32> tokens;
  u64 state = 0; ///< After them.
};

} // namespace

std::unique_ptr<Proposer::Sequence> SimProposer::start() {
  return std::make_unique<Known>();
}

std::unique_ptr<Proposer::Sequence>
SimProposer::fork(const Sequence &sequence) {
  return std::make_unique<Known>(static_cast<const Known &>(sequence));
}

void SimProposer::propose(std::span<Draft> drafts) {
  std::set<Sequence *> seen;
  for (Draft &draft : drafts) {
    if (!seen.insert(draft.sequence).second)
      complain("a sequence is asked for two drafts");
    propose(draft);
  }
}

void SimProposer::propose(Draft &draft) {
  Known &known = *static_cast<Known *>(draft.sequence);
  size_t before = known.tokens.size();
  if (draft.tokens.size() < before ||
      !std::equal(known.tokens.begin(), known.tokens.end(),
                  draft.tokens.begin()))
    return complain("a proposer's tokens are taken back");
  for (i32 token : draft.tokens.subspan(before)) {
    known.tokens.push_back(token);
    known.state = nextState(known.state, token);
  }
  std::vector<i32> history = known.tokens;
  std::vector<f32> logits;
  u64 state = known.state;
  u32 count = kind == Kind::Hostile ? u32(random() % 40) : draft.most;
  for (u32 i = 0; i < count; ++i) {
    logitsOf(state, logits, vocab);
    i32 token = draft.sampler->sample(logits, history)->token;
    if (kind == Kind::Random || (kind != Kind::Perfect && random() % 4 == 0))
      token = i32(random() % vocab);
    if (kind == Kind::Hostile && random() % 8 == 0)
      token = i32(random());
    draft.proposed.push_back(token);
    if (token < 0 || u32(token) >= vocab)
      token = 0;
    history.push_back(token);
    state = nextState(state, token);
  }
  draft.certainty = u32(random() % (kind == Kind::Hostile ? 100 : certainties));
}
