// What test_instructions.py runs under callgrind: each counted case of the
// layer avx2 is called once as lathe_counted_call, the only code whose
// instructions count, and its name printed.
//   --compiler  prints what the kernels were compiled with, and nothing else

#include "tests/kernels/bench/BenchCases.h"

#include <cstdio>
#include <cstring>

using namespace lathe;
using namespace lathe::bench;

/// By this name callgrind knows it.
extern "C" [[gnu::noinline]] void
lathe_counted_call(const BenchCase &benchCase) {
  benchCase.call();
  // Not a tail call, which would leave the function before the kernel runs.
  asm volatile("" ::: "memory");
}

/// With the stack at the same place in a page, whatever the environment's size:
/// checks of whether two arrays overlap take more or fewer instructions.
[[gnu::noinline]] static void callFromPage(const BenchCase &benchCase) {
  alignas(4096) volatile u8 page[4096];
  page[0] = 0;
  lathe_counted_call(benchCase);
}

int main(int argc, char **argv) {
  if (argc == 2 && std::strcmp(argv[1], "--compiler") == 0) {
    std::puts(__VERSION__);
    return 0;
  }
  WeightMemory weights = makeWeights(mostWeightBytes);
  for (const NamedCase &named : casesOf(avx2::layer)) {
    if (!named.counted)
      continue;
    std::unique_ptr<BenchCase> benchCase = named.make(weights);
    benchCase->next();
    callFromPage(*benchCase);
    std::puts(named.name.c_str());
  }
  return 0;
}
