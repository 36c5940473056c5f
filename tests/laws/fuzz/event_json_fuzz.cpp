// An event is accepted or refused. An accepted one is equal after writing and
// reading it again, and passes or fails the check of all events.

#include "troupe/core/event.hpp"

#include "fuzz_target.hpp"

using namespace troupe;
using troupe::testing::expect;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes,
                                      std::size_t size) {
  const auto data = parse_json(testing::text_of(bytes, size));
  if (!data)
    return 0;
  const auto said = event_from_json(*data);
  if (!said) {
    expect(said.error().code() == errc::invalid_argument,
           "the code of an error");
    return 0;
  }
  const auto checked = check_event(*said, size_limits());
  expect(checked || checked.error().code() == errc::invalid_argument
           || checked.error().code() == errc::too_large,
         "the code of a refusal");
  if (!checked)
    return 0;
  const auto written = to_json(*said);
  const auto again = parse_json(to_text(written));
  expect(again.has_value(), "the written form is JSON");
  const auto read = event_from_json(*again);
  expect(read.has_value(), "the written form can be read");
  expect(equal(to_json(*read), written), "an event stays the same");
  return 0;
}
