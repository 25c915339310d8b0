// What requests show, and where they come from.
#include "runtime/serve/http/Credentials.h"
#include "runtime/serve/http/Origin.h"

#include <gtest/gtest.h>

namespace lathe::tests {

using namespace runtime::http;

/// "bearer KEY", "basic KEY", or "none".
static std::string parsed(std::string_view authorization) {
  auto shown = parseCredentials(authorization);
  if (!shown)
    return "none";
  return (shown->isBasic ? "basic " : "bearer ") + shown->key;
}

TEST(HttpCredentials, ABearersKeyIsTakenAsItIs) {
  EXPECT_EQ(parsed("Bearer key"), "bearer key");
  EXPECT_EQ(parsed("bEARER   a:b="), "bearer a:b=");
  for (const char *none : {"", "Bearer", "Bearerkey", "key", " Bearer key",
                           "Digest key", "Bear key"})
    EXPECT_EQ(parsed(none), "none") << none;
}

TEST(HttpCredentials, ABasicPasswordIsTheKey) {
  EXPECT_EQ(parsed("Basic OmtleQ=="), "basic key");
  // RFC 7617's own examples, section 2 and 2.1.
  EXPECT_EQ(parsed("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="), "basic open sesame");
  EXPECT_EQ(parsed("Basic dGVzdDoxMjPCow=="), "basic 123\xc2\xa3");
  EXPECT_EQ(parsed("bAsIc  dTo="), "basic ");              // "u:"
  EXPECT_EQ(parsed("Basic dTphOmI6"), "basic a:b:");       // "u:a:b:"
  EXPECT_EQ(parsed("Basic Og=="), "basic ");               // ":"
  EXPECT_EQ(parsed("Basic Oj4/+/8="), "basic >?\xfb\xff"); // + and /
}

TEST(HttpCredentials, MalformedBase64IsNone) {
  for (const char *none : {
           "Basic", "Basic ", "Basicdg==", "Basic =", "Basic ==", "Basic ====",
           "Basic OmtleQ",           // Without padding,
           "Basic OmtleQ=",          // with too little,
           "Basic OmtleQ===",        // too much,
           "Basic OmtleQ==OmtleQ==", // or in the middle.
           "Basic OmtleR==",         // A stray bit.
           "Basic Omtl eQ==", "Basic OmtleQ==\n", "Basic Omtl\xc3Q==",
           "Basic Oj4_-_8=", // The alphabet for URLs.
           "Basic :key",     // Not encoded.
           "Basic a2V5",     // "key", without a colon.
       })
    EXPECT_EQ(parsed(none), "none") << none;
  // No length makes it read beyond the end.
  std::string text = "Basic OmtleQ==";
  for (size_t size = 0; size < text.size(); ++size)
    parseCredentials(std::string(text.data(), size));
}

static bool isForeign(std::vector<Header> headers, const char *host = "h:80") {
  if (host)
    headers.emplace_back("Host", host);
  return isFromOtherPage({.method = "POST",
                          .path = "/",
                          .query = {},
                          .headers = std::move(headers)});
}

TEST(HttpOrigin, TheServersOwnPageIsNoOther) {
  EXPECT_FALSE(isForeign({}));
  EXPECT_FALSE(isForeign({{"origin", "http://h:8080"}}, "h:8080"));
  EXPECT_FALSE(isForeign({{"Origin", "HTTP://H:8080"}}, "h:8080"));
  EXPECT_FALSE(isForeign({{"Origin", "http://[::1]:8080"}}, "[::1]:8080"));
  // Behind a proxy with TLS.
  EXPECT_FALSE(isForeign({{"Origin", "https://h"}}, "h"));
  EXPECT_FALSE(isForeign({{"Origin", "https://h"}}, "h:443"));
  EXPECT_FALSE(isForeign({{"Origin", "http://h"}}, "h:80"));
  EXPECT_FALSE(isForeign({{"Sec-Fetch-Site", "same-origin"}}));
  EXPECT_FALSE(isForeign({{"Sec-Fetch-Site", "none"}}));
}

TEST(HttpOrigin, AllOthersAre) {
  for (const char *origin :
       {"null", "", "http://", "h:8080", "http://h", "http://h:80800",
        "http://h:808", "http://h:8081", "http://other:8080", "http://h.x:8080",
        "http://xh:8080", "http://h:8080/", "http://u@h:8080", "ftp://h:8080",
        "chrome-extension://h:8080", "http://h:8080 http://other",
        "http:h:8080"})
    EXPECT_TRUE(isForeign({{"Origin", origin}}, "h:8080")) << origin;
  // A scheme's own port is not the other one's.
  EXPECT_TRUE(isForeign({{"Origin", "http://h"}}, "h:443"));
  EXPECT_TRUE(isForeign({{"Origin", "https://h"}}, "h:80"));
  // Without a host there is nothing to be the same as.
  EXPECT_TRUE(isForeign({{"Origin", "http://h"}}, nullptr));
  EXPECT_TRUE(isForeign({{"Origin", "http://"}}, ""));
  EXPECT_TRUE(isForeign({{"Origin", "http://:80"}}, ":80"));
  // The second of two counts, too.
  EXPECT_TRUE(isForeign({{"Origin", "http://h"}, {"Origin", "http://o"}}, "h"));
  for (const char *site : {"cross-site", "same-site", "", "Same-Origin", "x"})
    EXPECT_TRUE(isForeign({{"sec-fetch-site", site}})) << site;
  EXPECT_TRUE(isForeign(
      {{"Origin", "http://h"}, {"Sec-Fetch-Site", "cross-site"}}, "h"));
}

} // namespace lathe::tests
