# Each C++ sample of a page is the text of a source that a test compiles and runs, apart from white
# space. A sample begins with a line "```cpp"; with a file name behind `cpp` it is the whole file.

cmake_minimum_required(VERSION 3.25)

# Pages whose samples show the style of comments, and fragments of it.
set(without_check docs/style.md)
# Fewer samples mean that their form has changed.
set(samples_min 70)

function(without_space variable text)
  string(REGEX REPLACE "[ \n]+" "" text "${text}")
  set(${variable}
      "${text}"
      PARENT_SCOPE)
endfunction()

# -- sources ----

file(GLOB_RECURSE sources "${SOURCE_DIR}/examples/*.cpp" "${SOURCE_DIR}/examples/*.hpp" "${SOURCE_DIR}/tests/docs/*.cpp"
     "${SOURCE_DIR}/tests/docs/*.hpp")
list(APPEND sources "${SOURCE_DIR}/cli/templates/main.cpp.in")
set(compiled "")
foreach(source IN LISTS sources)
  file(READ "${source}" text)
  # Keeps a sample within one source.
  string(APPEND compiled "${text}<end of source>")
endforeach()
without_space(compiled "${compiled}")

# -- pages ----

file(GLOB pages RELATIVE "${SOURCE_DIR}" "${SOURCE_DIR}/*.md" "${SOURCE_DIR}/docs/*.md")
list(REMOVE_ITEM pages ${without_check})
set(shown 0)
foreach(page IN LISTS pages)
  file(READ "${SOURCE_DIR}/${page}" text)
  while(TRUE)
    string(FIND "${text}" "\n```cpp" start)
    if(start EQUAL -1)
      break()
    endif()
    math(EXPR start "${start} + 7")
    string(SUBSTRING "${text}" ${start} -1 text)
    string(FIND "${text}" "\n" line_end)
    string(SUBSTRING "${text}" 0 ${line_end} name)
    string(STRIP "${name}" name)
    string(FIND "${text}" "\n```" end)
    math(EXPR length "${end} - ${line_end}")
    string(SUBSTRING "${text}" ${line_end} ${length} sample)
    math(EXPR end "${end} + 4")
    string(SUBSTRING "${text}" ${end} -1 text)
    math(EXPR shown "${shown} + 1")
    without_space(packed "${sample}")
    string(FIND "${compiled}" "${packed}" position)
    if(packed STREQUAL "" OR position EQUAL -1)
      message(SEND_ERROR "${page} shows code that no test compiles:${sample}")
    endif()
    if(NOT name STREQUAL "")
      set(whole OFF)
      foreach(source IN LISTS sources)
        cmake_path(GET source FILENAME file)
        if(file STREQUAL name)
          file(READ "${source}" held)
          if("${sample}\n" STREQUAL "\n${held}")
            set(whole ON)
          endif()
        endif()
      endforeach()
      if(NOT whole)
        message(SEND_ERROR "${page} shows ${name} otherwise than it is:${sample}")
      endif()
    endif()
  endwhile()
endforeach()
if(shown LESS samples_min)
  message(SEND_ERROR "Only ${shown} samples were found in the pages: has their form changed?")
endif()
message(STATUS "${shown} samples")
