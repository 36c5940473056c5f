# guard_key(VARIABLE): a hash of the inputs of a guard: the patch, the patched sources, the sources of
# the guard's program, the headers of tests, and the code of this folder. Requires the variables of
# the file GUARD. Other sources of the library do not count: a new build folder checks all guards.
function(guard_key variable)
  file(GLOB_RECURSE headers "${SOURCE_DIR}/tests/*.hpp" "${SOURCE_DIR}/stores/conformance/*.hpp")
  set(here "${CMAKE_CURRENT_FUNCTION_LIST_DIR}")
  set(hashes)
  set(code "${here}/mutants.cmake" "${here}/apply_patch.cmake" "${here}/check_guard.cmake" "${here}/build_mutants.cmake"
           "${here}/guard_key.cmake")
  foreach(input IN LISTS INPUTS headers code ITEMS "${GUARD}")
    file(SHA256 "${input}" hash)
    list(APPEND hashes "${hash}")
  endforeach()
  string(SHA256 key "${hashes}")
  set(${variable}
      "${key}"
      PARENT_SCOPE)
endfunction()

# guard_is_checked(VARIABLE): whether the guard failed as it must since its key last changed.
function(guard_is_checked variable)
  set(checked OFF)
  if(EXISTS "${STAMP}")
    guard_key(key)
    file(READ "${STAMP}" stamp)
    if(stamp STREQUAL key)
      set(checked ON)
    endif()
  endif()
  set(${variable}
      ${checked}
      PARENT_SCOPE)
endfunction()
