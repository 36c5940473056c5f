// The frame of commands that call the session service and print one line of
// JSON.

#pragma once

#include "troupe/cli/options/store_option.hpp"
#include "troupe/cli/terminal/ending.hpp"
#include "troupe/cli/terminal/exit_code.hpp"
#include "troupe/cli/terminal/visible_text.hpp"

#include <unistd.h>

namespace troupe::cli {

/// Writes one line of JSON.
inline result<void> print_line(output& target, const json& data) {
  return target.write(visible_json(data) + '\n');
}

/// A page of names in the form `{"apps": [string], "nextCursor": string}`, with
/// `field` in place of `apps`; the cursor is null on the last page.
inline json to_line(const name_page& page, const char* field) {
  return {
    {field, page.names},
    {"nextCursor", page.next_cursor.empty() ? json() : json(page.next_cursor)}};
}

/// Opens the store, calls `act(session_service&, output&)` and ends with its
/// result. A signal stops the output.
template <class Act>
int on_sessions(const store_option& store,
                interrupts& signals,
                const Act& act) {
  signals.begin();
  auto owners = runtime::open(store.for_runtime());
  if (!owners)
    return report(owners.error());
  output target(STDOUT_FILENO, signals.descriptor());
  auto sessions = owners->sessions();
  const result<void> done = act(sessions, target);
  return end(done, target, signals);
}

} // namespace troupe::cli
