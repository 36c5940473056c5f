# A second run must continue the state of the first one; without a store in a file there is nothing
# to continue.

cmake_minimum_required(VERSION 3.25)

file(REMOVE_RECURSE "${FOLDER}")
file(MAKE_DIRECTORY "${FOLDER}")

# review(STORE): runs the program with its default documents and sets `output`.
function(review store)
  execute_process(COMMAND "${PROGRAM}" --store "${store}" WORKING_DIRECTORY "${SOURCE_DIR}" OUTPUT_VARIABLE output
                  COMMAND_ERROR_IS_FATAL ANY)
  set(output "${output}" PARENT_SCOPE)
endfunction()

function(expect text)
  string(FIND "${output}" "${text}" position)
  if(position EQUAL -1)
    message(FATAL_ERROR "Not in the output: ${text}\n\n${output}")
  endif()
endfunction()

function(expect_first_run store)
  expect("Carried over from earlier runs: nothing, ${store} is empty.\n")
  expect("  app:documents_reviewed = 3\n")
  expect("State of session review/ann/document-1, ")
endfunction()

review(memory:)
expect_first_run(memory:)

set(store "sqlite:${FOLDER}/review.db")
review("${store}")
expect_first_run("${store}")
review("${store}")
expect("Carried over from earlier runs, in ${store}:\n  3 documents reviewed\n  user ann, 2 documents\n")
expect("      session document-2: docs/architecture.md, ")
expect("  app:documents_reviewed = 6\n")
expect("State of user ben:\n  user:closing = \"That is all.\"\n      carried over from an earlier run\n")
expect("State of session review/ann/document-4, ")
file(REMOVE_RECURSE "${FOLDER}")
