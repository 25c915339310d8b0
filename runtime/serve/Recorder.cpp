#include "runtime/serve/Recorder.h"

#include "runtime/serve/RecordedAnswer.h"
#include "runtime/serve/UtcTime.h"

#include <utility>

namespace lathe::runtime::serve {

struct Recorder::Shared {
  RecorderOptions options;
  std::unique_ptr<LineFile> file;
};

/// Collects the answers of one request.
class Recorder::Tape : public RequestObserver {
public:
  Tape(std::shared_ptr<Shared> shared, const ObservedRequest &observed)
      : shared(std::move(shared)), answers(observed.request.branches) {
    const RecorderOptions &options = this->shared->options;
    const Request &request = observed.request;
    common.callId = observed.callId;
    common.endpoint = observed.endpoint;
    common.promptIndex = observed.promptIndex;
    common.branches = request.branches;
    common.model = options.model;
    common.engineHash = options.engineHash;
    common.target = options.target;
    common.prompt = request.prompt;
    common.sampling = request.sampling;
    common.maxTokens = request.maxTokens;
    common.stopTokens = request.stopTokens;
    common.stopStrings = u32(observed.stops.size());
    common.saltDigest = saltDigest(request.cacheSalt);
    if (options.text)
      common.promptText = observed.promptText;
  }

  void onToken(u32 branch, i32 token, Instant /*at*/) override {
    answers[branch].tokens.push_back(token);
  }

  void onText(u32 branch, std::string_view text) override {
    if (shared->options.text)
      answers[branch].text += text;
  }

  void onEnd(u32 branch, const End &end, const RequestFacts &) override {
    RecordedAnswer &answer = common;
    answer.time = utcTime(std::chrono::system_clock::now());
    answer.branch = branch;
    answer.answer = std::exchange(answers[branch].tokens, {});
    if (shared->options.text)
      answer.answerText = std::exchange(answers[branch].text, {});
    answer.finish = end.reason;
    shared->file->append(toLine(answer));
  }

private:
  struct Answer {
    std::vector<i32> tokens;
    std::string text;
  };

  std::shared_ptr<Shared> shared;
  RecordedAnswer common; ///< What all answers have in common.
  std::vector<Answer> answers;
};

Recorder::Recorder(std::shared_ptr<Shared> shared)
    : shared(std::move(shared)) {}

Result<std::shared_ptr<Recorder>> Recorder::open(RecorderOptions options) {
  auto file = LineFile::open(options.path, options.warn);
  if (!file)
    return failFrom(file);
  auto shared = std::make_shared<Shared>(std::move(options), std::move(*file));
  return std::shared_ptr<Recorder>(new Recorder(std::move(shared)));
}

std::shared_ptr<RequestObserver>
Recorder::onRequest(const ObservedRequest &request) {
  return std::make_shared<Tape>(shared, request);
}

} // namespace lathe::runtime::serve
