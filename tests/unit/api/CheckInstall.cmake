# Installs the runtime component, builds the example against it as a user does
# and runs it; looks at what the library needs and shows.

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE rc OUTPUT_VARIABLE out
    ERROR_VARIABLE out)
  if(NOT rc EQUAL 0)
    message(FATAL_ERROR "${ARGN}\nfailed (${rc}):\n${out}")
  endif()
  set(out "${out}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${SCRATCH})
run(${CMAKE_COMMAND} --install ${BUILD} --component runtime
  --prefix ${SCRATCH}/prefix)
run(${CMAKE_COMMAND} -S ${EXAMPLE} -B ${SCRATCH}/build -G ${GENERATOR}
  -DCMAKE_PREFIX_PATH=${SCRATCH}/prefix -DCMAKE_CXX_COMPILER=${COMPILER}
  -DCMAKE_CXX_STANDARD=17 -DCMAKE_CXX_EXTENSIONS=OFF
  -DCMAKE_CXX_FLAGS=-Wall\ -Wextra\ -Werror)
run(${CMAKE_COMMAND} --build ${SCRATCH}/build)

execute_process(COMMAND ${SCRATCH}/build/ask /nonexistent.lathe hello
  RESULT_VARIABLE rc OUTPUT_VARIABLE out ERROR_VARIABLE out)
if(NOT rc EQUAL 1 OR NOT out MATCHES "^ask: .*nonexistent\\.lathe")
  message(FATAL_ERROR "the example said (${rc}): ${out}")
endif()

# The runtime needs no compiler, and installs small.
run(${READELF} -d ${LIBRARY})
if(out MATCHES "NEEDED[^\n]*(LLVM|MLIR|clang)")
  message(FATAL_ERROR "the runtime links the compiler's libraries:\n${out}")
endif()
file(SIZE ${LIBRARY} bytes)
if(bytes GREATER 20000000)
  message(FATAL_ERROR "the library has ${bytes} bytes, expected <= 20000000")
endif()

# It shows the public interface and nothing else of its own or of others.
run(${NM} -DC --defined-only ${LIBRARY})
string(REPLACE "\n" ";" lines "${out}")
foreach(line IN LISTS lines)
  if(line MATCHES " [TBDR] " AND
     NOT line MATCHES " lathe::(version|Model::|Session::)")
    message(FATAL_ERROR "exported: ${line}")
  endif()
endforeach()

# The header stands on the standard library alone.
file(STRINGS ${HEADER} includes REGEX "^#include")
foreach(line IN LISTS includes)
  if(NOT line MATCHES "^#include <[a-z]+>$")
    message(FATAL_ERROR "lathe.h: ${line}")
  endif()
endforeach()
