# Usage: cmake -D BINARY_DIR=DIR -D GUARDS=FILE,... -P build_mutants.cmake
#
# Builds the programs of those guards that have to be checked. The target `mutants` builds those of
# all guards, and links them again after each change of the library.

cmake_minimum_required(VERSION 3.25)
include("${CMAKE_CURRENT_LIST_DIR}/guard_key.cmake")

string(REPLACE "," ";" GUARDS "${GUARDS}")
set(targets)
foreach(GUARD IN LISTS GUARDS)
  include("${GUARD}")
  guard_is_checked(checked)
  if(NOT checked)
    list(APPEND targets ${MUTANT_TARGET} ${PROGRAM_TARGET})
  endif()
endforeach()
if(NOT targets)
  message(STATUS "Nothing to build: every guard has been checked, and no input of a guard has changed.")
  return()
endif()
list(REMOVE_DUPLICATES targets)
# The environment variable CMAKE_BUILD_PARALLEL_LEVEL sets the number of jobs.
execute_process(COMMAND "${CMAKE_COMMAND}" --build "${BINARY_DIR}" --target ${targets} RESULT_VARIABLE ended)
if(NOT ended EQUAL 0)
  message(FATAL_ERROR "the mutants cannot be built")
endif()
