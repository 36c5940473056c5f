# Usage: cmake -D PATCH=PROGRAM -D SOURCE_DIR=DIR -D GUARDED=MECHANISM,... -P patches_apply.cmake
#
# Each patch of this folder applies to the sources, begins with a sentence, changes only .cpp files,
# and has a guard; each guard has a patch. Nothing is built.

cmake_minimum_required(VERSION 3.25)

string(REPLACE "," ";" GUARDED "${GUARDED}")
file(GLOB patches "${CMAKE_CURRENT_LIST_DIR}/*.patch")
set(wrong)
set(patched)
foreach(patch IN LISTS patches)
  cmake_path(GET patch STEM name)
  list(APPEND patched ${name})
  file(STRINGS "${patch}" lines)
  list(GET lines 0 sentence)
  if(NOT sentence MATCHES "^[A-Z`].*[.]$")
    list(APPEND wrong "${name}.patch does not begin with a sentence about the mechanism.")
  endif()
  file(STRINGS "${patch}" headers REGEX "^[+][+][+] ")
  list(FILTER headers EXCLUDE REGEX "^[+][+][+] b/.*[.]cpp$")
  if(headers)
    list(APPEND wrong "${name}.patch changes more than .cpp files.")
  endif()
  if(NOT name IN_LIST GUARDED)
    list(APPEND wrong "${name}.patch has no guard in tests/laws/mutations/CMakeLists.txt.")
  endif()
  execute_process(
    COMMAND "${PATCH}" -p1 --fuzz=0 --force --dry-run "--directory=${SOURCE_DIR}" "--input=${patch}"
    RESULT_VARIABLE ended
    OUTPUT_VARIABLE told
    ERROR_VARIABLE told)
  if(NOT ended EQUAL 0)
    list(APPEND wrong "${name}.patch does not apply. Repair it with\n  tests/laws/mutations/renew_patch ${name}\n${told}")
  endif()
endforeach()
foreach(name IN LISTS GUARDED)
  if(NOT name IN_LIST patched)
    list(APPEND wrong "The guard of ${name} has no patch: ${name}.patch is missing.")
  endif()
endforeach()
if(wrong)
  list(JOIN wrong "\n" wrong)
  message(FATAL_ERROR "${wrong}")
endif()
list(LENGTH patched count)
message(STATUS "${count} patches apply")
