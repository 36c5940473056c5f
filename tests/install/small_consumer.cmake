# Builds troupe without PostgreSQL and models over HTTP, on a system without their libraries, installs it, and
# builds and runs a project that uses it.

cmake_minimum_required(VERSION 3.25)

include("${CMAKE_CURRENT_LIST_DIR}/run.cmake")

file(REMOVE_RECURSE "${WORK_DIR}/prefix" "${WORK_DIR}/consumer")
set(usual -G "${GENERATOR}" "-DCMAKE_CXX_COMPILER=${COMPILER}" "-DCMAKE_CXX_FLAGS=-O0")
# Without a launcher: the library sets up the compiler cache itself, with what its precompiled headers need.
run("${CMAKE_COMMAND}"
    -S "${PROJECT_DIR}"
    -B "${WORK_DIR}/build"
    ${usual}
    -DCMAKE_UNITY_BUILD=ON
    -DTROUPE_POSTGRES=OFF
    -DTROUPE_MCP=OFF
    -DTROUPE_TELEMETRY=OFF
    -DTROUPE_SERVER=OFF
    -DTROUPE_HTTP_MODELS=OFF
    -DTROUPE_TESTS=OFF
    -DTROUPE_EXAMPLES=OFF
    -DTROUPE_CLI=OFF
    -DCMAKE_DISABLE_FIND_PACKAGE_CURL=ON
    -DCMAKE_DISABLE_FIND_PACKAGE_OpenSSL=ON
    -DCMAKE_DISABLE_FIND_PACKAGE_PostgreSQL=ON
    -DCMAKE_DISABLE_FIND_PACKAGE_simdjson=ON)
# Installing builds the targets that are missing, which are all of them here.
run("${CMAKE_COMMAND}" --install "${WORK_DIR}/build" --prefix "${WORK_DIR}/prefix")
run("${CMAKE_COMMAND}"
    -S "${SOURCE_DIR}/small_consumer"
    -B "${WORK_DIR}/consumer"
    ${usual}
    "-DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER}"
    "-DCMAKE_PREFIX_PATH=${WORK_DIR}/prefix"
    -DCMAKE_DISABLE_FIND_PACKAGE_CURL=ON
    -DCMAKE_DISABLE_FIND_PACKAGE_OpenSSL=ON
    -DCMAKE_DISABLE_FIND_PACKAGE_PostgreSQL=ON
    -DCMAKE_DISABLE_FIND_PACKAGE_simdjson=ON)
run("${CMAKE_COMMAND}" --build "${WORK_DIR}/consumer")
run("${WORK_DIR}/consumer/small_consumer")
