#include "runtime/api/include/lathe/lathe.h"
#include "runtime/api/TextModel.h"
#include "runtime/engine/Validate.h"

#include <exception>
#include <limits>
#include <nlohmann/json.hpp>

namespace lathe {

struct ModelData {
  std::shared_ptr<const runtime::TextModel> text;

  const engine::fb::Model &manifestModel() const {
    return *text->engine()->engine().manifest().model();
  }
};

struct SessionData {
  std::shared_ptr<const ModelData> model;
  std::unique_ptr<runtime::Session> session;
};

namespace {

Error toPublic(const runtime::Error &error) {
  using runtime::ErrorKind;
  auto code = [&] {
    switch (error.kind) {
    case ErrorKind::InvalidInput:
      return ErrorCode::InvalidInput;
    case ErrorKind::NotFound:
      return ErrorCode::NotFound;
    case ErrorKind::Unsupported:
      return ErrorCode::Unsupported;
    case ErrorKind::Exhausted:
      return ErrorCode::Exhausted;
    case ErrorKind::Environment:
      return ErrorCode::Environment;
    case ErrorKind::Untrusted:
      return ErrorCode::Untrusted;
    case ErrorKind::Internal:
      break;
    }
    return ErrorCode::Internal;
  };
  return {code(), error.message};
}

/// Runs a function that returns a Result; what the standard library throws (for
/// want of memory) ends here.
template <typename Function>
auto guarded(Function function) noexcept -> decltype(function()) {
  try {
    return function();
  } catch (const std::bad_alloc &) {
    return Error{ErrorCode::Exhausted, "out of memory"};
  } catch (const std::exception &error) {
    return Error{ErrorCode::Internal, error.what()};
  }
}

/// Clamps what callers give as size_t to the runtime's 32-bit counts.
u32 toCount(std::size_t value) {
  return u32(std::min<std::size_t>(value, std::numeric_limits<u32>::max()));
}

runtime::TextOptions toRuntime(const GenerateOptions &options) {
  runtime::TextOptions result;
  runtime::SamplerOptions &sampling = result.generate.sampling;
  sampling.temperature = options.temperature;
  sampling.topK = options.topK;
  sampling.topP = options.topP;
  sampling.minP = options.minP;
  sampling.repetitionPenalty = options.repetitionPenalty;
  sampling.presencePenalty = options.presencePenalty;
  sampling.frequencyPenalty = options.frequencyPenalty;
  sampling.penaltyWindow = options.penaltyWindow;
  sampling.bias = options.logitBias;
  sampling.seed = options.seed;
  result.generate.maxTokens = toCount(options.maxTokens);
  result.stops = options.stop;
  result.ignoreEnd = options.ignoreEnd;
  return result;
}

FinishReason toPublic(runtime::FinishReason reason) {
  switch (reason) {
  case runtime::FinishReason::Stop:
    return FinishReason::Stop;
  case runtime::FinishReason::Length:
    return FinishReason::Length;
  case runtime::FinishReason::Cancelled:
    break;
  }
  return FinishReason::Cancelled;
}

} // namespace

const char *version() noexcept { return LATHE_VERSION; }

Result<Model> Model::open(const std::string &path,
                          const ModelOptions &options) {
  return guarded([&]() -> Result<Model> {
    runtime::OpenOptions openOptions;
    openOptions.trustCode = options.trustCode;
    auto engine = runtime::Engine::open(path, openOptions);
    if (!engine)
      return toPublic(engine.error());
    auto loaded = runtime::LoadedEngine::load(std::move(*engine), options.isa);
    if (!loaded)
      return toPublic(loaded.error());
    auto text = runtime::TextModel::create(std::move(*loaded));
    if (!text)
      return toPublic(text.error());
    Model model;
    model.data = std::make_shared<ModelData>(ModelData{std::move(*text)});
    return model;
  });
}

std::string Model::name() const {
  return std::string(runtime::viewOf(data->manifestModel().name()));
}

std::string Model::architecture() const {
  return std::string(runtime::viewOf(data->manifestModel().architecture()));
}

std::string Model::target() const {
  return std::string(data->text->engine()->targetName());
}

std::size_t Model::context() const { return data->manifestModel().context(); }

std::size_t Model::vocabularySize() const {
  return data->manifestModel().vocab();
}

Result<std::vector<Token>> Model::tokenize(const std::string &text,
                                           bool addSpecial) const {
  return guarded([&]() -> Result<std::vector<Token>> {
    auto ids = data->text->tokenizer().encode(text, {.addSpecial = addSpecial});
    if (!ids)
      return toPublic(ids.error());
    return std::move(*ids);
  });
}

std::string Model::detokenize(const std::vector<Token> &tokens) const {
  return data->text->tokenizer().decode(tokens);
}

Result<std::vector<Token>>
Model::tokenizeChat(const std::vector<Message> &messages) const {
  return guarded([&]() -> Result<std::vector<Token>> {
    auto list = nlohmann::ordered_json::array();
    for (const Message &message : messages)
      list.push_back({{"role", message.role}, {"content", message.content}});
    auto ids = data->text->encodeChat(list);
    if (!ids)
      return toPublic(ids.error());
    return std::move(*ids);
  });
}

Session::Session(std::unique_ptr<SessionData> data) : data(std::move(data)) {}
Session::Session(Session &&) noexcept = default;
Session &Session::operator=(Session &&) noexcept = default;
Session::~Session() = default;

Result<Session> Session::create(const Model &model,
                                const SessionOptions &options) {
  return guarded([&]() -> Result<Session> {
    runtime::SessionOptions settings;
    settings.threads = options.threads;
    settings.context = toCount(options.context);
    settings.kvBytes = options.kvBytes;
    settings.names = {.context = "SessionOptions::context",
                      .chunk = "SessionOptions::context",
                      .kvBytes = "SessionOptions::kvBytes"};
    auto session =
        runtime::Session::create(model.data->text->engine(), settings);
    if (!session)
      return toPublic(session.error());
    return Session(std::make_unique<SessionData>(
        SessionData{model.data, std::move(*session)}));
  });
}

std::size_t Session::context() const { return data->session->context(); }

std::string Session::notice() const { return data->session->notice(); }

Result<Answer> Session::chat(const std::vector<Message> &messages,
                             const GenerateOptions &options,
                             const TextCallback &onText) {
  Model model;
  model.data = data->model;
  auto ids = model.tokenizeChat(messages);
  if (!ids)
    return ids.error();
  return generate(*ids, options, onText);
}

Result<Answer> Session::complete(const std::string &prompt,
                                 const GenerateOptions &options,
                                 const TextCallback &onText) {
  Model model;
  model.data = data->model;
  auto ids = model.tokenize(prompt, /*addSpecial=*/true);
  if (!ids)
    return ids.error();
  return generate(*ids, options, onText);
}

Result<Answer> Session::generate(const std::vector<Token> &prompt,
                                 const GenerateOptions &options,
                                 const TextCallback &onText) {
  return guarded([&]() -> Result<Answer> {
    runtime::TextVisitor visitor;
    if (onText)
      visitor = [&](std::string_view text) {
        return onText(std::string(text));
      };
    auto generated = runtime::generateText(*data->session, *data->model->text,
                                           prompt, toRuntime(options), visitor);
    if (!generated)
      return toPublic(generated.error());
    runtime::Generation &figures = generated->generation;
    return Answer{
        std::move(generated->text),       std::move(figures.tokens),
        toPublic(figures.reason),         figures.promptTokens,
        figures.prefillTokensPerSecond(), figures.decodeTokensPerSecond()};
  });
}

Result<std::vector<float>> Session::logits(const std::vector<Token> &tokens) {
  return guarded([&]() -> Result<std::vector<float>> {
    if (tokens.empty())
      return Error{ErrorCode::InvalidInput, "logits of no tokens"};
    auto evaluated = data->session->replaceBy(tokens);
    if (!evaluated)
      return toPublic(evaluated.error());
    auto row = data->session->logits();
    return std::vector<float>(row.begin(), row.end());
  });
}

} // namespace lathe
