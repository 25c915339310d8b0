#include "tools/lathe/Command.h"
namespace lathe::tools {
void addBench(const CommandLine &) {}
void addEval(const CommandLine &) {}
void addTokenize(const CommandLine &) {}
void addInspect(const CommandLine &) {}
void addVerify(const CommandLine &) {}
void addTrust(const CommandLine &) {}
void addCompletion(const CommandLine &) {}
} // namespace lathe::tools
