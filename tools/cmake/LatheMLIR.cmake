# Finds MLIR, LLVM, Clang and lld 19 and declares how the tree builds with them.

find_package(MLIR 19.1 QUIET CONFIG HINTS /usr/lib/llvm-19/lib/cmake/mlir)
if(NOT MLIR_FOUND)
  message(FATAL_ERROR "The compiler needs MLIR, LLVM, Clang and lld 19 (Debian: "
    "libmlir-19-dev mlir-19-tools llvm-19-dev libclang-19-dev liblld-19-dev). "
    "To build only the runtime: cmake --preset runtime")
endif()
find_program(LATHE_TBLGEN mlir-tblgen HINTS ${LLVM_TOOLS_BINARY_DIR} REQUIRED)
set(LATHE_GENERATED ${PROJECT_BINARY_DIR}/generated)

# Debian's MLIR and LLVM as shared libraries only: a static MLIR library beside
# them would double every registry, and pass plugins would not load.
add_library(lathe-mlir INTERFACE)
target_include_directories(lathe-mlir SYSTEM INTERFACE
  ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS} ${LATHE_GENERATED})
# ccache keeps what uses the precompiled header only without its time stamp.
target_compile_options(lathe-mlir INTERFACE "SHELL:-Xclang -fno-pch-timestamp")
target_link_directories(lathe-mlir INTERFACE ${LLVM_LIBRARY_DIRS})
target_link_libraries(lathe-mlir INTERFACE lathe-flags -lMLIR -lLLVM)

# lathe_add_mlir_library(NAME SOURCES ... DEPS ...): like lathe_add_library,
# with MLIR and the shared precompiled header.
function(lathe_add_mlir_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  lathe_add_library(${name} SOURCES ${ARG_SOURCES} DEPS lathe-mlir ${ARG_DEPS})
  target_precompile_headers(${name} REUSE_FROM lathe-mlir-pch)
endfunction()

# lathe_tablegen(OUTPUTS_VAR OUT TD FLAGS...): runs mlir-tblgen on TD (both
# relative to the project and to the generated folder).
function(lathe_tablegen outputs out td)
  get_filename_component(dir ${LATHE_GENERATED}/${out} DIRECTORY)
  file(MAKE_DIRECTORY ${dir})
  add_custom_command(
    OUTPUT ${LATHE_GENERATED}/${out}
    COMMAND ${LATHE_TBLGEN} ${ARGN} -I${PROJECT_SOURCE_DIR} -I${MLIR_INCLUDE_DIRS}
            ${PROJECT_SOURCE_DIR}/${td} -o ${LATHE_GENERATED}/${out}
            -d ${LATHE_GENERATED}/${out}.d --write-if-changed
    DEPENDS ${PROJECT_SOURCE_DIR}/${td}
    DEPFILE ${LATHE_GENERATED}/${out}.d
    VERBATIM)
  set(${outputs} ${${outputs}} ${LATHE_GENERATED}/${out} PARENT_SCOPE)
endfunction()
