# Read by find_package(troupe): finds the dependencies, then defines troupe::troupe, troupe::actors,
# troupe::conformance, troupe::load and, if the program was built, troupe::cli.

include(CMakeFindDependencyMacro)
find_dependency(Boost 1.74)
find_dependency(CURL 7.87)
find_dependency(Threads)
find_dependency(fmt)
find_dependency(nlohmann_json 3.11)
find_dependency(OpenSSL)
find_dependency(PostgreSQL)
find_dependency(SQLite3 3.37)
find_dependency(simdjson)
find_dependency(tl-expected)
find_dependency(utf8cpp)
find_dependency(yaml-cpp)
find_dependency(ZLIB)

# Only this file needs FindCAF.cmake and Findutf8proc.cmake, so the module path is changed for it
# alone.
list(PREPEND CMAKE_MODULE_PATH "${CMAKE_CURRENT_LIST_DIR}")
find_dependency(CAF)
find_dependency(utf8proc)
list(POP_FRONT CMAKE_MODULE_PATH)

include("${CMAKE_CURRENT_LIST_DIR}/troupeTargets.cmake")
