#include "tools/lathe/Command.h"
namespace lathe::tools {
void addEval(const CommandLine &) {}
}
