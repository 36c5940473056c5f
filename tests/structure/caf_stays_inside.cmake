# No public header includes CAF, directly or through another header. Exceptions are the headers of
# actors/ and runtime/actors.hpp.

cmake_minimum_required(VERSION 3.25)

set(headers)
foreach(layer core models stores contexts agents runtime)
  file(GLOB found RELATIVE "${SOURCE_DIR}" "${SOURCE_DIR}/${layer}/*.hpp")
  list(APPEND headers ${found})
endforeach()
list(REMOVE_ITEM headers runtime/actors.hpp)

# All in one source file: one run of the preprocessor instead of one per header.
set(source "${BINARY_DIR}/tests/structure/caf_stays_inside.cpp")
list(TRANSFORM headers REPLACE "(.+)" "#include \"troupe/\\1\"" OUTPUT_VARIABLE includes)
list(JOIN includes "\n" includes)
file(WRITE "${source}" "${includes}\n")

# With -H the preprocessor lists what it opens, one dot per level.
execute_process(
  COMMAND "${COMPILER}" -std=c++20 -E -H -I "${BINARY_DIR}/include" -o /dev/null "${source}"
  ERROR_VARIABLE opened COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "\\.+ [^\n]+" opened "${opened}")
foreach(line IN LISTS opened)
  string(REGEX MATCH "^(\\.+) (.+)$" line "${line}")
  string(LENGTH "${CMAKE_MATCH_1}" level)
  set(opened_at_${level} "${CMAKE_MATCH_2}")
  if(CMAKE_MATCH_2 MATCHES "/caf/[^/]+\\.hpp$")
    set(way)
    foreach(step RANGE 1 ${level})
      string(REPLACE "${BINARY_DIR}/include/" "" name "${opened_at_${step}}")
      string(APPEND way "\n  ${name}")
    endforeach()
    message(FATAL_ERROR "A header that users include pulls in CAF:${way}")
  endif()
endforeach()
