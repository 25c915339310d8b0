# The flags every target shares, and the two functions that all folders use to
# declare libraries and tests.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)

find_program(LATHE_CCACHE ccache)
if(LATHE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER ${LATHE_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${LATHE_CCACHE})
endif()

add_library(lathe-flags INTERFACE)
target_include_directories(lathe-flags INTERFACE ${PROJECT_SOURCE_DIR})
# One FMA is written as one; nothing may be contracted or reassociated behind
# our back (docs/numerics.md).
target_compile_options(lathe-flags INTERFACE
  -ffp-contract=off -fno-fast-math -Wall -Wextra -Wno-unused-parameter
  -fvisibility-inlines-hidden)
if(LATHE_SANITIZE)
  target_compile_options(lathe-flags INTERFACE
    -fsanitize=address,undefined -fno-sanitize-recover=all
    -fno-omit-frame-pointer)
  target_link_options(lathe-flags INTERFACE -fsanitize=address,undefined)
endif()
if(LATHE_SANITIZE_THREADS)
  target_compile_options(lathe-flags INTERFACE
    -fsanitize=thread -fno-omit-frame-pointer)
  target_link_options(lathe-flags INTERFACE -fsanitize=thread)
endif()

# lathe_add_library(NAME SOURCES a.cpp b.cpp DEPS x y): a static library of one
# folder. Includes are written from the project root.
function(lathe_add_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC lathe-flags ${ARG_DEPS})
endfunction()

# lathe_add_unit_test(NAME SOURCES ... DEPS ... [LABELS fast] [ENVIRONMENT ...]):
# a GoogleTest binary, one ctest entry.
function(lathe_add_unit_test name)
  cmake_parse_arguments(ARG "" "LABELS;TIMEOUT" "SOURCES;DEPS;ENVIRONMENT" ${ARGN})
  if(NOT ARG_LABELS)
    set(ARG_LABELS fast)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  find_package(GTest REQUIRED)
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE lathe-flags ${ARG_DEPS} GTest::gtest GTest::gmock GTest::gtest_main)
  add_test(NAME ${name} COMMAND ${name} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES LABELS ${ARG_LABELS} TIMEOUT ${ARG_TIMEOUT}
    ENVIRONMENT "LATHE_SOURCE_DIR=${PROJECT_SOURCE_DIR};LATHE_BINARY_DIR=${CMAKE_BINARY_DIR};${ARG_ENVIRONMENT}")
endfunction()

# Adds every direct subdirectory that has a CMakeLists.txt, in name order.
function(lathe_add_subdirectories)
  file(GLOB lists CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} */CMakeLists.txt)
  list(SORT lists)
  foreach(list ${lists})
    get_filename_component(dir ${list} DIRECTORY)
    add_subdirectory(${dir})
  endforeach()
endfunction()
