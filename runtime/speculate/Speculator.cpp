#include "runtime/speculate/Speculator.h"

#include <algorithm>

namespace lathe::runtime {

/// Where drafts do not seem to pay, so short ones are made once in so many
/// steps, lest what they cost or how good they are has changed.
static constexpr u32 triedTokens = 2, triedEvery = 256;
/// A request's first drafts are judged by those of others, as if it had had so
/// many of them; and these at first by the proposer's guess.
static constexpr f64 othersWeight = 2;

f64 Speculator::acceptanceOf(const Sequence &sequence) const {
  return sequence.acceptance.of(
      sequence.certainty,
      all.of(sequence.certainty, proposer->guessedAcceptance(), othersWeight),
      othersWeight);
}

bool Speculator::measuresWithout(std::span<const Job> jobs, u32 rows) {
  ++sinceWithout;
  if (rows != jobs.size() || sinceWithout < withoutEvery ||
      steps.isFresh(rows, withoutEvery))
    return false;
  sinceWithout = 0;
  return true;
}

void Speculator::choose(std::span<const Job> jobs, u32 rows, u32 rowsLeft,
                        const DraftCost &cost) {
  for (u32 i = 0; i < jobs.size(); ++i)
    choices[i].acceptance = acceptanceOf(*jobs[i].sequence);
  if (options.adapts)
    return chooseDraftLengths(choices, rows, rowsLeft, steps, cost);
  for (DraftChoice &choice : choices) {
    choice.length = std::min(choice.most, rowsLeft);
    rowsLeft -= choice.length;
  }
}

Proposer::Sequence *Speculator::follow(const Job &job) {
  if (!job.sequence->state)
    job.sequence->state = proposer->start(job.salt);
  job.sequence->told = u32(job.tokens.size());
  return job.sequence->state.get();
}

/// Has drafts of the chosen lengths made.
void Speculator::ask(std::span<Job> jobs) {
  std::vector<Proposer::Draft> drafts;
  u32 longest = 0;
  bool isUsual = true; // Nobody has much to catch up with.
  for (u32 i = 0; i < jobs.size(); ++i) {
    if (choices[i].length == 0)
      continue;
    const Job &job = jobs[i];
    u32 told = job.sequence->state ? job.sequence->told : 0;
    isUsual &= job.tokens.size() - told <= options.mostTokens + 1;
    drafts.push_back({.sequence = follow(job),
                      .tokens = job.tokens,
                      .sampler = job.sampler,
                      .most = choices[i].length});
    longest = std::max(longest, choices[i].length);
  }
  if (drafts.empty())
    return;
  u64 start = now();
  proposer->propose(drafts);
  if (isUsual) {
    draftTokens.add(u32(drafts.size()), f64(now() - start) * 1e-9 / longest);
    sinceDrafting = 0;
  }
  auto draft = drafts.begin();
  for (u32 i = 0; i < jobs.size(); ++i) {
    if (choices[i].length == 0)
      continue;
    std::vector<i32> &proposed = draft->proposed;
    proposed.resize(std::min<size_t>(proposed.size(), choices[i].length));
    auto wrong = std::ranges::find_if(
        proposed, [&](i32 id) { return id < 0 || u32(id) >= vocab; });
    proposed.erase(wrong, proposed.end());
    jobs[i].sequence->certainty =
        std::min(draft->certainty, Proposer::certainties - 1);
    jobs[i].draft = std::move(proposed);
    ++draft;
  }
}

void Speculator::propose(std::span<Job> jobs, u32 rows, u32 rowsLeft) {
  for (Job &job : jobs)
    job.draft.clear();
  if (jobs.empty() || rowsLeft == 0)
    return;
  bool isWithout = options.adapts && measuresWithout(jobs, rows);
  choices.assign(jobs.size(), {});
  for (u32 i = 0; i < jobs.size(); ++i)
    choices[i].most =
        isWithout ? 0 : std::min(jobs[i].most, options.mostTokens);
  if (proposer->isCostly() && options.adapts && ++sinceDrafting > triedEvery)
    for (DraftChoice &choice : choices)
      choice.length = std::min(choice.most, triedTokens);
  else if (proposer->isCostly())
    choose(jobs, rows, rowsLeft,
           {.perToken = draftTokens.ofKnown(u32(jobs.size()))});
  else
    for (DraftChoice &choice : choices)
      choice.length = choice.most;
  ask(jobs);
  // They are made: what they took does not matter any more.
  for (u32 i = 0; i < jobs.size(); ++i)
    choices[i].most = u32(jobs[i].draft.size());
  choose(jobs, rows, rowsLeft, {});
  for (u32 i = 0; i < jobs.size(); ++i) {
    jobs[i].draft.resize(choices[i].length);
    if (choices[i].length == 0)
      jobs[i].sequence->acceptance.fade(1);
  }
}

Speculator::Sequence Speculator::fork(const Job &job) {
  Proposer::Draft told = {.sequence = follow(job),
                          .tokens = job.tokens,
                          .sampler = job.sampler,
                          .most = 0};
  proposer->propose({&told, 1});
  const Sequence &sequence = *job.sequence;
  return {.state = proposer->fork(*sequence.state),
          .acceptance = sequence.acceptance,
          .certainty = sequence.certainty,
          .told = sequence.told};
}

void Speculator::learn(Sequence &sequence, u32 drafted, u32 accepted,
                       bool isRejected) {
  sequence.acceptance.add(sequence.certainty, accepted, isRejected);
  all.add(sequence.certainty, accepted, isRejected);
  ++counts.drafts;
  counts.drafted += drafted;
  counts.accepted += accepted;
}

} // namespace lathe::runtime
