# Configuring against CAF 0.18 fails, and the message names the CAF that troupe needs.

cmake_minimum_required(VERSION 3.25)

if(NOT IS_INNER_RUN)
  file(WRITE "${WORK_DIR}/include/caf/config.hpp" "#define CAF_VERSION 1805\n")
  file(WRITE "${WORK_DIR}/lib/libcaf_core.a" "")
  execute_process(
    COMMAND "${CMAKE_COMMAND}" -DIS_INNER_RUN=ON "-DMODULE_DIR=${MODULE_DIR}" "-DCAF_ROOT=${WORK_DIR}" -P
            "${CMAKE_CURRENT_LIST_FILE}"
    RESULT_VARIABLE status ERROR_VARIABLE message OUTPUT_QUIET)
  string(REGEX REPLACE "[ \n]+" " " message "${message}")
  if(status EQUAL 0 OR NOT message MATCHES "troupe needs CAF 0\\.17, but the one in [^ ]+ is 0\\.18\\.5")
    message(FATAL_ERROR "exit status ${status}, message:\n${message}")
  endif()
  return()
endif()

# A script has no compiler to detect these values.
set(CMAKE_FIND_LIBRARY_PREFIXES lib)
set(CMAKE_FIND_LIBRARY_SUFFIXES .so .a)
list(APPEND CMAKE_MODULE_PATH "${MODULE_DIR}")
find_package(CAF REQUIRED)
