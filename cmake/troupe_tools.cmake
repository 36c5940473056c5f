# What all targets of this tree share: warnings, the compiler cache, the allocator of the programs.

add_library(troupe_warnings INTERFACE)
target_compile_options(troupe_warnings INTERFACE -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wnon-virtual-dtor)

# g++ can only be cached together with precompiled headers when the preprocessor names them, and ccache when it may overlook
# the macros in them. What one clone compiled serves the next: paths are taken relative to the build folder.
find_program(TROUPE_CCACHE ccache)
mark_as_advanced(TROUPE_CCACHE)
if(TROUPE_CCACHE AND PROJECT_IS_TOP_LEVEL AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER
      "${CMAKE_COMMAND}" -E env CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_NOHASHDIR=1
      "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" "${TROUPE_CCACHE}")
  add_compile_options("-fdebug-prefix-map=${PROJECT_SOURCE_DIR}=.")
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT CMAKE_DISABLE_PRECOMPILE_HEADERS)
    target_compile_options(troupe_warnings INTERFACE -fpch-preprocess)
  elseif(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    # In another clone the same header has another time.
    add_compile_options("SHELL:-Xclang -fno-pch-timestamp")
  endif()
endif()

# Small objects from many threads are what a runtime like this allocates all day; jemalloc saves a quarter of the CPU. It is
# the program's choice, never the library's, and sanitizers bring an allocator of their own.
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

# troupe_program(NAME SOURCE...): an executable on the library, as the command line, the examples and the benchmarks are.
function(troupe_program name)
  add_executable(${name} ${ARGN})
  set_target_properties(${name} PROPERTIES CXX_EXTENSIONS OFF)
  target_link_libraries(${name} PRIVATE troupe::troupe troupe_warnings troupe_allocator)
endfunction()
