# Fails if an object of a layer library needs a symbol that an engine's code
# object may not need. Arguments: NM, OBJECTS.
foreach(object IN LISTS OBJECTS)
  execute_process(COMMAND ${NM} --undefined-only --format=just-symbols ${object}
    OUTPUT_VARIABLE symbols RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${NM} failed on ${object}")
  endif()
  string(REGEX MATCHALL "[^\n]+" symbols "${symbols}")
  foreach(symbol IN LISTS symbols)
    # The tables of one layer name each other.
    if(NOT symbol MATCHES "^(memcpy|memmove|memset|_GLOBAL_OFFSET_TABLE_)$" AND
       NOT symbol MATCHES "^_ZN5lathe5tests")
      message(SEND_ERROR "${object} needs ${symbol}")
    endif()
  endforeach()
endforeach()
