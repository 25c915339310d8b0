#include "runtime/serve/Exchange.h"
#include "runtime/serve/Endpoints.h"

#include <atomic>
#include <mutex>
#include <random>

namespace lathe::runtime::serve {

namespace {

/// Where in the text that is shown of it each token of a prompt begins, in
/// characters.
std::vector<u32> offsetsOf(const Tokenizer &tokenizer, const Prompt &prompt) {
  bool isText = !prompt.text.empty();
  // Text spells its control tokens out; ids show none, as in answers.
  StreamDecoder decoder(tokenizer, {.showSpecial = isText});
  std::vector<u32> offsets;
  u32 characters = 0;
  std::string decoded;
  for (size_t i = 0; i < prompt.ids.size(); ++i) {
    offsets.push_back(characters);
    i32 id = prompt.ids[i];
    // Encoding has put it in front.
    bool isAdded = isText && i == 0 && id == tokenizer.spec().bosId &&
                   !prompt.text.starts_with(tokenizer.tokenBytes(id));
    if (isAdded)
      continue;
    decoded.clear();
    decoder.push(id, decoded);
    characters += countCharacters(decoded);
  }
  return offsets;
}

ApiError errorOf(const End &end) {
  switch (end.reason) {
  case EndReason::Cancelled:
    return {503, "the server is shutting down", "shutting_down"};
  case EndReason::Deadline:
    return {504, "the request took longer than this server allows", "timeout"};
  default:
    break;
  }
  const Error &error = *end.error;
  if (error.kind == ErrorKind::Exhausted)
    return {429, error.message, "queue_full"};
  return {500, error.message, "engine_failed"};
}

u64 randomSeed() {
  std::random_device device;
  return u64(device()) << 32 | device();
}

class Exchange : public std::enable_shared_from_this<Exchange> {
public:
  Exchange(std::shared_ptr<const ServedModel> model, Call call,
           std::unique_ptr<Format> format, const http::Request &request,
           std::shared_ptr<http::Responder> responder, TextRules rules)
      : model(std::move(model)), call(std::move(call)),
        format(std::move(format)), responder(std::move(responder)),
        callId(request.id), endpoint(request.path), rules(std::move(rules)) {}

  void start();

  void onPromptLogits(u32 prompt, u32 position, std::span<const f32> logits);
  bool onToken(u32 prompt, u32 branch, const GeneratedToken &token);
  void onEnd(u32 prompt, u32 branch, const End &end, const RequestFacts &facts);

private:
  class Sink;

  /// A prompt under way.
  struct Asked {
    std::shared_ptr<RequestObserver> observer;
    RequestId id = 0;
    /// If the prompt is echoed: its text, its tokens and their offsets.
    std::string echo;
    std::vector<TokenEntry> entries;
    std::vector<u32> offsets;
  };

  struct Answer {
    AnswerText text;
    bool hasBegun = false;
    bool isStop = false;
  };

  Request requestFor(u32 prompt, u64 seed);
  void prepareEcho(Asked &asked, const Prompt &prompt);
  std::optional<ApiError> submitAll();
  void begin(u32 prompt, u32 branch, std::string &out);
  Progress progress(u32 prompt, u32 branch);
  void send(std::string bytes);
  void complete();
  void fail(const ApiError &error);
  void cancelAll();

  Answer &answer(u32 prompt, u32 branch) {
    return answers[prompt * call.answers + branch];
  }

  const std::shared_ptr<const ServedModel> model;
  const Call call;
  const std::unique_ptr<Format> format;
  const std::shared_ptr<http::Responder> responder;
  const std::string callId, endpoint;
  const TextRules rules;

  std::mutex mutex; ///< Of all below.
  std::vector<Asked> asked;
  std::vector<Answer> answers;
  Usage usage;
  u32 left = 0;        ///< Answers that have not ended.
  bool isSent = false; ///< The stream has started.
  bool isOver = false; ///< The client hears no more.
};

/// Hears of one prompt's request.
class Exchange::Sink : public RequestSink {
public:
  Sink(std::shared_ptr<Exchange> exchange, u32 prompt)
      : exchange(std::move(exchange)), prompt(prompt) {}

