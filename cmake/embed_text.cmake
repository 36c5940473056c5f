# Writes a C++ source with texts as string constants:
# cmake -DOUTPUT=FILE -DNAMESPACE=NAMESPACE -DTEXTS=NAME=FILE,... -P embed_text.cmake
# Files with the same name are concatenated.

cmake_minimum_required(VERSION 3.25)

set(names)
string(REPLACE "," ";" texts "${TEXTS}")
foreach(text IN LISTS texts)
  string(REGEX MATCH "^([a-z_]+)=(.*)$" matched "${text}")
  set(name "${CMAKE_MATCH_1}")
  file(READ "${CMAKE_MATCH_2}" content)
  if(content MATCHES "\\)text\"")
    message(FATAL_ERROR "${CMAKE_MATCH_2}: holds the end of a C++ string")
  endif()
  if(NOT name IN_LIST names)
    list(APPEND names "${name}")
  endif()
  string(APPEND content_of_${name} "${content}")
endforeach()

set(source "// Made by cmake/embed_text.cmake.\n\n#include <string_view>\n\nnamespace ${NAMESPACE} {\n\n")
foreach(name IN LISTS names)
  string(APPEND source "extern const std::string_view ${name};\nconst std::string_view ${name} = R\"text(${content_of_${name}})text\";\n\n")
endforeach()
string(APPEND source "} // namespace ${NAMESPACE}\n")
file(WRITE "${OUTPUT}" "${source}")
