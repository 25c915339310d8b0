# Finds MLIR, LLVM, Clang and lld 19 and sets up TableGen.

find_package(MLIR 19 QUIET CONFIG
  HINTS /usr/lib/llvm-19/lib/cmake/mlir)
if(NOT MLIR_FOUND)
  message(FATAL_ERROR "The compiler needs MLIR 19 (Debian: libmlir-19-dev mlir-19-tools "
    "llvm-19-dev libclang-19-dev liblld-19-dev). To build only the runtime: "
    "cmake --preset runtime")
endif()
list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
include(TableGen)
include(AddLLVM)
include(AddMLIR)

# Debian's MLIR and LLVM as shared libraries only: a static MLIR library beside
# them would double every registry, and pass plugins would not load.
add_library(lathe-mlir INTERFACE)
target_include_directories(lathe-mlir SYSTEM INTERFACE
  ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
target_compile_definitions(lathe-mlir INTERFACE ${LLVM_DEFINITIONS})
target_link_directories(lathe-mlir INTERFACE ${LLVM_LIBRARY_DIRS})
target_link_libraries(lathe-mlir INTERFACE lathe-flags -lMLIR -lLLVM)

# lathe_add_mlir_library(NAME SOURCES ... DEPS ...): like lathe_add_library,
# with MLIR and the shared precompiled header.
function(lathe_add_mlir_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  lathe_add_library(${name} SOURCES ${ARG_SOURCES} DEPS lathe-mlir ${ARG_DEPS})
  target_precompile_headers(${name} REUSE_FROM lathe-mlir-pch)
endfunction()
