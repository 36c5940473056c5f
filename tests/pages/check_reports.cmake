# Makes a page of each kind with the program, and checks them and the samples in Chromium.
#
# PROGRAM: troupe. PYTHON: an interpreter. SOURCE_DIR: this folder.

cmake_minimum_required(VERSION 3.25)

find_program(chromium NAMES chromium chromium-browser google-chrome NO_CACHE)
if(NOT chromium)
  message(FATAL_ERROR "There is no Chromium to look at pages with; ./dev test --all installs it.")
endif()

execute_process(COMMAND mktemp -d OUTPUT_VARIABLE folder OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
function(run)
  execute_process(COMMAND ${ARGN} WORKING_DIRECTORY "${folder}" RESULT_VARIABLE code OUTPUT_VARIABLE said ERROR_VARIABLE said)
  if(NOT code EQUAL 0)
    file(REMOVE_RECURSE "${folder}")
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command} ended with ${code}:\n${said}")
  endif()
endfunction()

file(WRITE "${folder}/replies.json" [=[{"*": [{"text": "said", "latency_ms": 5}]}]=])
file(
  WRITE "${folder}/agents.yaml"
  [=[
agent_class: ParallelAgent
name: lanes
sub_agents:
- {name: one, model: "scripted:replies.json", output_key: one}
- {name: two, model: "scripted:replies.json"}
]=])
file(
  WRITE "${folder}/lanes.yaml"
  [=[
agent: agents.yaml
inputs: [go, run]
keys: [one]
variants:
  as_it_is:
  one_lane: {agents: {lanes: {lanes_max: 1}}}
  broken: {agents: {two: {instruction: "{missing}"}}}
]=])
set(store sqlite:reports.db)
run("${PROGRAM}" load --store ${store} --duration 2 --html load_closed.html)
run("${PROGRAM}" load --arrival open --rate 2000 --duration 2 --readers 2 --html load_open.html)
run("${PROGRAM}" load sweep --vary callers=1,8,64 --vary payload=0,1024 --duration 0.3 --html sweep.html)
run("${PROGRAM}" run agents.yaml --store ${store} --session s --input go --input again)
run("${PROGRAM}" trace --store ${store} --app lanes --session s --html trace.html)
run("${PROGRAM}" experiment lanes.yaml --store ${store} --html experiment.html)
run("${PROGRAM}" experiment lanes.yaml --store ${store} --from s@2 --app lanes --html forked.html)

file(GLOB samples "${SOURCE_DIR}/sample_*.json")
run("${PYTHON}" "${SOURCE_DIR}/check_pages.py" --self-test "${chromium}")
run("${PYTHON}" "${SOURCE_DIR}/check_pages.py" "${chromium}" load_closed.html load_open.html sweep.html trace.html experiment.html forked.html ${samples})
file(REMOVE_RECURSE "${folder}")
