# Checks the measurable part of docs/style.md, "Plain words": few comments with a "what"-clause, no comment that begins
# with one, section rulers of one line, and pages of at most 100 columns.

cmake_minimum_required(VERSION 3.25)

set(what_max_per_1000 5)
set(columns_max 100)
set(wrong)

# -- comments ----

set(comments 0)
set(whats 0)
foreach(folder core models stores contexts agents actors runtime telemetry load server cli examples benchmarks tests)
  file(GLOB_RECURSE sources RELATIVE "${SOURCE_DIR}" "${SOURCE_DIR}/${folder}/*.hpp" "${SOURCE_DIR}/${folder}/*.cpp")
  foreach(source IN LISTS sources)
    file(STRINGS "${SOURCE_DIR}/${source}" lines REGEX "(^|[ \t;{},)])//[/!]?[< ]")
    # Unbalanced brackets would join the lines of the list.
    string(REGEX REPLACE "[][]" "." lines "${lines}")
    foreach(line IN LISTS lines)
      math(EXPR comments "${comments} + 1")
      if(line MATCHES "//[/!]?<? *(What|Whoever|Nobody|Somebody)( |$)")
        list(APPEND wrong "${source}: a comment begins with ${CMAKE_MATCH_1}: ${line}")
      endif()
      if(line MATCHES "//.*[^A-Za-z_`][Ww]hat([^A-Za-z_`]|$)")
        math(EXPR whats "${whats} + 1")
        list(APPEND found "${source}: ${line}")
      endif()
      if(line MATCHES "^[ \t]*// -----+$")
        list(APPEND wrong "${source}: a section ruler of two lines")
      endif()
    endforeach()
  endforeach()
endforeach()
if(comments LESS 5000)
  list(APPEND wrong "only ${comments} lines of comments were found: has their form changed?")
endif()
math(EXPR allowed "${comments} * ${what_max_per_1000} / 1000")
if(whats GREATER allowed)
  list(APPEND wrong "${whats} of ${comments} comment lines have a \"what\"-clause; ${allowed} may" ${found})
endif()

# -- pages ----

file(GLOB pages RELATIVE "${SOURCE_DIR}" "${SOURCE_DIR}/*.md" "${SOURCE_DIR}/docs/*.md" "${SOURCE_DIR}/tests/*.md"
     "${SOURCE_DIR}/benchmarks/*.md")
foreach(page IN LISTS pages)
  file(READ "${SOURCE_DIR}/${page}" text)
  # Brackets and semicolons would divide or join the lines of a list.
  string(REGEX REPLACE "[][;]" "." text "${text}")
  string(REPLACE "\n" ";" lines "${text}")
  set(in_code OFF)
  set(number 0)
  foreach(line IN LISTS lines)
    math(EXPR number "${number} + 1")
    if(line MATCHES "^ *```")
      if(in_code)
        set(in_code OFF)
      else()
        set(in_code ON)
      endif()
    elseif(NOT in_code AND NOT line MATCHES "^ *[|]" AND NOT line MATCHES "[.][(]")
      string(LENGTH "${line}" length)
      if(length GREATER columns_max)
        list(APPEND wrong "${page}:${number} has ${length} columns")
      endif()
    endif()
  endforeach()
endforeach()

if(wrong)
  list(JOIN wrong "\n  " wrong)
  message(FATAL_ERROR "docs/style.md, \"Plain words\", does not hold:\n  ${wrong}")
endif()
