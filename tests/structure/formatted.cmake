# Usage: cmake -D SOURCE_DIR=FOLDER -D FORMATTER=PROGRAM -P formatted.cmake
#
# Every source is formatted by clang-format (.clang-format).

set(sources)
foreach(
  folder
  core models stores contexts agents actors runtime mcp telemetry load server cli examples benchmarks tests)
  file(GLOB_RECURSE more "${SOURCE_DIR}/${folder}/*.cpp" "${SOURCE_DIR}/${folder}/*.hpp")
  list(APPEND sources ${more})
endforeach()
list(LENGTH sources count)
if(count LESS 300)
  message(FATAL_ERROR "only ${count} sources were found")
endif()
execute_process(COMMAND "${FORMATTER}" --dry-run -Werror ${sources} RESULT_VARIABLE ended ERROR_VARIABLE told)
if(NOT ended EQUAL 0)
  message(FATAL_ERROR "run ./dev format:\n${told}")
endif()
