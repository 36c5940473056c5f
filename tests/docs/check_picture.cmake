# docs/picture/make draws a run of the pipeline, and the picture that the README shows has the same rows.
#
# PROGRAM: troupe. SOURCE_DIR: the source folder.

cmake_minimum_required(VERSION 3.25)

# rows_of(VARIABLE FILE): the names of the rows, sorted, because lanes begin in any order.
function(rows_of variable file)
  file(READ "${file}" svg)
  string(REGEX MATCHALL "<text x=\"[0-9.]+\" y=\"[0-9.]+\">[^<]*<" rows "${svg}")
  list(TRANSFORM rows REPLACE ".*>([^<]*)<" "\\1")
  list(SORT rows)
  set(${variable}
      "${rows}"
      PARENT_SCOPE)
endfunction()

execute_process(COMMAND mktemp -d OUTPUT_VARIABLE folder OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${SOURCE_DIR}/docs/picture/make" "${PROGRAM}" "${folder}/run.svg" RESULT_VARIABLE code
                OUTPUT_VARIABLE said ERROR_VARIABLE said)
if(code EQUAL 0)
  rows_of(made "${folder}/run.svg")
endif()
file(REMOVE_RECURSE "${folder}")
if(NOT code EQUAL 0)
  message(FATAL_ERROR "docs/picture/make ended with ${code}:\n${said}")
endif()

rows_of(shown "${SOURCE_DIR}/docs/picture/run.svg")
list(LENGTH made count)
if(count LESS 7 OR NOT made STREQUAL shown)
  message(FATAL_ERROR "A run has the rows ${made}, and docs/picture/run.svg has ${shown}: run ./dev picture")
endif()
