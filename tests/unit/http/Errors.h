/// \file
/// What every error over HTTP must look like.
#ifndef LATHE_TESTS_UNIT_HTTP_ERRORS_H
#define LATHE_TESTS_UNIT_HTTP_ERRORS_H

#include "tests/unit/http/Client.h"

namespace lathe::tests {

/// Expects {"error":{"message","type","param","code"}} and the usual headers.
void expectError(const Answer &answer, u32 status);

} // namespace lathe::tests

#endif // LATHE_TESTS_UNIT_HTTP_ERRORS_H
