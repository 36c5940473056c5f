# In a second run, the README's program continues to count.

cmake_minimum_required(VERSION 3.25)

file(REMOVE_RECURSE "${FOLDER}")
file(MAKE_DIRECTORY "${FOLDER}")
foreach(count 2 4)
  execute_process(COMMAND "${PROGRAM}" WORKING_DIRECTORY "${FOLDER}" OUTPUT_VARIABLE output COMMAND_ERROR_IS_FATAL ANY)
  if(NOT output MATCHES "^writer: A text on owls, in short\\.\n[^\n]*has 25 bytes\n[^\n]*has 25 bytes\n{\"drafts_read\":${count}}\n$")
    message(FATAL_ERROR "Expected ${count} drafts read:\n${output}")
  endif()
endforeach()
file(REMOVE_RECURSE "${FOLDER}")
