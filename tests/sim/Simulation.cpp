#include "tests/sim/Simulation.h"

#include "runtime/schedule/Scheduler.h"
#include "runtime/speculate/NgramProposer.h"
#include "tests/sim/SimExecutor.h"
#include "tests/sim/SimProposer.h"

#include <algorithm>
#include <fmt/format.h>
#include <random>

using namespace lathe;
using namespace lathe::runtime;
using namespace lathe::tests;

namespace {

constexpr u32 vocab = 24;

/// Uniform draws that are the same with every standard library.
class Draws {
public:
  explicit Draws(u64 seed) : engine(seed) {}
  /// In [low, high].
  u32 between(u32 low, u32 high) {
    return low + u32(engine() % (u64(high) - low + 1));
  }
  bool oneIn(u32 n) { return engine() % n == 0; }
  template <typename T> T of(std::initializer_list<T> values) {
    return values.begin()[between(0, u32(values.size()) - 1)];
  }

private:
  std::mt19937_64 engine;
};

/// What an answer would be if its request were alone.
struct Expected {
  std::vector<i32> tokens;
  EndReason reason = EndReason::Length;
};

Expected answerAlone(const Request &request, u32 branch, u32 context) {
  SamplerOptions sampling = request.sampling;
  sampling.seed += branch;
  auto sampler = Sampler::create(sampling, vocab);
  std::vector<i32> tokens = request.prompt;
  u64 state = 0;
  for (i32 token : tokens)
    state = nextState(state, token);
  Expected expected;
  std::vector<f32> logits;
  while (expected.tokens.size() < request.maxTokens &&
         tokens.size() < context) {
    logitsOf(state, logits, vocab);
    i32 token = sampler->sample(logits, tokens)->token;
    if (std::ranges::count(request.stopTokens, token) != 0) {
      expected.reason = EndReason::Stop;
      break;
    }
    expected.tokens.push_back(token);
    tokens.push_back(token);
    state = nextState(state, token);
  }
  return expected;
}

class Simulation;

/// One request and all that it was told.
struct Client : RequestSink {
  struct Answer {
    Expected expected;
    std::vector<i32> tokens;
    u32 ends = 0;
    EndReason reason = EndReason::Length;
  };

  Simulation *simulation = nullptr;
  Request request;
  RequestId id = 0;
  u32 number = 0;
  std::vector<Answer> answers;
  u32 promptShown = 0;
  /// The sink ends its answers at so many tokens, as a stop string would.
  u32 ownStop = ~0u;
  bool isDisturbed = false; ///< Cancelled, or with a deadline.
  RequestFacts facts;

  void onPromptLogits(u32 position, std::span<const f32> logits) override;
  bool onToken(u32 branch, const GeneratedToken &token) override;
  void onEnd(u32 branch, const End &end, const RequestFacts &facts) override;

  bool hasEnded() const {
    return std::ranges::all_of(answers, [](auto &a) { return a.ends != 0; });
  }
};

class Simulation {
public:
  explicit Simulation(u64 seed) : draws(seed) {}

  SimOutcome run();
  void complain(std::string what) {
    if (outcome.problem.empty())
      outcome.problem = fmt::format("step {}: {}", outcome.steps, what);
  }
  void record(u64 event) {
    outcome.trace = (outcome.trace ^ event) * 0x100000001b3; // FNV-1a
  }
  /// The step in progress is one that the executor fails.
  bool stepFails = false;

private:
  void setUp();
  Proposer *setUpProposer(std::span<const KvGroupInfo> groups,
                          const SpeculationOptions &speculation);
  Request drawRequest();
  void submit();
  void disturb();
  void check();
  void checkEnd();

