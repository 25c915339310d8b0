#include "runtime/serve/Recorder.h"
#include "runtime/serve/ObserverList.h"
#include "runtime/serve/RecordedAnswer.h"
#include "tests/unit/support/TempDir.h"

#include <csignal>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

using namespace lathe;
using namespace lathe::runtime;
using namespace lathe::runtime::serve;
using lathe::tests::TempDir;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

class RecorderTest : public testing::Test {
protected:
  std::shared_ptr<Recorder> open(bool text = false) {
    auto recorder = Recorder::open({.path = path,
                                    .text = text,
                                    .model = "tiny",
                                    .engineHash = "0123",
                                    .target = "cpu:generic",
                                    .warn = [this](const std::string &warning) {
                                      warnings.push_back(warning);
                                    }});
    EXPECT_TRUE(recorder.has_value()) << recorder.error().message;
    return *recorder;
  }

  /// Records a request with as many answers as it has branches.
  void record(Observer &observer, const Request &request,
              EndReason reason = EndReason::Length) {
    std::vector<std::string> stops = {"x"};
    auto tape = observer.onRequest({.callId = "call",
                                    .endpoint = "/v1/completions",
                                    .promptIndex = 4,
                                    .request = request,
                                    .promptText = "hello",
                                    .stops = stops});
    for (u32 branch = 0; branch < request.branches; ++branch)
      for (i32 token : {20, 21}) {
        tape->onToken(branch, token + i32(branch), 1);
        tape->onText(branch, "t");
      }
    for (u32 branch = 0; branch < request.branches; ++branch)
      tape->onEnd(branch, {.reason = reason}, {});
  }

  TempDir dir;
  std::string path = dir.path("answers.jsonl");
  std::vector<std::string> warnings;
  Request request{.prompt = {1, 2},
                  .sampling = {.seed = 7},
                  .maxTokens = 2,
                  .branches = 2,
                  .cacheSalt = "tenant"};
};

TEST_F(RecorderTest, EachAnswerIsALine) {
  record(*open(), request, EndReason::Stop);
  auto recording = readRecording(path);
  ASSERT_TRUE(recording.has_value()) << recording.error().message;
  ASSERT_EQ(recording->answers.size(), 2u);
  const RecordedAnswer &second = recording->answers[1].answer;
  EXPECT_EQ(second.branch, 1u);
  EXPECT_EQ(second.branches, 2u);
  EXPECT_EQ(second.promptIndex, 4u);
  EXPECT_EQ(second.callId, "call");
  EXPECT_EQ(second.model, "tiny");
  EXPECT_EQ(second.engineHash, "0123");
  EXPECT_EQ(second.target, "cpu:generic");
  EXPECT_THAT(second.prompt, ElementsAre(1, 2));
  EXPECT_THAT(second.answer, ElementsAre(21, 22));
  EXPECT_EQ(second.sampling.seed, 7u);
  EXPECT_EQ(second.stopStrings, 1u);
  EXPECT_EQ(second.finish, EndReason::Stop);
  EXPECT_EQ(second.saltDigest, saltDigest("tenant"));
  EXPECT_FALSE(second.promptText.has_value());
  EXPECT_TRUE(second.time.ends_with("Z"));
  struct stat status;
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST_F(RecorderTest, TextIsKeptIfWanted) {
  record(*open(/*text=*/true), request);
  auto recording = readRecording(path);
  ASSERT_TRUE(recording.has_value());
  EXPECT_EQ(recording->answers[0].answer.promptText, "hello");
  EXPECT_EQ(recording->answers[1].answer.answerText, "tt");
}

TEST_F(RecorderTest, AppendsBehindALineThatACrashCut) {
  record(*open(), request);
  std::ofstream(path, std::ios::app) << "{\"time\":\"20";
  record(*open(), request);
  auto recording = readRecording(path);
  ASSERT_TRUE(recording.has_value()) << recording.error().message;
  EXPECT_EQ(recording->answers.size(), 4u);
  EXPECT_THAT(recording->tornLines, ElementsAre(3));
}

TEST_F(RecorderTest, AFullDiskIsWarnedOfOnceAndTearsNoLine) {
  // A limit on the file's size stands for the disk's end.
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  {
    auto recorder = open();
    record(*recorder, request);
    recorder.reset(); // written
    struct stat status;
    ASSERT_EQ(stat(path.c_str(), &status), 0);
    rlimit limit = before;
    limit.rlim_cur = rlim_t(status.st_size) + 100;
    recorder = open();
    setrlimit(RLIMIT_FSIZE, &limit);
    for (int i = 0; i < 3; ++i)
      record(*recorder, request);
  }
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("File too large")));
  record(*open(), request);
  auto recording = readRecording(path);
  ASSERT_TRUE(recording.has_value()) << recording.error().message;
  EXPECT_EQ(recording->answers.size(), 4u);
  EXPECT_TRUE(recording->tornLines.empty());
}

TEST_F(RecorderTest, AFileHasOneWriterAndIsAFile) {
  auto recorder = open();
  auto second = Recorder::open({.path = path});
  ASSERT_FALSE(second.has_value());
  EXPECT_THAT(second.error().message, HasSubstr("another process"));
  EXPECT_FALSE(Recorder::open({.path = dir.path("no/where")}).has_value());
  auto device = Recorder::open({.path = "/dev/null"});
  ASSERT_FALSE(device.has_value());
  EXPECT_THAT(device.error().message, HasSubstr("no regular file"));
}

/// Interested in nothing.
class Bored : public Observer {
public:
  std::shared_ptr<RequestObserver> onRequest(const ObservedRequest &) override {
    return nullptr;
  }
  void onError(std::string_view callId, std::string_view, u32 status,
               std::string_view) override {
    errors.push_back(std::string(callId) + std::to_string(status));
  }
  std::vector<std::string> errors;
};

TEST_F(RecorderTest, ListsTellAllWhoAreInterested) {
  auto bored = std::make_shared<Bored>();
  auto list = observeAll({bored, nullptr, open()});
  record(*list, request);
  list->onError("call", "/v1/completions", 429, "full");
  list.reset();
  EXPECT_EQ(readRecording(path)->answers.size(), 2u);
  EXPECT_THAT(bored->errors, ElementsAre("call429"));
  EXPECT_EQ(observeAll({bored})->onRequest({.callId = {},
                                            .endpoint = {},
                                            .request = request,
                                            .promptText = {},
                                            .stops = {}}),
            nullptr);
}

} // namespace
