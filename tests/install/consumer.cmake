# Installs the build into a new prefix, then configures, builds and runs a project that uses only
# that prefix.

cmake_minimum_required(VERSION 3.25)

include("${CMAKE_CURRENT_LIST_DIR}/run.cmake")

file(REMOVE_RECURSE "${WORK_DIR}")

run("${CMAKE_COMMAND}" --install "${BINARY_DIR}" --config "${CONFIG}" --prefix "${WORK_DIR}/prefix")
run("${CMAKE_COMMAND}"
    -S "${SOURCE_DIR}/consumer"
    -B "${WORK_DIR}/build"
    -G "${GENERATOR}"
    "-DCMAKE_PREFIX_PATH=${WORK_DIR}/prefix"
    "-DCMAKE_BUILD_TYPE=${CONFIG}"
    "-DCMAKE_CXX_COMPILER=${COMPILER}"
    "-DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER}"
    "-DCMAKE_CXX_FLAGS=${FLAGS}")
run("${CMAKE_COMMAND}" --build "${WORK_DIR}/build" --config "${CONFIG}")
run("${WORK_DIR}/build/consumer")
run("${WORK_DIR}/build/load_consumer")
run("${WORK_DIR}/build/asio_consumer")
run("${WORK_DIR}/build/actors_consumer")
run("${WORK_DIR}/build/everything_consumer")

# The folder that `troupe init` makes is a program with a tool of its own.
file(MAKE_DIRECTORY "${WORK_DIR}/start")
set(ENV{CXX} "${COMPILER}")
run("${WORK_DIR}/prefix/bin/troupe" init "${WORK_DIR}/start/desk")
run("${CMAKE_COMMAND}"
    -S "${WORK_DIR}/start/desk"
    -B "${WORK_DIR}/start/desk/build"
    -G "${GENERATOR}"
    "-DCMAKE_PREFIX_PATH=${WORK_DIR}/prefix"
    "-DCMAKE_BUILD_TYPE=${CONFIG}"
    "-DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER}"
    "-DCMAKE_CXX_FLAGS=${FLAGS}")
run("${CMAKE_COMMAND}" --build "${WORK_DIR}/start/desk/build" --config "${CONFIG}")
execute_process(
  COMMAND "${WORK_DIR}/start/desk/build/desk" run "${WORK_DIR}/start/desk" --store memory: --input "When are you open?"
  OUTPUT_VARIABLE said RESULT_VARIABLE status)
if(NOT status EQUAL 0 OR NOT said MATCHES "desk: We are open from 9 to 17\\.")
  message(FATAL_ERROR "the program that troupe init makes ends with ${status} and says:\n${said}")
endif()
