// The proposer of docs/add-a-proposer.md: it works, and it is what stands
// there.

#include "tests/examples/proposer/SuccessorProposer.h"

#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sstream>

using namespace lathe;
using namespace lathe::runtime;
using testing::ElementsAre;
using testing::IsEmpty;

namespace {

std::string readFile(const std::string &path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(ProposerExample, ProposesWhatFollowedLastTime) {
  SuccessorProposer proposer;
  auto sampler = Sampler::create({}, 100);
  auto ask = [&](Proposer::Sequence &sequence, std::vector<i32> tokens) {
    Proposer::Draft draft = {.sequence = &sequence,
                             .tokens = tokens,
                             .sampler = &*sampler,
                             .most = 3};
    proposer.propose({&draft, 1});
    return draft.proposed;
  };
  auto first = proposer.start("");
  EXPECT_THAT(ask(*first, {1, 2, 3}), IsEmpty());
  EXPECT_THAT(ask(*first, {1, 2, 3, 1}), ElementsAre(2, 3, 1));
  auto second = proposer.fork(*first);
  EXPECT_THAT(ask(*first, {1, 2, 3, 1, 5, 1}), ElementsAre(5, 1, 5));
  EXPECT_THAT(ask(*second, {1, 2, 3, 1, 2}), ElementsAre(3, 1, 2));
}

TEST(ProposerExample, IsWhatThePageShows) {
  std::string source = readFile("tests/examples/proposer/SuccessorProposer.h");
  size_t begin = source.find("// example\n") + 11;
  std::string code =
      source.substr(begin, source.find("// end of example") - begin);
  ASSERT_FALSE(code.empty());
  EXPECT_NE(readFile("docs/add-a-proposer.md").find("```cpp\n" + code + "```"),
            std::string::npos);
}

} // namespace
