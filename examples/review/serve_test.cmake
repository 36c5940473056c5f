# The served pipeline must show what review_documents has left in the store, and review a message.

cmake_minimum_required(VERSION 3.25)

file(REMOVE_RECURSE "${FOLDER}")
file(MAKE_DIRECTORY "${FOLDER}")
set(store "sqlite:${FOLDER}/review.db")
execute_process(COMMAND "${REVIEW}" --store "${store}" WORKING_DIRECTORY "${SOURCE_DIR}" OUTPUT_QUIET
                COMMAND_ERROR_IS_FATAL ANY)

# Prints the answers of the server, once it has said that it is ready.
file(WRITE "${FOLDER}/ask.sh" [=[
set -eu
"$1" --store "$2" --port 0 >"$3/out" 2>&1 &
program=$!
trap 'kill $program; wait $program; cat "$3/out"' EXIT
until grep -q ' on http' "$3/out"; do kill -0 $program; sleep 0.05; done
port=$(sed -n 's,.* on http://127.0.0.1:\([0-9]*\)/.*,\1,p' "$3/out")
# ask METHOD PATH [BODY]: sends a request; bash opens the connection.
ask() {
  local body=${3-}
  exec 9<>"/dev/tcp/127.0.0.1/$port"
  printf '%s %s HTTP/1.1\r\nHost: 127.0.0.1:%s\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: %s\r\n\r\n%s' \
    "$1" "$2" "$port" "${#body}" "$body" >&9
  cat <&9
  exec 9>&-
}
ask GET /list-apps
ask GET /apps/review/users/ann/sessions
ask POST /apps/review/users/kim/sessions/new '{}'
ask POST /run '{"appName": "review", "userId": "kim", "sessionId": "new", "newMessage": {"role": "user", "parts": [{"text": "One two three."}]}}'
]=])
execute_process(COMMAND bash "${FOLDER}/ask.sh" "${PROGRAM}" "${store}" "${FOLDER}" OUTPUT_VARIABLE output
                COMMAND_ERROR_IS_FATAL ANY)
foreach(text "[\"review\"]" "\"id\":\"document-1\"" "Dear reader," "Review of your text:" "until Ctrl-C.")
  string(FIND "${output}" "${text}" position)
  if(position EQUAL -1)
    message(FATAL_ERROR "Not in the output: ${text}\n\n${output}")
  endif()
endforeach()
