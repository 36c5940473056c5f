# Usage: cmake -D GUARD=FILE -P check_guard.cmake
#
# GUARD sets PROGRAM, MUTANT, ARGUMENTS and WORDS; mutants.cmake writes it. PROGRAM must pass.
# MUTANT, the same program with the patch of MECHANISM, must fail and print text that matches WORDS;
# if WORDS is HANGS, it must not end. A guard is not run again until one of its inputs changes.

cmake_minimum_required(VERSION 3.25)
include("${CMAKE_CURRENT_LIST_DIR}/guard_key.cmake")

include("${GUARD}")
guard_is_checked(checked)
if(checked)
  message(STATUS "not run: the guard has noticed '${MECHANISM}.patch', and no input of the guard has changed since")
  return()
endif()

# Before the run: an edit during it must not count as checked.
guard_key(key)
separate_arguments(ARGUMENTS)
execute_process(COMMAND "${PROGRAM}" ${ARGUMENTS} TIMEOUT 120 RESULT_VARIABLE ended OUTPUT_VARIABLE told ERROR_VARIABLE told)
if(NOT ended EQUAL 0)
  message(FATAL_ERROR "the guard does not pass (${ended}):\n${told}")
endif()

set(limit 120)
if(WORDS STREQUAL "HANGS")
  set(limit 20)
endif()
# Some guards wait a short time for an answer that must not come, which a busy machine may delay; a
# data race needs two threads at the same moment. So there are several attempts.
foreach(attempt RANGE 1 30)
  execute_process(
    COMMAND "${MUTANT}" ${ARGUMENTS}
    TIMEOUT ${limit}
    RESULT_VARIABLE ended
    OUTPUT_VARIABLE told
    ERROR_VARIABLE told)
  if(NOT ended EQUAL 0)
    break()
  endif()
endforeach()
if(ended EQUAL 0)
  message(FATAL_ERROR "'${MECHANISM}' is broken, and ${ARGUMENTS} does not notice")
endif()
if(WORDS STREQUAL "HANGS")
  if(NOT ended MATCHES "timeout")
    message(FATAL_ERROR "'${MECHANISM}' is broken, and ${ARGUMENTS} ends (${ended}):\n${told}")
  endif()
elseif(ended MATCHES "timeout" OR NOT told MATCHES "${WORDS}")
  message(FATAL_ERROR "'${MECHANISM}' is broken, and the guard does not print '${WORDS}' (${ended}):\n${told}")
endif()
file(WRITE "${STAMP}" "${key}")
string(REGEX MATCH "[^\n]*error: in[^\n]*" first "${told}")
message(STATUS "noticed (${ended}): ${first}")
