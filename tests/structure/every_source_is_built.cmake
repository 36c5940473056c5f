# Every source file is named in a CMakeLists.txt. One that is missing would not be compiled, and its
# tests would not run, without any message.

cmake_minimum_required(VERSION 3.25)

file(READ "${BINARY_DIR}/compile_commands.json" commands)
set(forgotten)
foreach(folder core models stores contexts agents actors runtime load cli examples tests)
  file(GLOB_RECURSE sources "${SOURCE_DIR}/${folder}/*.cpp")
  foreach(source IN LISTS sources)
    string(FIND "${commands}" "\"file\": \"${source}\"" position)
    # The consumer is a separate project, built by tests/install.
    if(position EQUAL -1 AND NOT source MATCHES "/tests/install/")
      list(APPEND forgotten "${source}")
    endif()
  endforeach()
endforeach()

if(forgotten)
  list(JOIN forgotten "\n  " forgotten)
  message(FATAL_ERROR "In no CMakeLists.txt:\n  ${forgotten}")
endif()
