/// \file
/// `lathe serve --record FILE`: keeps every answer, so that `lathe replay` can
/// make it again.
#ifndef LATHE_RUNTIME_SERVE_RECORDER_H
#define LATHE_RUNTIME_SERVE_RECORDER_H

#include "runtime/serve/LineFile.h"
#include "runtime/serve/Observer.h"

#include <memory>
#include <string>

namespace lathe::runtime::serve {

struct RecorderOptions {
  std::string path = {};
  /// Keep prompts and answers as text too, not as ids alone.
  bool text = false;
  /// What RecordedAnswer says of every answer.
  std::string model = {}, engineHash = {}, target = {};
  /// Told once, from any thread, if lines cannot be written; may be null.
  LineFile::Warn warn = nullptr;
};

/// Appends a line (RecordedAnswer.h) per answer when it ends. A failed write is
/// warned of once and costs the lines that it concerns; serving goes on.
class Recorder : public Observer {
public:
  /// Errors: those of LineFile::open().
  static Result<std::shared_ptr<Recorder>> open(RecorderOptions options);

  std::shared_ptr<RequestObserver>
  onRequest(const ObservedRequest &request) override;
  void onError(std::string_view, std::string_view, u32,
               std::string_view) override {}

private:
  struct Shared;
  class Tape;

  explicit Recorder(std::shared_ptr<Shared> shared);

  std::shared_ptr<Shared> shared; ///< With the requests' tapes.
};

} // namespace lathe::runtime::serve

#endif // LATHE_RUNTIME_SERVE_RECORDER_H
