#include "runtime/serve/http/Answer.h"
#include "runtime/serve/http/ErrorReply.h"

#include <utility>

namespace lathe::runtime::http {

namespace {

class AnswerResponder final : public Responder {
public:
  explicit AnswerResponder(std::shared_ptr<Answer> answer)
      : answer(std::move(answer)) {}
  ~AnswerResponder() override { answer->abandon(); }

  void reply(Reply reply) override { answer->reply(std::move(reply)); }
  void startStream(std::string_view contentType) override {
    answer->startStream(contentType);
  }
  void write(std::string bytes) override { answer->write(std::move(bytes)); }
  void finish() override { answer->finish(); }
  void onGone(std::function<void()> gone) override {
    answer->onGone(std::move(gone));
  }

private:
  std::shared_ptr<Answer> answer;
};

} // namespace

std::shared_ptr<Responder> Answer::responder(std::shared_ptr<Answer> answer) {
  return std::make_shared<AnswerResponder>(std::move(answer));
}

void Answer::wake(std::unique_lock<std::mutex> &lock) {
  if (std::exchange(isAwake, true))
    return;
  lock.unlock();
  if (auto there = owner.lock())
    there->wake();
}

void Answer::reply(Reply whole) {
  std::unique_lock lock(mutex);
  if (stage != Stage::Waiting)
    return;
  waiting.whole = std::move(whole);
  stage = Stage::Ended;
  wake(lock);
}

void Answer::startStream(std::string_view contentType) {
  std::unique_lock lock(mutex);
  if (stage != Stage::Waiting)
    return;
  waiting.streamType = contentType;
  stage = Stage::Streaming;
  wake(lock);
}

void Answer::write(std::string bytes) {
  std::unique_lock lock(mutex);
  if (stage != Stage::Streaming || bytes.empty())
    return;
  if (waiting.bytes.empty())
    waiting.bytes = std::move(bytes);
  else
    waiting.bytes += bytes;
  if (waiting.bytes.size() + sending > unsentBytes)
    stage = Stage::Failed;
  wake(lock);
}

void Answer::finish() {
  std::unique_lock lock(mutex);
  if (stage != Stage::Streaming)
    return;
  stage = Stage::Ended;
  wake(lock);
}

void Answer::onGone(std::function<void()> callback) {
  std::unique_lock lock(mutex);
  if (stage != Stage::Closed) {
    gone = std::move(callback);
    return;
  }
  if (!isGone)
    return;
  lock.unlock();
  callback();
}

void Answer::abandon() {
  std::unique_lock lock(mutex);
  if (stage == Stage::Waiting) {
    waiting.whole = errorReply(500, "the server gave no answer");
    stage = Stage::Ended;
  } else if (stage == Stage::Streaming) {
    stage = Stage::Cut;
  } else {
    return;
  }
  wake(lock);
}

Answer::Taken Answer::take(u64 onTheirWay) {
  std::lock_guard lock(mutex);
  isAwake = false;
  sending = onTheirWay;
  Taken taken;
  taken.hasFailed = stage == Stage::Failed;
  if (taken.hasFailed || onTheirWay != 0)
    return taken;
  taken = std::exchange(waiting, Taken{});
  taken.hasEnded = hasEndedLocked();
  taken.isCut = stage == Stage::Cut;
  sending = taken.bytes.size();
  return taken;
}

bool Answer::hasEnded() const {
  std::lock_guard lock(mutex);
  return hasEndedLocked();
}

void Answer::complete() {
  std::function<void()> dropped;
  std::lock_guard lock(mutex);
  stage = Stage::Closed;
  dropped = std::move(gone);
}

void Answer::vanish() {
  std::function<void()> callback;
  {
    std::lock_guard lock(mutex);
    if (stage == Stage::Closed)
      return;
    stage = Stage::Closed;
    isGone = true;
    waiting = {};
    callback = std::move(gone);
  }
  if (callback)
    callback();
}

} // namespace lathe::runtime::http
