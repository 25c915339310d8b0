/// \file
/// A plugin for other versions. Its code must never run.
#include "passes/Plugin.h"

#include <cstdlib>

namespace {
struct Constructor {
  Constructor() { std::abort(); }
} constructor;
} // namespace

extern "C" __attribute__((visibility("default")))
const lathe::passes::PluginVersion lathePluginApiVersion = {API, MAJOR, MINOR};
