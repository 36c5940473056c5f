// A file of sessions is accepted or refused. Accepted sessions can be imported:
// their ids, keys and events are valid.

#include "troupe/cli/sessions/portable.hpp"

#include "fuzz_target.hpp"

using namespace troupe;
using troupe::testing::expect;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes,
                                      std::size_t size) {
  const auto read = cli::read_portable_sessions(testing::text_of(bytes, size));
  if (!read) {
    expect(read.error().code() == errc::invalid_argument
             || read.error().code() == errc::too_large,
           "the code of an error");
    return 0;
  }
  for (const auto& each : *read) {
    for (const auto& [key, held] : each.state.items()) {
      const auto checked = check_key(key);
      expect(checked && checked->where != scope::temp, "keys are checked");
      expect(!held.is_null(), "nulls are left out");
    }
    for (const auto& said : each.events)
      expect(check_event(said, size_limits()).has_value(),
             "events are checked");
    expect(delta::from_json(each.initial_state()).has_value(),
           "the initial state can be set");
  }
  return 0;
}
