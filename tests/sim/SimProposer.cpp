#include "tests/sim/SimProposer.h"

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

std::unique_ptr<Proposer::Sequence> SimProposer::start(std::string_view) {
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

SimDraftModel::SimDraftModel(std::span<const KvGroupInfo> groups,
                             std::vector<u32> pages,
                             const StepExecutor::Capacities &capacities,
                             u32 draftVocab,
                             const DraftModelProposer::Options &options)
    : cache(*KvCache::create(
          DraftModelProposer::groupsFor(groups, options.mostTokens),
          {.pages = std::move(pages), .poisonFreed = true})),
      executor(std::make_unique<SimExecutor>(capacities, draftVocab, *cache,
                                             capacities.rows % 2 == 0)),
      proposer(*DraftModelProposer::create(*executor, *cache, options)) {}

std::string SimDraftModel::problem(bool isOver) const {
  if (!executor->problem().empty())
    return "draft model: " + executor->problem();
  if (!cache->isConsistent() || !proposer->isConsistent())
    return "draft model: pages are not owned as counted";
  for (u32 group = 0; group < cache->groups().size() && isOver; ++group) {
    std::vector<u32> owned(cache->pool(group).totalPages() + 1);
    proposer->countCachedPages(group, owned);
    for (PageId page = reservedPage + 1; page < owned.size(); ++page)
      if (owned[page] != cache->pool(group).references(page))
        return "draft model: pages are left";
  }
  return {};
}