  Draws draws;
  SimOutcome outcome;
  Instant time = 1;
  u32 wantedContext = 0;
  std::unique_ptr<KvCache> cache;
  std::unique_ptr<SimExecutor> executor;
  std::unique_ptr<SimDraftModel> draftModel; ///< Null in most simulations.
  std::unique_ptr<Proposer> ownProposer;     ///< Likewise.
  std::unique_ptr<Scheduler> scheduler;
  std::vector<std::shared_ptr<Client>> clients;
  std::vector<std::vector<i32>> prefixes; ///< That prompts may start with.
};

void Client::onPromptLogits(u32 position, std::span<const f32> logits) {
  if (!request.showPromptLogits || position != promptShown ||
      position + 1 >= request.prompt.size())
    simulation->complain(
        fmt::format("request {} sees prompt logits of {}", number, position));
  u64 state = 0;
  for (u32 i = 0; i <= position && i < request.prompt.size(); ++i)
    state = nextState(state, request.prompt[i]);
  std::vector<f32> wanted;
  ::logitsOf(state, wanted, vocab);
  if (!std::ranges::equal(wanted, logits))
    simulation->complain(
        fmt::format("request {} sees wrong prompt logits", number));
  ++promptShown;
}

bool Client::onToken(u32 branch, const GeneratedToken &token) {
  Answer &answer = answers[branch];
  if (answer.ends != 0)
    simulation->complain(
        fmt::format("request {} goes on after its end", number));
  size_t at = answer.tokens.size();
  if (at >= answer.expected.tokens.size() ||
      answer.expected.tokens[at] != token.token ||
      token.position != request.prompt.size() + at)
    simulation->complain(fmt::format(
        "request {} answer {} got a wrong token {}", number, branch, at));
  if (request.showLogits == token.logits.empty())
    simulation->complain(fmt::format("request {}: logits", number));
  answer.tokens.push_back(token.token);
  simulation->record(number * 131 + branch * 17 + u64(token.token) + 1000);
  return answer.tokens.size() < ownStop;
}

void Client::onEnd(u32 branch, const End &end, const RequestFacts &told) {
  Answer &answer = answers[branch];
  if (++answer.ends != 1)
    simulation->complain(fmt::format("request {} ends twice", number));
  answer.reason = end.reason;
  facts = told;
  simulation->record(number * 131 + branch * 17 + u64(end.reason));
  bool isOwn = answer.tokens.size() >= ownStop;
  bool isNatural =
      end.reason == EndReason::Stop || end.reason == EndReason::Length;
  bool hasFailed = end.reason == EndReason::Failed && simulation->stepFails;
  if (!isNatural && !isDisturbed && !hasFailed)
    simulation->complain(fmt::format("request {} ended for no reason", number));
  if (isNatural && !isOwn &&
      (answer.tokens.size() != answer.expected.tokens.size() ||
       end.reason != answer.expected.reason))
    simulation->complain(fmt::format("request {} lost tokens", number));
  if (isNatural && request.showPromptLogits &&
      promptShown + 1 != request.prompt.size())
    simulation->complain(fmt::format("request {} lost prompt logits", number));
}

void Simulation::setUp() {
  std::vector<KvGroupInfo> groups = {{.pageBytes = SimExecutor::pageBytes}};
  u32 shape = draws.between(0, 3);
  if (shape == 1) // A window alone; of one key, nothing would hold states.
    groups[0].window = draws.between(2, 70);
  if (shape >= 2)
    groups.push_back(
        {.window = draws.between(1, 70), .pageBytes = SimExecutor::pageBytes});
  StepExecutor::Capacities capacities = {.rows = draws.between(4, 96),
                                         .sequences = draws.between(1, 12)};
  capacities.sequences = std::min(capacities.sequences, capacities.rows);
  // From hardly one sequence to more than all need.
  std::vector<u32> pages = KvCache::pagesForSequence(
      groups, draws.between(20, 200), capacities.rows);
  u32 times = draws.between(1, 8);
  for (u32 &count : pages)
    count = count * times + draws.between(0, 3);
  cache = *KvCache::create(groups, {.pages = pages, .poisonFreed = true});
  executor =
      std::make_unique<SimExecutor>(capacities, vocab, *cache, draws.oneIn(2));
  wantedContext = draws.between(24, 400);
  SpeculationOptions speculation = {.mostTokens = draws.between(0, 12),
                                    .adapts = draws.oneIn(2)};
  Proposer *proposer =
      draws.oneIn(2) ? setUpProposer(groups, speculation) : nullptr;
  scheduler = *Scheduler::create(
      *executor, *cache,
      {.context = wantedContext,
       .maxRunning =
           draws.oneIn(2) ? 0 : draws.between(1, capacities.sequences),
       .maxWaiting = draws.between(1, 40),
       .mixedRows = draws.between(1, 64),
       .prefixCache = !draws.oneIn(5),
       .agingTime = 1000,
       .speculation = speculation},
      // Some steps are slow, for no reason.
      [this, proposer] {
        if (proposer)
          time += nextState(time, 0) % 16;
        return time;
      },
      proposer);
  for (u32 i = draws.between(1, 4); i != 0; --i) {
    std::vector<i32> prefix(draws.between(1, 90));
    for (i32 &token : prefix)
      token = i32(draws.between(0, vocab - 1));
    prefixes.push_back(std::move(prefix));
  }
}

Proposer *Simulation::setUpProposer(std::span<const KvGroupInfo> groups,
                                    const SpeculationOptions &speculation) {
  if (draws.oneIn(3)) {
    StepExecutor::Capacities capacities = {.rows = draws.between(2, 64),
                                           .sequences = draws.between(1, 12)};
    capacities.sequences = std::min(capacities.sequences, capacities.rows);
    u32 context = draws.between(24, 300);
    auto pages = KvCache::pagesForSequence(groups, context, capacities.rows);
    u32 times = draws.between(1, 6);
    for (u32 &count : pages)
      count = count * times + draws.between(1, 3);
    draftModel = std::make_unique<SimDraftModel>(
        groups, pages, capacities, draws.of<u32>({vocab, vocab - 1, vocab + 3}),
        DraftModelProposer::Options{.vocab = vocab,
                                    .context = context,
                                    .mostTokens = speculation.mostTokens});
    return draftModel->proposer.get();
  }
  if (draws.oneIn(4)) {
    ownProposer = std::make_unique<NgramProposer>();
    return ownProposer.get();
  }
  auto kind = draws.of<SimProposer::Kind>(
      {SimProposer::Kind::Perfect, SimProposer::Kind::Half,
       SimProposer::Kind::Random, SimProposer::Kind::Hostile});
  ownProposer = std::make_unique<SimProposer>(
      kind, draws.between(0, ~0u), vocab,
      [this](const std::string &what) { complain(what); });
  return ownProposer.get();
}

Request Simulation::drawRequest() {
  Request request;
  if (!draws.oneIn(3)) {
    const auto &prefix = prefixes[draws.between(0, u32(prefixes.size()) - 1)];
    request.prompt.assign(
        prefix.begin(), prefix.begin() + draws.between(1, u32(prefix.size())));
  }
  // Now and then somebody's whole conversation goes on.
  if (!clients.empty() && draws.oneIn(4)) {
    const Client &earlier = *clients[draws.between(0, u32(clients.size()) - 1)];
    request.prompt = earlier.request.prompt;
    const auto &answer = earlier.answers.front().tokens;
    request.prompt.insert(request.prompt.end(), answer.begin(), answer.end());
  }
  u32 more = draws.between(request.prompt.empty() ? 1 : 0, 40);
  if (draws.oneIn(20))
    more += 300;
  for (; more != 0; --more)
    request.prompt.push_back(i32(draws.between(0, vocab - 1)));
  request.maxTokens = draws.oneIn(8)    ? ~0u
                      : draws.oneIn(10) ? 0
                                        : draws.between(1, 60);
  if (draws.oneIn(2))
    request.stopTokens.push_back(i32(draws.between(0, vocab - 1)));
  request.branches = draws.oneIn(5) ? draws.between(2, 3) : 1;
  request.priority = draws.oneIn(5) ? i32(draws.between(0, 4)) - 2 : 0;
  if (draws.oneIn(12))
    request.deadline = time + draws.between(0, 3000);
  if (draws.oneIn(6))
    request.cacheSalt = draws.of<const char *>({"a", "b"});
  request.showLogits = draws.oneIn(4);
  request.showPromptLogits = draws.oneIn(8);
  SamplerOptions &sampling = request.sampling;
  sampling.seed = draws.between(0, 1000);
  if (draws.oneIn(2))
    sampling.temperature = 0.8f;
  if (draws.oneIn(4))
    sampling.topP = 0.9f;
  if (draws.oneIn(4))
    sampling.topK = draws.between(1, 30);
  if (draws.oneIn(4))
    sampling.repetitionPenalty = 1.1f;
  return request;
}

void Simulation::submit() {
  auto client = std::make_shared<Client>();
  client->simulation = this;
  client->request = drawRequest();
  client->number = u32(clients.size());
  client->isDisturbed = client->request.deadline.has_value();
  if (draws.oneIn(6))
    client->ownStop = draws.between(1, 20);
  for (u32 branch = 0; branch < client->request.branches; ++branch)
    client->answers.emplace_back().expected =
        answerAlone(client->request, branch, scheduler->context());
  client->id = outcome.requests + 1;
  auto queued = scheduler->submit(client->id, client->request, client);
  record(queued.has_value());
  if (!queued) {
    bool isTooLong = client->request.prompt.size() > scheduler->context();
    if (queued.error().kind == ErrorKind::InvalidInput && !isTooLong &&
        client->request.branches == 1)
      complain(fmt::format("request {} is refused: {}", client->number,
                           queued.error().message));
    return;
  }
  clients.push_back(std::move(client));
  ++outcome.requests;
}

void Simulation::disturb() {
  if (!clients.empty() && draws.oneIn(25)) {
    Client &client = *clients[draws.between(0, u32(clients.size()) - 1)];
    client.isDisturbed = true;
    bool hadEnded = client.hasEnded();
    scheduler->cancel(client.id);
    if (!client.hasEnded())
      complain(fmt::format("request {} goes on when cancelled", client.number));
    outcome.cancels += !hadEnded;
    check();
  }
  if (draws.oneIn(200)) {
    executor->failNext();
    stepFails = true;
  }
  if (draftModel && draws.oneIn(50))
    draftModel->executor->failNext();
}

void Simulation::check() {
  if (!executor->problem().empty())
    complain(executor->problem());
  if (!scheduler->isConsistent())
    complain("pages are not owned as counted");
  if (draftModel)
    if (std::string problem = draftModel->problem(false); !problem.empty())
      complain(problem);
}

void Simulation::checkEnd() {
  for (const auto &client : clients)
    if (!client->hasEnded())
      complain(fmt::format("request {} never ends", client->number));
  // Whoever comes earlier, by priority, starts earlier.
  auto due = [](const Client &client) {
    return i64(client.facts.submitted) - 1000 * client.request.priority;
  };
  for (const auto &a : clients)
    for (const auto &b : clients)
      if (a->facts.started != 0 && b->facts.started != 0 &&
          a->facts.submitted <= b->facts.submitted && due(*a) <= due(*b) &&
          a->id < b->id && a->facts.started > b->facts.started)
        complain(fmt::format("request {} was overtaken by {}", a->number,
                             b->number));
  SchedulerStats stats = scheduler->stats();
  if (stats.running != 0 || stats.waiting != 0)
    complain("somebody is left");
  outcome.preemptions = stats.preemptions;
  outcome.tokens = stats.tokens;
  outcome.cachedTokens = stats.cachedTokens;
  outcome.drafted = stats.speculation.drafted;
  outcome.accepted = stats.speculation.accepted;
  if (draftModel) {
    outcome.modelDrafted = outcome.drafted;
    outcome.modelAccepted = outcome.accepted;
  }
  if (outcome.accepted > outcome.drafted)
    complain("more was accepted than drafted");
  scheduler.reset();
  if (draftModel)
    if (std::string problem = draftModel->problem(true); !problem.empty())
      complain(problem);
  for (u32 group = 0; group < cache->groups().size(); ++group)
    if (cache->pool(group).usedPages() != 0)
      complain("pages are left");
}

SimOutcome Simulation::run() {
  setUp();
  u32 requests = draws.between(1, 40);
  // Bursts, or one after the other.
  u32 pause = draws.of<u32>({1, 3, 20});
  while (outcome.problem.empty() && (requests != 0 || scheduler->hasWork())) {
    if (requests != 0 && (!scheduler->hasWork() || draws.oneIn(pause))) {
      for (u32 burst = draws.between(1, 6); burst != 0 && requests != 0;
           --burst, --requests)
        submit();
      check();
    }
    disturb();
    if (!scheduler->hasWork())
      continue;
    u64 before = scheduler->stats().steps;
    u32 there = scheduler->stats().running + scheduler->stats().waiting;
    scheduler->step();
    // A step without rows has not asked the executor.
    stepFails = stepFails && scheduler->stats().steps == before;
    ++outcome.steps;
    time += draws.oneIn(50) ? 5000 : draws.between(1, 40);
    SchedulerStats now = scheduler->stats();
    if (now.steps == before && now.running + now.waiting >= there)
      complain("a step did nothing");
    if (outcome.steps > 100'000)
      complain("it takes for ever");
    check();
  }
  if (outcome.problem.empty())
    checkEnd();
  return outcome;
}

} // namespace

SimOutcome tests::simulate(u64 seed) { return Simulation(seed).run(); }
