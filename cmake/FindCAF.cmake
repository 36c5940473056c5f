# Finds CAF 0.17, the C++ Actor Framework. Distributions ship no CMake package of it.
#
# Defines the target CAF::core and CAF_VERSION. CAF_ROOT selects a CAF other than the system's.
# CAF's interfaces differ between minor versions, so any version other than 0.17 counts as not
# found.

find_path(CAF_INCLUDE_DIR caf/config.hpp)
find_library(CAF_CORE_LIBRARY NAMES caf_core caf_core_static NAMES_PER_DIR)
mark_as_advanced(CAF_INCLUDE_DIR CAF_CORE_LIBRARY)

unset(CAF_VERSION)
unset(caf_reason)
if(CAF_INCLUDE_DIR)
  # One number: 1706 means 0.17.6. Newer versions may keep it in another file; they are refused in
  # any case.
  file(STRINGS "${CAF_INCLUDE_DIR}/caf/config.hpp" caf_version_line
       REGEX "^#define CAF_VERSION [0-9]+")
  if(caf_version_line MATCHES "([0-9]+)$")
    math(EXPR caf_major "${CMAKE_MATCH_1} / 10000")
    math(EXPR caf_minor "${CMAKE_MATCH_1} / 100 % 100")
    math(EXPR caf_patch "${CMAKE_MATCH_1} % 100")
    set(CAF_VERSION "${caf_major}.${caf_minor}.${caf_patch}")
  endif()
  if(NOT CAF_VERSION MATCHES "^0\\.17\\.")
    set(caf_found_version "${CAF_VERSION}")
    if(NOT caf_found_version)
      set(caf_found_version "of unknown version")
    endif()
    set(caf_reason
        "troupe needs CAF 0.17, but the one in ${CAF_INCLUDE_DIR} is ${caf_found_version}. Set CAF_ROOT to the place of a CAF 0.17.")
  endif()
else()
  set(caf_reason
      "troupe needs CAF 0.17 (package libcaf-dev on Debian 12). Set CAF_ROOT if it is in an unusual place.")
endif()

set(caf_is_usable TRUE)
if(caf_reason)
  set(caf_is_usable FALSE)
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  CAF
  REQUIRED_VARS CAF_CORE_LIBRARY CAF_INCLUDE_DIR caf_is_usable
  VERSION_VAR CAF_VERSION
  REASON_FAILURE_MESSAGE "${caf_reason}")

if(CAF_FOUND AND NOT TARGET CAF::core)
  find_package(Threads REQUIRED)
  add_library(CAF::core UNKNOWN IMPORTED)
  set_target_properties(
    CAF::core
    PROPERTIES IMPORTED_LOCATION "${CAF_CORE_LIBRARY}"
               INTERFACE_INCLUDE_DIRECTORIES "${CAF_INCLUDE_DIR}"
               INTERFACE_LINK_LIBRARIES Threads::Threads)
endif()
