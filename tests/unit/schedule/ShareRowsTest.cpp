#include "runtime/schedule/ShareRows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace lathe;
using namespace lathe::runtime;
using testing::ElementsAre;
using testing::IsEmpty;

namespace {

std::vector<u32> share(u32 rows, std::vector<u32> wants) {
  return shareRows(rows, wants);
}

TEST(ShareRows, EquallyAndNotMoreThanWanted) {
  EXPECT_THAT(share(100, {}), IsEmpty());
  EXPECT_THAT(share(100, {30}), ElementsAre(30));
  EXPECT_THAT(share(100, {300}), ElementsAre(100));
  EXPECT_THAT(share(100, {300, 300}), ElementsAre(50, 50));
  EXPECT_THAT(share(100, {300, 10, 300}), ElementsAre(45, 10, 45));
  EXPECT_THAT(share(100, {10, 20, 30}), ElementsAre(10, 20, 30));
  EXPECT_THAT(share(0, {10, 20}), ElementsAre(0, 0));
}

TEST(ShareRows, TheFirstNeverGoesWithout) {
  EXPECT_THAT(share(2, {9, 9, 9}), ElementsAre(2, 0, 0));
  EXPECT_THAT(share(1, {90, 2, 1}), ElementsAre(1, 0, 0));
  EXPECT_THAT(share(100, {300, 10, 300}), ElementsAre(45, 10, 45));
  EXPECT_THAT(share(11, {9, 9, 9}), ElementsAre(5, 3, 3));
  EXPECT_THAT(share(11, {3, 9, 9}), ElementsAre(3, 4, 4));
}

} // namespace
