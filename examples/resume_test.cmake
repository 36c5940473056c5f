# Kills the pipeline behind each of its events. The next run must find all acknowledged events, and
# end like an undisturbed run.

cmake_minimum_required(VERSION 3.25)

file(REMOVE_RECURSE "${FOLDER}")
file(MAKE_DIRECTORY "${FOLDER}")

# play(STORE [ARGUMENT...]): runs the program; sets `status`, and from its output `found`,
# `acknowledged` and `done`.
function(play store)
  execute_process(COMMAND "${PROGRAM}" --store "sqlite:${FOLDER}/${store}.db" ${ARGN}
                  OUTPUT_VARIABLE output RESULT_VARIABLE status)
  if(NOT output MATCHES "^Found [0-9]+ events:\n(.*)Carrying on:\n((  [^\n]*\n)*)(Done: [^\n]*\n)?$")
    message(FATAL_ERROR "${store} ended with ${status} and this output:\n${output}")
  endif()
  set(status "${status}" PARENT_SCOPE)
  set(found "${CMAKE_MATCH_1}" PARENT_SCOPE)
  set(acknowledged "${CMAKE_MATCH_2}" PARENT_SCOPE)
  set(done "${CMAKE_MATCH_4}" PARENT_SCOPE)
endfunction()

play(undisturbed)
set(expected_events "${acknowledged}")
set(expected "${done}")
if(NOT status EQUAL 0 OR expected STREQUAL "")
  message(FATAL_ERROR "The undisturbed run ended with ${status}.")
endif()
string(REGEX MATCHALL "\n" lines "${expected_events}")
list(LENGTH lines events)

foreach(count RANGE 1 ${events})
  play(killed_${count} --kill-after ${count})
  # A number would be an exit code; a killed program has none.
  if(status MATCHES "^[0-9]+$" OR NOT done STREQUAL "")
    message(FATAL_ERROR "Killed behind event ${count}, it ended with ${status}.")
  endif()
  set(seen "${acknowledged}")
  play(killed_${count})
  # These events follow the user's message.
  string(FIND "${found}" "  user: Go!\n${seen}" position)
  if(NOT position EQUAL 0)
    message(FATAL_ERROR "Acknowledged before the kill:\n${seen}Found after it:\n${found}")
  endif()
  string(REPLACE "  user: Go!\n" "" before "${found}")
  if(NOT status EQUAL 0 OR NOT "${before}${acknowledged}" STREQUAL expected_events OR NOT done STREQUAL expected)
    message(FATAL_ERROR "Killed behind event ${count} and run again, it ended with ${status} at\n"
                        "${before}${acknowledged}${done}undisturbed at\n${expected_events}${expected}")
  endif()
endforeach()
file(REMOVE_RECURSE "${FOLDER}")
