#include "tools/lathe/Signer.h"

using namespace lathe;
using namespace lathe::tools;
using runtime::Trust;
using runtime::TrustState;

std::string_view tools::nameOf(TrustState state) {
  switch (state) {
  case TrustState::Own:
    return "own";
  case TrustState::Accepted:
    return "accepted";
  case TrustState::Unknown:
    return "unknown";
  case TrustState::Unsigned:
    return "unsigned";
  case TrustState::Bad:
    return "bad";
  }
  return "";
}

bool tools::hasKey(const Trust &trust) {
  return trust.state != TrustState::Unsigned;
}

std::string tools::describe(const Trust &trust) {
  switch (trust.state) {
  case TrustState::Own:
    return "signed with your key";
  case TrustState::Accepted:
    return fmt::format("signed with {}, which you accepted", trust.key.text());
  case TrustState::Unknown:
    return fmt::format("signed with {}, which you have not accepted",
                       trust.key.text());
  case TrustState::Unsigned:
    return "not signed";
  case TrustState::Bad:
    return fmt::format("its signature by {} does not fit", trust.key.text());
  }
  return "";
}
