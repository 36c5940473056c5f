# Every source file is named in a CMakeLists.txt. One that is missing would not be compiled, and its
# tests would not run, without any message.

cmake_minimum_required(VERSION 3.25)

# A unity build compiles files that include the sources.
file(READ "${BINARY_DIR}/compile_commands.json" commands)
string(REGEX MATCHALL "\"file\": \"[^\"]*/Unity/[^\"]*\"" units "${commands}")
foreach(unit IN LISTS units)
  string(REGEX REPLACE "^\"file\": \"(.*)\"$" "\\1" unit "${unit}")
  file(STRINGS "${unit}" included REGEX "^#include")
  string(REGEX REPLACE "#include (\"[^\"]*\")" "\"file\": \\1" included "${included}")
  string(APPEND commands "${included}")
endforeach()
set(forgotten)
foreach(folder core models stores contexts agents actors runtime mcp telemetry load server cli examples tests)
  file(GLOB_RECURSE sources "${SOURCE_DIR}/${folder}/*.cpp")
  foreach(source IN LISTS sources)
    string(FIND "${commands}" "\"file\": \"${source}\"" position)
    # The consumer is a separate project, built by tests/install; mistakes must not compile; an `absent.cpp` or
    # `absent_PART.cpp` stands for a part that this build has.
    if(position EQUAL -1 AND NOT source MATCHES "/tests/(install|mistakes)/|/absent(_[a-z]+)?\\.cpp$")
      list(APPEND forgotten "${source}")
    endif()
  endforeach()
endforeach()

if(forgotten)
  list(JOIN forgotten "\n  " forgotten)
  message(FATAL_ERROR "In no CMakeLists.txt:\n  ${forgotten}")
endif()
