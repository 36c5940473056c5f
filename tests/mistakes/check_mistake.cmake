# Compiles one mistake of a new user. It must not compile, and the first error must name the remedy: the text after
# `// first error:` in the source, a regular expression.

cmake_minimum_required(VERSION 3.25)

file(STRINGS "${SOURCE}" wanted REGEX "^// first error: ")
string(REPLACE "// first error: " "" wanted "${wanted}")
if(wanted STREQUAL "")
  message(FATAL_ERROR "${SOURCE} has no line '// first error: '")
endif()
execute_process(
  COMMAND "${COMPILER}" -std=c++20 -fsyntax-only "-I${INCLUDE_DIR}" "${SOURCE}"
  OUTPUT_QUIET
  ERROR_VARIABLE messages
  RESULT_VARIABLE status)
if(status EQUAL 0)
  message(FATAL_ERROR "${SOURCE} compiles")
endif()
if(NOT messages MATCHES " error: ([^\n]*)")
  message(FATAL_ERROR "${SOURCE} fails without an error:\n${messages}")
endif()
set(first "${CMAKE_MATCH_1}")
if(NOT first MATCHES "${wanted}")
  message(FATAL_ERROR "the first error of ${SOURCE} does not name the remedy:\n${first}")
endif()
