# Builds mutants and checks that their guards fail. A mutant is a guard's program with one patch:
# its own objects, the objects of the patched sources, and the library. The linker takes no archive
# member whose symbols are defined already, so the patched objects replace the unpatched members.

find_program(TROUPE_PATCH patch REQUIRED)
mark_as_advanced(TROUPE_PATCH)

set(mutations_dir "${CMAKE_CURRENT_SOURCE_DIR}")
# A new patch may be the one that a guard lacked.
file(GLOB mutation_patches CONFIGURE_DEPENDS "${mutations_dir}/*.patch")
set(mutations_binary_dir "${CMAKE_CURRENT_BINARY_DIR}")
add_custom_target(mutants)

# troupe_mutant_objects(MECHANISM): the target mutant_MECHANISM compiles the patched sources.
function(troupe_mutant_objects mechanism)
  set(target mutant_${mechanism})
  if(TARGET ${target})
    return()
  endif()
  set(patch "${mutations_dir}/${mechanism}.patch")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${patch}")
  file(STRINGS "${patch}" files REGEX "^--- a/")
  list(TRANSFORM files REPLACE "^--- a/" "")
  set(patched troupe)
  if(files MATCHES "^server/")
    set(patched troupe_server)
  endif()
  get_target_property(sources ${patched} SOURCES)
  foreach(file IN LISTS files)
    if(NOT file IN_LIST sources)
      message(FATAL_ERROR "${patch} changes ${file}, which is no source of the target ${patched}")
    endif()
  endforeach()

  set(folder "${mutations_binary_dir}/${mechanism}")
  list(TRANSFORM files PREPEND "${folder}/" OUTPUT_VARIABLE copies)
  list(TRANSFORM files PREPEND "${PROJECT_SOURCE_DIR}/" OUTPUT_VARIABLE originals)
  list(JOIN files "," names)
  add_custom_command(
    OUTPUT ${copies}
    COMMAND "${CMAKE_COMMAND}" -D "PATCH=${TROUPE_PATCH}" -D "DIFF=${patch}" -D "SOURCE_DIR=${PROJECT_SOURCE_DIR}" -D
            "OUTPUT_DIR=${folder}" -D "FILES=${names}" -P "${mutations_dir}/apply_patch.cmake"
    DEPENDS "${patch}" ${originals} "${mutations_dir}/apply_patch.cmake"
    COMMENT "Applying ${mechanism}.patch"
    VERBATIM)

  add_library(${target} OBJECT EXCLUDE_FROM_ALL ${copies})
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF UNITY_BUILD OFF)
  # In a unity build of the library too, a source that is patched is a member of its own.
  set_source_files_properties(${originals} TARGET_DIRECTORY ${patched} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  foreach(property INCLUDE_DIRECTORIES COMPILE_DEFINITIONS COMPILE_OPTIONS)
    get_target_property(values ${patched} ${property})
    if(values)
      set_property(TARGET ${target} APPEND PROPERTY ${property} ${values})
    endif()
  endforeach()
  get_target_property(libraries ${patched} LINK_LIBRARIES)
  target_link_libraries(${target} PRIVATE ${patched} ${libraries})
  # A patch may leave unused code.
  target_compile_options(${target} PRIVATE -w)
  target_precompile_headers(${target} REUSE_FROM troupe)
endfunction()

# troupe_mutant_program(MECHANISM PROGRAM): the target mutant_MECHANISM_PROGRAM.
function(troupe_mutant_program mechanism program)
  set(target mutant_${mechanism}_${program})
  if(TARGET ${target})
    return()
  endif()
  troupe_mutant_objects(${mechanism})
  add_executable(${target} EXCLUDE_FROM_ALL $<TARGET_OBJECTS:mutant_${mechanism}> $<TARGET_OBJECTS:${program}>)
  set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX)
  get_target_property(libraries ${program} LINK_LIBRARIES)
  target_link_libraries(${target} PRIVATE ${libraries})
  # Without debug information a program has a sixth of the size.
  target_link_options(${target} PRIVATE -Wl,--strip-debug)
  add_dependencies(mutants ${target})
endfunction()

# troupe_sources_of(VARIABLE TARGET): the sources of a target and of the project's libraries that it
# links, without those of troupe itself.
function(troupe_sources_of variable target)
  get_target_property(folder ${target} SOURCE_DIR)
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources EXCLUDE REGEX "[$]<")
  set(all)
  foreach(source IN LISTS sources)
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY "${folder}" NORMALIZE)
    list(APPEND all "${source}")
  endforeach()
  get_target_property(libraries ${target} LINK_LIBRARIES)
  foreach(library IN LISTS libraries)
    if(NOT TARGET ${library})
      continue()
    endif()
    get_target_property(alias ${library} ALIASED_TARGET)
    if(alias)
      set(library ${alias})
    endif()
    get_target_property(imported ${library} IMPORTED)
    get_target_property(type ${library} TYPE)
    if(NOT imported AND NOT type STREQUAL "INTERFACE_LIBRARY" AND NOT library STREQUAL "troupe")
      troupe_sources_of(more ${library})
      list(APPEND all ${more})
    endif()
  endforeach()
  list(REMOVE_DUPLICATES all)
  set(${variable}
      "${all}"
      PARENT_SCOPE)
