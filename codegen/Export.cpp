/// \file
/// The one symbol of liblathe-compiler.so.
#include "codegen/Compiler.h"

using namespace lathe::codegen;

extern "C" __attribute__((visibility("default"))) const CompilerApi *
latheCompiler() {
  static const CompilerApi api = {compilerApiVersion, &compile, &measure,
                                  &pipeline};
  return &api;
}
