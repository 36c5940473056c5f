# Settings that all targets of this tree share: warnings, compiler cache, and allocator of the
# programs.

add_library(troupe_warnings INTERFACE)
target_compile_options(troupe_warnings INTERFACE -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wnon-virtual-dtor)

# In a unity build a name of one source shadows the same name of another one, which is no mistake.
if(CMAKE_UNITY_BUILD)
  target_compile_options(troupe_warnings INTERFACE -Wno-shadow)
endif()

# g++ warns of types in anonymous namespaces, except for those in the main file. In a unity build all
# are in included files. It also inlines less in large sources: without the parameter an append costs
# 5 to 9 % more.
if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(troupe_warnings INTERFACE -Wno-subobject-linkage)
  add_compile_options("SHELL:--param large-unit-insns=200000")
endif()

# ccache can cache g++ with precompiled headers only if the preprocessor names these headers and if
# time macros in them are ignored. Paths are relative to the build folder, so that several clones
# share one cache. The map is for __FILE__, too: the units of a unity build include their sources by
# whole paths, and each assertion and test case holds its path.
find_program(TROUPE_CCACHE ccache)
mark_as_advanced(TROUPE_CCACHE)
if(TROUPE_CCACHE AND PROJECT_IS_TOP_LEVEL AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER
      "${CMAKE_COMMAND}" -E env CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_NOHASHDIR=1
      "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" "${TROUPE_CCACHE}")
  add_compile_options("-ffile-prefix-map=${PROJECT_SOURCE_DIR}=.")
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT CMAKE_DISABLE_PRECOMPILE_HEADERS)
    target_compile_options(troupe_warnings INTERFACE -fpch-preprocess)
  elseif(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    # The same header has another modification time in another clone.
    add_compile_options("SHELL:-Xclang -fno-pch-timestamp")
  endif()
endif()

# The runtime allocates many small objects in many threads; jemalloc saves a quarter of the CPU
# time. Only programs choose it, never the library, and not with sanitizers, which have an allocator
# of their own.
find_library(TROUPE_JEMALLOC_LIBRARY jemalloc)
mark_as_advanced(TROUPE_JEMALLOC_LIBRARY)
add_library(troupe_allocator INTERFACE)
if(TROUPE_JEMALLOC STREQUAL "AUTO")
  if(TROUPE_JEMALLOC_LIBRARY AND NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize")
    target_link_libraries(troupe_allocator INTERFACE "${TROUPE_JEMALLOC_LIBRARY}")
  endif()
elseif(TROUPE_JEMALLOC)
  if(NOT TROUPE_JEMALLOC_LIBRARY)
    message(FATAL_ERROR "TROUPE_JEMALLOC is on, but there is no jemalloc (package libjemalloc-dev on Debian 12)")
  endif()
  target_link_libraries(troupe_allocator INTERFACE "${TROUPE_JEMALLOC_LIBRARY}")
endif()

# troupe_program(NAME SOURCE...): an executable that uses the library: the command line, an example
# or a benchmark.
function(troupe_program name)
  add_executable(${name} ${ARGN})
  set_target_properties(${name} PROPERTIES CXX_EXTENSIONS OFF)
  target_link_libraries(${name} PRIVATE troupe::troupe troupe_warnings troupe_allocator)
endfunction()

# troupe_embed(SOURCE NAMESPACE NAME=FILE...): writes the C++ source SOURCE in the build folder, with
# the texts of the files as constants of these names. Files are given from the root of the tree;
# those with the same name are concatenated.
#
# CMake writes the source itself. A command of the build would wait for the libraries that the
# target links, and the target's sources would wait for the command.
function(troupe_embed source namespace)
  set(names)
  foreach(text IN LISTS ARGN)
    string(REGEX MATCH "^([a-z_]+)=(.*)$" matched "${text}")
    set(name "${CMAKE_MATCH_1}")
    set(file "${PROJECT_SOURCE_DIR}/${CMAKE_MATCH_2}")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
    file(READ "${file}" content)
    if(content MATCHES "\\)text\"")
      message(FATAL_ERROR "${file}: holds the end of a C++ string")
    endif()
    if(NOT name IN_LIST names)
      list(APPEND names "${name}")
      set(content_of_${name})
    endif()
    string(APPEND content_of_${name} "${content}")
  endforeach()

  set(made "// Made by cmake/troupe_tools.cmake.\n\n#include <string_view>\n\nnamespace ${namespace} {\n\n")
  foreach(name IN LISTS names)
    string(APPEND made "extern const std::string_view ${name};\nconst std::string_view ${name} = R\"text(${content_of_${name}})text\";\n\n")
  endforeach()
  string(APPEND made "} // namespace ${namespace}\n")
  # The same text keeps its time, so that nothing is compiled again.
  set(before)
  if(EXISTS "${source}")
    file(READ "${source}" before)
  endif()
  if(NOT made STREQUAL before)
    file(WRITE "${source}" "${made}")
  endif()
endfunction()
