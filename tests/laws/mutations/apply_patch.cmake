# Usage: cmake -D PATCH=PROGRAM -D DIFF=FILE -D SOURCE_DIR=DIR -D OUTPUT_DIR=DIR -D FILES=FILE,...
#        -P apply_patch.cmake
#
# Copies FILES from SOURCE_DIR to OUTPUT_DIR and applies the patch DIFF to the copies.

cmake_minimum_required(VERSION 3.25)

string(REPLACE "," ";" FILES "${FILES}")
foreach(file IN LISTS FILES)
  cmake_path(GET file PARENT_PATH folder)
  file(MAKE_DIRECTORY "${OUTPUT_DIR}/${folder}")
  file(COPY_FILE "${SOURCE_DIR}/${file}" "${OUTPUT_DIR}/${file}")
endforeach()
execute_process(
  COMMAND "${PATCH}" -p1 --fuzz=0 --force --no-backup-if-mismatch --reject-file=- "--directory=${OUTPUT_DIR}" "--input=${DIFF}"
  RESULT_VARIABLE ended
  OUTPUT_VARIABLE told
  ERROR_VARIABLE told)
if(NOT ended EQUAL 0)
  cmake_path(GET DIFF STEM name)
  message(FATAL_ERROR "${name}.patch does not apply. Repair it with\n  tests/laws/mutations/renew_patch ${name}\n${told}")
endif()
