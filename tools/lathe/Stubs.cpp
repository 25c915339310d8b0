#include "tools/lathe/Command.h"
namespace lathe::tools {
void addBench(const CommandLine &) {}
void addEval(const CommandLine &) {}
} // namespace lathe::tools
