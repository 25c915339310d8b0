// How a scheduler's steps are evaluated, and who gets the tokens.

#include "runtime/schedule/Answer.h"

#include <algorithm>
#include <array>
#include <optional>

namespace lathe::runtime {

/// For more rows the arithmetic of a head takes longer than reading it, and a
/// coarse head saves reading only.
static constexpr u32 mostPickRows = 4;

void Scheduler::evaluate() {
  batch.clear();
  Instant start = speculator ? now() : 0;
  u64 promptRows = 0, decodeRows = 0;
  for (auto at : planned) {
    Answer &answer = **at;
    const Request &request = answer.task->request;
    u32 first = answer.sequence->length() - answer.rows;
    bool isWhole = answer.pending() == 0;
    bool hasDraft = !answer.draftRows.empty();
    u32 wanted = hasDraft                            ? answer.rows
                 : isWhole && request.maxTokens != 0 ? 1
                                                     : 0;
    if (request.showPromptLogits &&
        answer.promptShown + 1 < answer.task->facts.promptTokens)
      wanted = answer.rows;
    batch.push_back({.cache = &*answer.sequence,
                     .tokens = hasDraft ? std::span<const i32>(answer.draftRows)
                                        : std::span<const i32>(answer.tokens)
                                              .subspan(first, answer.rows),
                     .wanted = wanted});
    if (answer.answered() != 0 && (answer.rows == 1 || hasDraft))
      ++decodeRows;
    else
      promptRows += answer.rows;
  }
  counts.promptRows += promptRows;
  counts.decodeRows += decodeRows;
  counts.decodeSlots += decodeRows != 0 ? options.maxRunning : 0;
  for (const auto &answer : all)
    if (answer->isRunning()) {
      u32 length = answer->sequence->length();
      counts.heldTokens += length;
      counts.reservedTokens +=
          (length + pageTokens - 1) / pageTokens * pageTokens;
    }
  ++counts.steps;
  if (auto done = executor->step(batch); !done) {
    for (auto at : planned)
      end(**at, {.reason = EndReason::Failed, .error = done.error()});
    return;
  }

  std::vector<WantedRow> rows;
  std::vector<Answer *> done; // that are no more than their prompt
  u32 firstRow = 0;
  for (u32 i = 0; i < planned.size(); ++i) {
    auto at = planned[i];
    Answer &answer = **at;
    u32 first = answer.sequence->length() - answer.rows;
    bool hasDraft = !answer.draftRows.empty();
    if (tree && !hasDraft)
      tree->extend(answer.place, answer.tokens, *answer.sequence);
    u32 shown = answer.task->request.showPromptLogits
                    ? answer.task->facts.promptTokens - 1
                    : 0;
    for (u32 position = std::max(first, answer.promptShown);
         position < std::min(first + answer.rows, shown); ++position)
      rows.push_back({&answer, firstRow + position - first, position});
    if (answer.pending() == 0) {
      auto last = at;
      if (answer.stands) {
        fork(at);
        std::advance(last, answer.task->request.branches - 1);
      }
      for (auto each = at;; ++each) {
        if (answer.task->request.maxTokens == 0 ||
            answer.tokens.size() == options.context)
          done.push_back(each->get());
        else
          for (u32 row = hasDraft ? 0 : answer.rows - 1; row < answer.rows;
               ++row)
            rows.push_back({each->get(), firstRow + row, first + row});
        if (each == last)
          break;
      }
    }
    firstRow += answer.rows;
  }
  handOut(rows);
  for (Answer *answer : done)
    end(*answer, {.reason = EndReason::Length});
  for (auto at : planned)
    if (!(*at)->draftRows.empty())
      settleDraft(**at);
  if (speculator)
    speculator->learnStep(firstRow, now() - start);
}

void Scheduler::settleDraft(Answer &answer) {
  SequenceCache &sequence = *answer.sequence;
  u32 first = sequence.length() - answer.rows;
  sequence.truncate(first + 1 + answer.accepted);
  if (tree)
    tree->extend(answer.place, answer.tokens, sequence);
  speculator->learn(answer.speculation, answer.rows - 1, answer.accepted,
                    answer.isOffDraft);
  answer.draftRows.clear();
  answer.isOffDraft = false;
}

void Scheduler::fork(Answers::iterator answer) {
  Answer &first = **answer;
  const Task &task = *first.task;
  first.stands = false;
  auto behind = std::next(answer);
  for (u32 branch = 1; branch < task.request.branches; ++branch) {
    SamplerOptions sampling = task.request.sampling;
    sampling.seed += branch;
    auto sampler = Sampler::create(std::move(sampling), executor->vocab());
    auto other = std::make_unique<Answer>(Answer{.task = first.task,
                                                 .branch = branch,
                                                 .sampler = std::move(*sampler),
                                                 .tokens = first.tokens});
    other->sequence.emplace(first.sequence->fork());
    if (tree)
      other->place = first.place.copy();
    if (speculator)
      other->speculation = speculator->fork(draftJob(first));
    other->promptShown = task.facts.promptTokens; // The first one shows it.
    all.insert(behind, std::move(other));
  }
}

/// Calls body with parts of at most maxHeadRows rows, of which `isWanted` holds
/// when their turn comes.
static void inParts(const auto &rows, auto isWanted, auto body) {
  std::vector<std::ranges::range_value_t<decltype(rows)>> part;
  for (auto at = rows.begin(); at != rows.end();) {
    part.clear();
    for (; at != rows.end() && part.size() < maxHeadRows; ++at)
      if (isWanted(*at))
        part.push_back(*at);
    if (!part.empty())
      body(std::span(std::as_const(part)));
  }
}

/// Whether logits of a prompt token are shown.
bool Scheduler::isShown(const WantedRow &row) {
  return row.position + 1 < row.answer->task->facts.promptTokens;
}

/// Whether a token may still come of the row: the draft was right so far.
bool Scheduler::isOpen(const WantedRow &row) {
  const Answer &answer = *row.answer;
  return !answer.ended && !answer.isOffDraft &&
         row.position + 1 >= answer.tokens.size();
}

/// Whether the answer's next token is the row's.
bool Scheduler::isNext(const WantedRow &row) {
  return isOpen(row) && row.position + 1 == row.answer->tokens.size();
}

void Scheduler::handOut(std::span<const WantedRow> rows) {
  std::vector<WantedRow> whole, picks;
  for (const WantedRow &row : rows) {
    Answer &answer = *row.answer;
    bool isPick =
        rows.size() <= mostPickRows && executor->canPick() &&
        !answer.task->request.showLogits && !answer.sampler.hasTopP() &&
        answer.sampler.options().topK <= maxPickTopK &&
        row.position + 1 >= answer.tokens.size() && answer.pickTrial.isWorth();
    (isPick ? picks : whole).push_back(row);
  }
  // Prompt logits come before an answer's token.
  inParts(
      whole, [](auto &row) { return isShown(row) || isOpen(row); },
      [this](auto part) { handOutLogits(part); });
  std::vector<WantedRow> unpicked;
  inParts(picks, isOpen, [&](auto part) { handOutPicks(part, unpicked); });
  inParts(unpicked, isOpen, [this](auto part) { handOutLogits(part); });
}

void Scheduler::handOutPicks(std::span<const WantedRow> rows,
                             std::vector<WantedRow> &unpicked) {
  std::array<u32, maxHeadRows> numbers;
  std::array<PickArgs, maxHeadRows> args;
  for (size_t i = 0; i < rows.size(); ++i) {
    numbers[i] = rows[i].row;
    args[i] = argsFor(rows[i], pickEdits[i]);
  }
  auto picked = executor->pick(std::span(numbers).first(rows.size()),
                               std::span(args).first(rows.size()));
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i].answer->pickTrial.learn(picked[i], executor->vocab());
    if (isNext(rows[i]) && picked[i].token >= 0)
      takeToken(*rows[i].answer, picked[i], {});
    else if (isOpen(rows[i]))
      unpicked.push_back(rows[i]);
  }
}

