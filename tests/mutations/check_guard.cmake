# Usage: cmake -D MECHANISM=NAME -D PROGRAM=FILE -D CASE=FILTER -D WORDS=REGEX -P check_guard.cmake
#
# A guard has to fail for the reason that it is there for, and says WORDS then; or, where those are HANGS, does not end.

set(guard "${PROGRAM}" "--run_test=${CASE}" --color_output=no)
set(ENV{TROUPE_BREAK} "")
execute_process(COMMAND ${guard} TIMEOUT 120 RESULT_VARIABLE ended OUTPUT_VARIABLE told ERROR_VARIABLE told)
if(NOT ended EQUAL 0)
  message(FATAL_ERROR "the guard does not pass (${ended}):\n${told}")
endif()

set(ENV{TROUPE_BREAK} "${MECHANISM}")
execute_process(COMMAND ${guard} TIMEOUT 20 RESULT_VARIABLE ended OUTPUT_VARIABLE told ERROR_VARIABLE told)
if(ended EQUAL 0)
  message(FATAL_ERROR "'${MECHANISM}' is broken, and ${CASE} does not notice")
endif()
if(told MATCHES "there is no mechanism")
  message(FATAL_ERROR "${told}")
endif()
if(WORDS STREQUAL "HANGS")
  if(NOT ended MATCHES "timeout")
    message(FATAL_ERROR "'${MECHANISM}' is broken, and ${CASE} ends (${ended}):\n${told}")
  endif()
elseif(ended MATCHES "timeout" OR NOT told MATCHES "${WORDS}")
  message(FATAL_ERROR "'${MECHANISM}' is broken, and nobody says '${WORDS}' (${ended}):\n${told}")
endif()
string(REGEX MATCH "[^\n]*error: in[^\n]*" first "${told}")
message(STATUS "noticed (${ended}): ${first}")
