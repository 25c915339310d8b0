/// \file
/// The answer to one request, between the threads that make it and the
/// connection that sends it.
#ifndef LATHE_RUNTIME_SERVE_HTTP_ANSWER_H
#define LATHE_RUNTIME_SERVE_HTTP_ANSWER_H

#include "runtime/serve/http/Http.h"

#include <mutex>
#include <optional>

namespace lathe::runtime::http {

/// Who sends an answer.
class AnswerOwner {
public:
  virtual ~AnswerOwner() = default;

  /// There is something new in the answer. From any thread; must not look at
  /// the answer before it returns.
  virtual void wake() = 0;
};

/// Collects what is to be sent, bounded, until the owner takes it. The owner
/// lives as long as it likes: what comes afterwards is dropped.
class Answer {
public:
  /// A stream fails once more than `unsentBytes` wait.
  Answer(std::weak_ptr<AnswerOwner> owner, u64 unsentBytes)
      : owner(std::move(owner)), unsentBytes(unsentBytes) {}

  /// The side of whoever answers, which it leaves when it is destroyed.
  static std::shared_ptr<Responder> responder(std::shared_ptr<Answer> answer);

  void reply(Reply whole);
  void startStream(std::string_view contentType);
  void write(std::string bytes);
  void finish();
  void onGone(std::function<void()> callback);
  /// Nobody will answer (any more): 500, or a stream without end.
  void abandon();

  /// What the owner takes to send it. Each thing is taken once.
  struct Taken {
    std::optional<Reply> whole;
    std::optional<std::string> streamType; ///< A stream begins.
    std::string bytes;                     ///< Of the stream.
    bool hasEnded = false;                 ///< Nothing comes after this.
    bool isCut = false;                    ///< And the stream lacks its end.
    bool hasFailed = false; ///< Too much waits; nothing else is set.
  };

  /// `sending` bytes are on their way and count as unsent; if there are any,
  /// nothing but hasFailed is looked at.
  Taken take(u64 sending);

  /// True once everything has been given, taken or not.
  bool hasEnded() const;

  /// The owner has sent all.
  void complete();

  /// The client is gone: calls the callback, unless it was complete.
  void vanish();

private:
  enum class Stage { Waiting, Streaming, Ended, Cut, Failed, Closed };

  bool hasEndedLocked() const {
    return stage == Stage::Ended || stage == Stage::Cut;
  }

  /// Wakes the owner, once until it takes. `lock` holds the mutex.
  void wake(std::unique_lock<std::mutex> &lock);

  const std::weak_ptr<AnswerOwner> owner;
  const u64 unsentBytes;

  mutable std::mutex mutex;
  Stage stage = Stage::Waiting;
  Taken waiting;
  u64 sending = 0;
  /// True at first: the owner looks by itself once the handler has returned.
  bool isAwake = true;
  bool isGone = false;
  std::function<void()> gone;
};

} // namespace lathe::runtime::http

#endif // LATHE_RUNTIME_SERVE_HTTP_ANSWER_H