endfunction()

# troupe_guard(NAME MECHANISM PROGRAM ARGUMENTS WORDS): the test mutation.NAME. ARGUMENTS is one
# text, split at spaces.
function(troupe_guard name mechanism program arguments words)
  set_property(GLOBAL APPEND PROPERTY TROUPE_GUARDED_MECHANISMS ${mechanism})
  # A guard without a patch fails in mutation.patches_apply.
  if(NOT "${mutations_dir}/${mechanism}.patch" IN_LIST mutation_patches)
    return()
  endif()
  # Without the server there is no program for its guards.
  if(NOT TARGET ${program})
    return()
  endif()
  # Only ThreadSanitizer notices a missing lock. It makes the other guards slow, so they are left
  # out.
  if(CMAKE_CXX_FLAGS MATCHES "-fsanitize=thread")
    if(NOT mechanism STREQUAL "queue_lock")
      return()
    endif()
  elseif(mechanism STREQUAL "queue_lock")
    return()
  endif()

  troupe_mutant_program(${mechanism} ${program})
  set(target mutant_${mechanism}_${program})
  file(STRINGS "${mutations_dir}/${mechanism}.patch" files REGEX "^--- a/")
  list(TRANSFORM files REPLACE "^--- a/" "${PROJECT_SOURCE_DIR}/")
  troupe_sources_of(sources ${program})
  string(TOUPPER "${CMAKE_BUILD_TYPE}" build_type)
  set(guard "${mutations_binary_dir}/guards/${name}.cmake")
  file(
    GENERATE
    OUTPUT "${guard}"
    CONTENT
      "set(MECHANISM \"${mechanism}\")
set(MUTANT_TARGET \"${target}\")
set(PROGRAM_TARGET \"${program}\")
set(MUTANT \"$<TARGET_FILE:${target}>\")
set(PROGRAM \"$<TARGET_FILE:${program}>\")
set(ARGUMENTS \"${arguments}\")
set(WORDS [=[${words}]=])
set(STAMP \"${mutations_binary_dir}/guards/${name}.noticed\")
set(SOURCE_DIR \"${PROJECT_SOURCE_DIR}\")
set(INPUTS \"${mutations_dir}/${mechanism}.patch;${files};${sources}\")
# ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION} ${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${build_type}}
")
  add_test(
    NAME mutation.${name}
    COMMAND "${CMAKE_COMMAND}" -D "GUARD=${guard}" -P "${mutations_dir}/check_guard.cmake"
    WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}/tests")
  set_tests_properties(mutation.${name} PROPERTIES TIMEOUT 300 LABELS slow FIXTURES_REQUIRED mutants)
  set_property(GLOBAL APPEND PROPERTY TROUPE_GUARDS ${name})
endfunction()

# troupe_mutation_tests(): the tests mutation.build, which every guard needs, and
# mutation.patches_apply. Requires that all guards are declared.
function(troupe_mutation_tests)
  get_property(guards GLOBAL PROPERTY TROUPE_GUARDS)
  list(TRANSFORM guards PREPEND "${mutations_binary_dir}/guards/")
  list(TRANSFORM guards APPEND ".cmake")
  list(JOIN guards "," guards)
  add_test(NAME mutation.build COMMAND "${CMAKE_COMMAND}" -D "BINARY_DIR=${PROJECT_BINARY_DIR}" -D "GUARDS=${guards}"
                                       -P "${mutations_dir}/build_mutants.cmake")
  set_tests_properties(mutation.build PROPERTIES FIXTURES_SETUP mutants RUN_SERIAL ON LABELS slow TIMEOUT 3600)

  get_property(guarded GLOBAL PROPERTY TROUPE_GUARDED_MECHANISMS)
  list(REMOVE_DUPLICATES guarded)
  list(JOIN guarded "," guarded)
  add_test(NAME mutation.patches_apply
           COMMAND "${CMAKE_COMMAND}" -D "PATCH=${TROUPE_PATCH}" -D "SOURCE_DIR=${PROJECT_SOURCE_DIR}" -D "GUARDED=${guarded}"
                   -P "${mutations_dir}/patches_apply.cmake")
  set_tests_properties(mutation.patches_apply PROPERTIES TIMEOUT 60)
endfunction()