  void onPromptLogits(u32 position, std::span<const f32> logits) override {
    exchange->onPromptLogits(prompt, position, logits);
  }
  bool onToken(u32 branch, const GeneratedToken &token) override {
    return exchange->onToken(prompt, branch, token);
  }
  void onEnd(u32 branch, const End &end, const RequestFacts &facts) override {
    exchange->onEnd(prompt, branch, end, facts);
  }

private:
  std::shared_ptr<Exchange> exchange;
  u32 prompt;
};

Request Exchange::requestFor(u32 prompt, u64 seed) {
  Request request{.prompt = call.prompts[prompt].ids,
                  .sampling = call.sampling,
                  .maxTokens = call.maxTokens.value_or(~0u),
                  .stopTokens = rules.stopTokens(call),
                  .branches = call.answers,
                  .priority = call.priority,
                  .cacheSalt = call.cacheSalt,
                  .showLogits = call.logProbs,
                  .showPromptLogits = call.echo && call.logProbs};
  request.sampling.seed = seed;
  if (model->requestTime.count() > 0)
    request.deadline =
        ServingEngine::now() + Instant(model->requestTime.count());
  return request;
}

void Exchange::prepareEcho(Asked &shown, const Prompt &prompt) {
  shown.echo =
      prompt.text.empty() ? rules.tokenizer.decode(prompt.ids) : prompt.text;
  if (!call.logProbs || prompt.ids.empty())
    return;
  shown.offsets = offsetsOf(rules.tokenizer, prompt);
  shown.entries.push_back({.token = prompt.ids.front()});
}

/// The error of the first prompt that the engine does not take.
std::optional<ApiError> Exchange::submitAll() {
  u64 seed = call.seed ? *call.seed : randomSeed();
  for (u32 i = 0; i < call.prompts.size(); ++i) {
    const Prompt &prompt = call.prompts[i];
    if (call.echo)
      prepareEcho(asked[i], prompt);
    Request request = requestFor(i, seed);
    if (model->observer)
      asked[i].observer =
          model->observer->onRequest({.callId = callId,
                                      .endpoint = endpoint,
                                      .promptIndex = i,
                                      .isStream = call.stream,
                                      .request = request,
                                      .promptText = prompt.text,
                                      .stops = call.stops,
                                      .includeStop = call.includeStop});
    auto sink = std::make_shared<Sink>(shared_from_this(), i);
    auto id = model->engine.submit(std::move(request), std::move(sink));
    if (id) {
      asked[i].id = *id;
      continue;
    }
    const Error &error = id.error();
    u32 context = model->engine.context();
    if (prompt.ids.size() > context)
      return ApiError{400,
                      fmt::format("this model's maximum context length is {} "
                                  "tokens: {}",
                                  context, error.message),
                      "context_length_exceeded"};
    if (error.kind == ErrorKind::Exhausted)
      return ApiError{429, error.message, "queue_full"};
    if (error.kind == ErrorKind::Environment)
      return ApiError{503, error.message, "shutting_down"};
    return toApiError(error);
  }
  return std::nullopt;
}

void Exchange::start() {
  {
    // Tokens that come meanwhile wait, so that a refusal is still an HTTP one.
    std::lock_guard lock(mutex);
    asked.resize(call.prompts.size());
    left = u32(call.prompts.size()) * call.answers;
    answers.reserve(left);
    for (u32 i = 0; i < left; ++i)
      answers.push_back({.text = AnswerText(rules)});
    for (const Prompt &prompt : call.prompts)
      usage.promptTokens += u32(prompt.ids.size());
    if (auto error = submitAll())
      return fail(*error);
  }
  responder->onGone([weak = weak_from_this()] {
    if (auto self = weak.lock()) {
      std::lock_guard lock(self->mutex);
      self->isOver = true;
      self->cancelAll();
    }
  });
}

void Exchange::cancelAll() {
  for (const Asked &each : asked)
    if (each.id != 0)
      model->engine.cancel(each.id);
}

void Exchange::fail(const ApiError &error) {
  if (isOver)
    return;
  isOver = true;
  cancelAll();
  if (!isSent)
    return replyError(*model, callId, endpoint, *responder, error,
                      format->errorShape());
  std::string out;
  format->fail(out, error);
  responder->write(std::move(out));
  responder->finish();
}

void Exchange::send(std::string bytes) {
  if (!isSent)
    responder->startStream(format->streamType());
  isSent = true;
  responder->write(std::move(bytes));
}

void Exchange::begin(u32 prompt, u32 branch, std::string &out) {
  Answer &started = answer(prompt, branch);
  if (started.hasBegun)
    return;
  started.hasBegun = true;
  if (call.echo)
    started.text.begin(asked[prompt].echo, asked[prompt].entries);
  if (call.stream)
    format->begin(out, progress(prompt, branch));
}

Progress Exchange::progress(u32 prompt, u32 branch) {
  return {.choice = prompt * call.answers + branch,
          .promptTokens = u32(call.prompts[prompt].ids.size()),
          .answerTokens = answer(prompt, branch).text.tokens()};
}

void Exchange::onPromptLogits(u32 prompt, u32 position,
                              std::span<const f32> logits) {
  std::lock_guard lock(mutex);
  if (isOver)
    return;
  i32 token = call.prompts[prompt].ids[position + 1];
  auto entry = entryOf(token, logits, call.topLogProbs);
  if (!entry)
    return fail({500, entry.error().message, "engine_failed"});
  entry->offset = asked[prompt].offsets[position + 1];
  asked[prompt].entries.push_back(std::move(*entry));
}

bool Exchange::onToken(u32 prompt, u32 branch, const GeneratedToken &token) {
  std::lock_guard lock(mutex);
  Instant at = ServingEngine::now();
  RequestObserver *observer = asked[prompt].observer.get();
  if (observer)
    observer->onToken(branch, token.token, at);
  if (isOver)
    return false;
  if (prompt == 0 && usage.firstToken == 0)
    usage.firstToken = at;
  std::string out;
  begin(prompt, branch, out);
  AnswerText &text = answer(prompt, branch).text;
  size_t before = text.text().size();
  auto isStopped = text.push(token.token, token.logits);
  if (!isStopped) {
    fail({500, isStopped.error().message, "engine_failed"});
    return false;
  }
  if (observer && text.text().size() > before)
    observer->onText(branch, text.text().substr(before));
  answer(prompt, branch).isStop = *isStopped;
  if (call.stream) {
    if (!text.text().empty()) {
      format->piece(out, progress(prompt, branch), text.text(), text.entries());
      text.clear();
    }
    if (!out.empty())
      send(std::move(out));
  }
  return !*isStopped;
}

void Exchange::onEnd(u32 prompt, u32 branch, const End &end,
                     const RequestFacts &facts) {
  std::lock_guard lock(mutex);
  --left;
  Answer &ended = answer(prompt, branch);
  RequestObserver *observer = asked[prompt].observer.get();
  bool isComplete =
      end.reason == EndReason::Stop || end.reason == EndReason::Length;
  if (!isComplete || isOver) {
    if (observer)
      observer->onEnd(
          branch, isOver ? End{.reason = EndReason::Cancelled} : end, facts);
    if (!isComplete)
      fail(errorOf(end));
    return;
  }
  std::string out;
  begin(prompt, branch, out);
  size_t before = ended.text.text().size();
  if (!ended.isStop)
    ended.isStop = ended.text.flush() || end.reason == EndReason::Stop;
  if (observer) {
    if (ended.text.text().size() > before)
      observer->onText(branch, ended.text.text().substr(before));
    observer->onEnd(
        branch, {.reason = ended.isStop ? EndReason::Stop : EndReason::Length},
        facts);
  }
  usage.answerTokens += ended.text.tokens();
  if (branch == 0)
    usage.cachedTokens += facts.cachedTokens;
  if (prompt == 0 && branch == 0) {
    usage.submitted = facts.submitted;
    usage.started = facts.started;
    usage.ended = ServingEngine::now();
  }
  if (call.stream) {
    Progress at = progress(prompt, branch);
    if (!ended.text.text().empty() || !ended.text.entries().empty())
      format->piece(out, at, ended.text.text(), ended.text.entries());
    ended.text.clear();
    format->end(out, at, ended.isStop);
    if (left == 0)
      format->close(out, usage);
    send(std::move(out));
  }
  if (left == 0)
    complete();
}

void Exchange::complete() {
  isOver = true;
  if (call.stream)
    return responder->finish();
  std::vector<Choice> choices;
  choices.reserve(answers.size());
  for (const Answer &each : answers)
    choices.push_back({.text = each.text.text(),
                       .entries = each.text.entries(),
                       .isStop = each.isStop});
  responder->reply({.body = format->whole(choices, usage)});
}

} // namespace

void startExchange(std::shared_ptr<const ServedModel> model, Call call,
                   std::unique_ptr<Format> format, const http::Request &request,
                   std::shared_ptr<http::Responder> responder) {
  auto refuse = [&](const ApiError &error) {
    replyError(*model, request.id, request.path, *responder, error,
               format->errorShape());
  };
  if (model->isDraining)
    return refuse({503, "the server is shutting down", "shutting_down"});
  u64 wanted = u64(call.prompts.size()) * call.answers;
  if (u32 most = model->engine.capacity(); wanted > most)
    return refuse({400,
                   fmt::format("{} answers were asked for; at most {} are "
                               "possible at a time",
                               wanted, most),
                   "invalid_value"});
  auto rules = TextRules::of(model->model->tokenizer(), call);
  if (!rules)
    return refuse({400, rules.error().message, "invalid_value", "stop"});
  std::make_shared<Exchange>(std::move(model), std::move(call),
                             std::move(format), request, std::move(responder),
                             std::move(*rules))
      ->start();
}

} // namespace lathe::runtime::serve