/// By what the row's token is picked, if the draft is right up to there.
/// `edits` keeps what the arguments refer to.
PickArgs Scheduler::argsFor(const WantedRow &row,
                            std::vector<PickEdit> &edits) {
  Answer &answer = *row.answer;
  size_t size = answer.tokens.size();
  auto drafted =
      std::span(answer.draftRows)
          .subspan(answer.draftRows.empty() ? 0 : 1, row.position + 1 - size);
  answer.tokens.insert(answer.tokens.end(), drafted.begin(), drafted.end());
  PickArgs args = answer.sampler.argsFor(answer.tokens);
  answer.tokens.resize(size);
  edits.assign(args.edits, args.edits + args.editCount);
  args.edits = edits.data();
  return args;
}

void Scheduler::handOutLogits(std::span<const WantedRow> rows) {
  std::array<u32, maxHeadRows> numbers;
  for (size_t i = 0; i < rows.size(); ++i)
    numbers[i] = rows[i].row;
  const f32 *logits = executor->head(std::span(numbers).first(rows.size()));
  u32 vocab = executor->vocab();
  auto logitsOf = [&](size_t i) {
    return std::span<const f32>(logits + i * vocab, vocab);
  };
  // Drawing from a whole vocabulary takes long enough to be shared by threads;
  // but what is drawn behind a draft depends on what was drawn before.
  std::array<std::optional<Result<PickResult>>, maxHeadRows> drawn;
  executor->forEach(u32(rows.size()), [&](u32 i) {
    Answer &answer = *rows[i].answer;
    if (isNext(rows[i]) && answer.draftRows.empty())
      drawn[i] = answer.sampler.sample(logitsOf(i), answer.tokens);
  });
  for (size_t i = 0; i < rows.size(); ++i) {
    Answer &answer = *rows[i].answer;
    std::span<const f32> own = logitsOf(i);
    if (isShown(rows[i])) {
      answer.task->sink->onPromptLogits(rows[i].position, own);
      answer.promptShown = rows[i].position + 1;
    }
    if (isNext(rows[i]))
      takeToken(answer,
                drawn[i] ? *drawn[i]
                         : answer.sampler.sample(own, answer.tokens),
                answer.task->request.showLogits ? own : std::span<const f32>());
  }
}

void Scheduler::takeToken(Answer &answer, const Result<PickResult> &picked,
                          std::span<const f32> logits) {
  if (!picked)
    return end(answer, {.reason = EndReason::Failed, .error = picked.error()});
  const Request &request = answer.task->request;
  if (std::ranges::count(request.stopTokens, picked->token) != 0)
    return end(answer, {.reason = EndReason::Stop});
  u32 position = u32(answer.tokens.size());
  answer.tokens.push_back(picked->token);
  ++counts.tokens;
  if (u32 next = answer.accepted + 1; next < answer.draftRows.size()) {
    if (picked->token == answer.draftRows[next])
      ++answer.accepted;
    else
      answer.isOffDraft = true;
  }
  if (!answer.task->sink->onToken(answer.branch,
                                  {picked->token, position, logits}))
    return end(answer, {.reason = EndReason::Stop});
  if (answer.answered() == request.maxTokens ||
      answer.tokens.size() == options.context)
    end(answer, {.reason = EndReason::Length});
}

} // namespace lathe::runtime
