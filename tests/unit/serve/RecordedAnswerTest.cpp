#include "runtime/serve/RecordedAnswer.h"
#include "tests/unit/support/TempDir.h"

#include <cmath>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>

using namespace lathe;
using namespace lathe::runtime;
using namespace lathe::runtime::serve;
using lathe::tests::TempDir;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

RecordedAnswer makeAnswer() {
  return {.time = "2025-01-31T12:00:00.123Z",
          .callId = "req-1",
          .endpoint = "/v1/completions",
          .promptIndex = 1,
          .branch = 2,
          .branches = 3,
          .model = "tiny",
          .engineHash = std::string(64, 'e'),
          .target = "cpu:avx2",
          .prompt = {1, 2, 3},
          .sampling = {.temperature = 0.7f,
                       .topK = 40,
                       .topP = 0.95f,
                       .minP = 0.05f,
                       .repetitionPenalty = 1.1f,
                       .presencePenalty = 0.1f,
                       .frequencyPenalty = -0.3f,
                       .penaltyWindow = 0,
                       .bias = {{5, 1.5f},
                                {6, -std::numeric_limits<f32>::infinity()}},
                       .seed = ~u64(0)},
          .maxTokens = 100,
          .stopTokens = {9},
          .stopStrings = 2,
          .saltDigest = saltDigest("tenant"),
          .answer = {7, 8},
          .finish = EndReason::Stop,
          .promptText = "a\nb",
          .answerText = "c\xff"};
}

/// The error of a line in which `from` is replaced.
std::string errorOf(const std::string &from, const std::string &to) {
  std::string line = toLine(makeAnswer());
  size_t at = line.find(from);
  EXPECT_NE(at, line.npos) << line;
  auto read = fromLine(line.replace(at, from.size(), to));
  EXPECT_FALSE(read.has_value());
  return read ? "" : read.error().message;
}

TEST(RecordedAnswer, ReadsBackToTheSameBits) {
  RecordedAnswer answer = makeAnswer();
  std::string line = toLine(answer);
  EXPECT_EQ(line.find('\n'), line.npos);
  auto read = fromLine(line);
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(toLine(*read), line);
  EXPECT_EQ(read->prompt, answer.prompt);
  EXPECT_EQ(read->answer, answer.answer);
  EXPECT_EQ(read->finish, EndReason::Stop);
  EXPECT_EQ(read->sampling.temperature, 0.7f);
  EXPECT_EQ(read->sampling.frequencyPenalty, -0.3f);
  EXPECT_EQ(read->sampling.seed, ~u64(0));
  EXPECT_EQ(read->sampling.bias, answer.sampling.bias);
  EXPECT_EQ(read->promptText, "a\nb");
  EXPECT_EQ(read->answerText, "c\xef\xbf\xbd");
}

TEST(RecordedAnswer, TextAndSaltAreNotInItUnlessGiven) {
  RecordedAnswer answer = makeAnswer();
  EXPECT_EQ(answer.saltDigest.size(), 16u);
  EXPECT_EQ(saltDigest(""), "");
  EXPECT_NE(saltDigest("other"), answer.saltDigest);
  answer.promptText.reset();
  answer.answerText.reset();
  std::string line = toLine(answer);
  EXPECT_EQ(line.find("text"), line.npos);
  EXPECT_EQ(line.find("tenant"), line.npos);
}

TEST(RecordedAnswer, ErrorsNameTheField) {
  EXPECT_THAT(errorOf("\"seed\":18446744073709551615", "\"seed\":-1"),
              HasSubstr("\"seed\""));
  EXPECT_THAT(errorOf("\"top_k\":40", "\"top_k\":4294967296"),
              HasSubstr("\"top_k\""));
  EXPECT_THAT(errorOf("[1,2,3]", "[1,2,2147483648]"), HasSubstr("\"prompt\""));
  EXPECT_THAT(errorOf("[1,2,3]", "[1,-2]"), HasSubstr("\"prompt\""));
  EXPECT_THAT(errorOf("\"answer\":", "\"reply\":"), HasSubstr("\"answer\""));
  EXPECT_THAT(errorOf("\"stop\"", "\"tired\""), HasSubstr("\"finish\""));
  EXPECT_THAT(errorOf("[5,1.5]", "[5]"), HasSubstr("\"bias\""));
  EXPECT_THAT(errorOf("\"sampling\":{", "\"sampled\":{"),
              HasSubstr("\"temperature\""));
  EXPECT_THAT(errorOf("\"target\":\"cpu:avx2\"", "\"target\":2"),
              HasSubstr("\"target\""));
}

class RecordingTest : public testing::Test {
protected:
  Result<Recording> read(const std::string &text) {
    std::string path = dir.path("answers.jsonl");
    std::ofstream(path, std::ios::binary) << text;
    return readRecording(path);
  }

  TempDir dir;
  std::string line = toLine(makeAnswer()) + "\n";
};

TEST_F(RecordingTest, TornLinesAreLeftOut) {
  auto recording = read(line + line.substr(0, 50) + "\n\n" + line +
                        line.substr(0, line.size() / 2));
  ASSERT_TRUE(recording.has_value()) << recording.error().message;
  EXPECT_EQ(recording->answers.size(), 2u);
  EXPECT_EQ(recording->answers[1].line, 4u);
  EXPECT_THAT(recording->tornLines, ElementsAre(2, 5));
}

TEST_F(RecordingTest, AWholeLastLineNeedsNoNewline) {
  auto recording = read(line + line.substr(0, line.size() - 1));
  ASSERT_TRUE(recording.has_value());
  EXPECT_EQ(recording->answers.size(), 2u);
  EXPECT_TRUE(recording->tornLines.empty());
}

TEST_F(RecordingTest, ErrorsNameTheLine) {
  auto wrong = read(line + "{\"time\":3}\n" + line);
  ASSERT_FALSE(wrong.has_value());
  EXPECT_THAT(wrong.error().message, HasSubstr("line 2: \"time\""));
  auto empty = read("");
  ASSERT_FALSE(empty.has_value());
  EXPECT_THAT(empty.error().message, HasSubstr("no recorded answer"));
  EXPECT_FALSE(readRecording(dir.path("nowhere")).has_value());
}

} // namespace
