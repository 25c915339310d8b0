#include "runtime/speculate/DraftModelProposer.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

namespace lathe::runtime {

/// Who has more tokens than this to catch up with waits for those who have not.
static constexpr u32 fewTokens = 2 * pageTokens;

/// A sequence of the target in the draft model.
class DraftModelProposer::Follower : public Sequence {
public:
  std::string salt;
  /// Those of the target, then those of the last draft.
  std::vector<i32> tokens;
  u32 told = 0; ///< Of them, the target's.
  /// Of the first of them; null until they are evaluated.
  std::optional<SequenceCache> sequence = std::nullopt;
  PrefixTree::Place place = {};
  /// The same for forks, whose prompts are evaluated once.
  std::shared_ptr<const char> family = std::make_shared<char>();
  bool isLost = false; ///< It has a token that the draft model does not.

  u32 pending() const { return told - sequence->length(); }
  void drop() {
    sequence.reset();
    place.leave();
  }
};

Result<std::unique_ptr<DraftModelProposer>>
DraftModelProposer::create(StepExecutor &executor, KvCache &cache,
                           const Options &options) {
  if (options.vocab == 0 || options.context == 0)
    return fail(ErrorKind::Internal,
                "a draft model of {} tokens and a target of {} ids",
                options.context, options.vocab);
  return std::unique_ptr<DraftModelProposer>(
      new DraftModelProposer(executor, cache, options));
}

DraftModelProposer::DraftModelProposer(StepExecutor &executor, KvCache &cache,
                                       const Options &options)
    : executor(&executor), cache(&cache), options(options), tree(cache) {}

std::vector<KvGroupInfo>
DraftModelProposer::groupsFor(std::span<const KvGroupInfo> groups,
                              u32 mostTokens) {
  std::vector<KvGroupInfo> wider(groups.begin(), groups.end());
  for (KvGroupInfo &group : wider)
    if (group.window != 0)
      group.window += mostTokens + 1;
  return wider;
}

std::unique_ptr<Proposer::Sequence>
DraftModelProposer::start(std::string_view salt) {
  auto follower = std::make_unique<Follower>();
  follower->salt = salt;
  return follower;
}

std::unique_ptr<Proposer::Sequence>
DraftModelProposer::fork(const Sequence &sequence) {
  const auto &from = static_cast<const Follower &>(sequence);
  auto follower = std::make_unique<Follower>();
  follower->salt = from.salt;
  follower->tokens = from.tokens;
  follower->told = from.told;
  follower->family = from.family;
  follower->isLost = from.isLost;
  // Half a prompt is rather taken from the prefix cache once it is whole.
  if (from.sequence && from.pending() == 0) {
    follower->sequence.emplace(from.sequence->fork());
    follower->place = from.place.copy();
  }
  return follower;
}

void DraftModelProposer::propose(std::span<Draft> drafts) {
  size_t most = executor->capacities().sequences;
  for (; !drafts.empty();
       drafts = drafts.subspan(std::min(drafts.size(), most)))
    proposeSome(drafts.first(std::min(drafts.size(), most)));
}

void DraftModelProposer::proposeSome(std::span<Draft> drafts) {
  std::vector<Work> works;
  for (Draft &draft : drafts) {
    Work work = {.draft = &draft,
                 .follower = static_cast<Follower *>(draft.sequence)};
    if (follow(work, works))
      works.push_back(work);
  }
  catchUp(works);
  std::erase_if(works, [](const Work &work) { return work.rows == 0; });
  if (works.empty() || !evaluate(works))
    return;
  for (Work &work : works) {
    Follower &follower = *work.follower;
    tree.extend(follower.place, follower.tokens, *follower.sequence);
    work.isDone = !work.isReady || work.draft->most == 0;
  }
  while (true) {
    drawTokens(works);
    std::erase_if(works, [](const Work &work) { return work.isDone; });
    for (Work &work : works)
      work.isDone = !extend(work, 1);
    std::erase_if(works, [](const Work &work) { return work.isDone; });
    if (works.empty() || !evaluate(works))
      return;
  }
}

bool DraftModelProposer::follow(Work &work, std::span<const Work> before) {
  Follower &follower = *work.follower;
  std::span<const i32> tokens = work.draft->tokens;
  // Of the last draft, what has been accepted stays.
  std::vector<i32> &own = follower.tokens;
  size_t common = follower.told;
  while (common < own.size() && common < tokens.size() &&
         own[common] == tokens[common])
    ++common;
  own.resize(common);
  for (i32 token : tokens.subspan(common)) {
    own.push_back(token);
    follower.isLost |= u32(token) >= executor->vocab();
  }
  follower.told = u32(own.size());
  if (follower.isLost || follower.told >= options.context) {
    follower.drop();
    return false;
  }
  // At least the last token is evaluated, for its logits.
  u32 most = follower.told - 1;
  if (follower.sequence) {
    SequenceCache &sequence = *follower.sequence;
    u32 kept = std::min({sequence.length(), u32(common), most});
    if (sequence.canTruncate(kept))
      sequence.truncate(kept);
    else
      follower.drop();
  }
  if (!follower.sequence) {
    auto isBusySibling = [&](const Work &other) {
      return other.follower->family == follower.family &&
             other.follower->pending() > fewTokens;
    };
    if (std::ranges::any_of(before, isBusySibling))
      return false;
    follower.sequence.emplace(*cache, options.context);
    follower.place = tree.match(follower.salt, own, most, *follower.sequence);
  }
  return true;
}

/// Gives each its rows of one step.
void DraftModelProposer::catchUp(std::span<Work> works) {
  u32 left = executor->capacities().rows;
  for (bool isFew : {true, false})
    for (Work &work : works) {
      u32 pending = work.follower->pending();
      if ((pending <= fewTokens) != isFew || work.rows != 0)
        continue;
      u32 rows = std::min(pending, left);
      if (rows == 0 || !extend(work, rows))
        continue;
      left -= rows;
      work.isReady = rows == pending;
    }
}

/// Makes room for rows in the cache; false, with no rows, if there is none.
bool DraftModelProposer::extend(Work &work, u32 rows) {
  SequenceCache &sequence = *work.follower->sequence;
  work.rows = 0;
  if (rows > sequence.maxPositions() - sequence.length())
    return false;
  while (!sequence.canExtend(rows)) {
    sequence.giveBack();
    u32 freed = 0;
    for (u32 group = 0; group < cache->groups().size(); ++group)
      if (u32 missing = sequence.missingPages(group, rows))
        freed += tree.evict(group, missing);
    if (freed == 0 && !sequence.canExtend(rows))
      return false;
  }
  work.rows = rows;
  return sequence.extend(rows).has_value();
}

/// A step of all works' rows; the last of each wants its logits. False: it
/// failed, and the rows are undone.
bool DraftModelProposer::evaluate(std::span<const Work> works) {
  std::vector<BatchSequence> batch;
  for (const Work &work : works) {
    Follower &follower = *work.follower;
    u32 first = follower.sequence->length() - work.rows;
    batch.push_back(
        {.cache = &*follower.sequence,
         .tokens = std::span(follower.tokens).subspan(first, work.rows),
         .wanted = work.isReady && work.draft->most != 0 ? 1u : 0u});
  }
  if (executor->step(batch))
    return true;
  for (const Work &work : works) {
    SequenceCache &sequence = *work.follower->sequence;
    sequence.truncate(sequence.length() - work.rows);
  }
  return false;
}

/// Draws the next token of each work that is not done by its last row.
void DraftModelProposer::drawTokens(std::span<Work> works) {
  std::vector<Work *> picked, drawn;
  std::vector<u32> pickedRows, drawnRows;
  u32 end = 0;
  for (Work &work : works) {
    end += work.rows;
    if (work.isDone)
      continue;
    const Sampler &sampler = *work.draft->sampler;
    bool isPick = executor->canPick() && executor->vocab() == options.vocab &&
                  !sampler.hasTopP() && sampler.options().topK <= maxPickTopK;
    (isPick ? picked : drawn).push_back(&work);
    (isPick ? pickedRows : drawnRows).push_back(end - 1);
  }
  auto inParts = [](std::span<Work *const> all, std::span<const u32> rows,
                    auto draw) {
    for (size_t at = 0; at < all.size(); at += maxHeadRows) {
      size_t count = std::min<size_t>(maxHeadRows, all.size() - at);
      draw(all.subspan(at, count), rows.subspan(at, count));
    }
  };
  inParts(picked, pickedRows,
          [&](auto part, auto rows) { drawByPick(part, rows); });
  inParts(drawn, drawnRows,
          [&](auto part, auto rows) { drawByLogits(part, rows); });
}

void DraftModelProposer::drawByPick(std::span<Work *const> works,
                                    std::span<const u32> rows) {
  std::array<PickArgs, maxHeadRows> args;
  for (size_t i = 0; i < works.size(); ++i)
    args[i] = works[i]->draft->sampler->argsFor(works[i]->follower->tokens);
  auto picked = executor->pick(rows, std::span(args).first(works.size()));
  std::vector<Work *> left;
  std::vector<u32> leftRows;
  for (size_t i = 0; i < works.size(); ++i)
    if (picked[i].token >= 0) {
      take(*works[i], picked[i].token);
    } else {
      left.push_back(works[i]);
      leftRows.push_back(rows[i]);
    }
  if (!left.empty())
    drawByLogits(left, leftRows);
}

void DraftModelProposer::drawByLogits(std::span<Work *const> works,
                                      std::span<const u32> rows) {
  const f32 *logits = executor->head(rows);
  u32 vocab = executor->vocab();
  for (size_t i = 0; i < works.size(); ++i) {
    std::span<const f32> own(logits + i * u64(vocab), vocab);
    if (vocab < options.vocab) {
      paddedLogits.assign(own.begin(), own.end());
      paddedLogits.resize(options.vocab, -std::numeric_limits<f32>::infinity());
      own = paddedLogits;
    }
    Work &work = *works[i];
    auto picked = work.draft->sampler->sample(own.first(options.vocab),
                                              work.follower->tokens);
    if (picked && u32(picked->token) < vocab)
      take(work, picked->token);
    else
      work.isDone = true;
  }
}

void DraftModelProposer::take(Work &work, i32 token) {
  work.draft->proposed.push_back(token);
  work.follower->tokens.push_back(token);
  work.isDone = work.draft->proposed.size() == work.draft->most;
}

} // namespace lathe::runtime
