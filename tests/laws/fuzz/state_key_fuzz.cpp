// A split key joins to the same key, and trimming a session key twice equals
// trimming it once.

#include "troupe/core/delta.hpp"
#include "troupe/core/key.hpp"

#include "fuzz_target.hpp"

#include <string>

using namespace troupe;
using troupe::testing::expect;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes,
                                      std::size_t size) {
  const auto text = testing::text_of(bytes, size);
  const auto split = split_key(text);
  expect(join_key(split.where, split.name) == text,
         "a split key joins to the same text");
  const auto checked = check_key(text);
  if (checked)
    expect(is_utf8(text) && !checked->name.empty()
             && checked->name.size() <= 256
             && text.find('\0') == std::string_view::npos
             && !checked->name.starts_with("__"),
           "the rules of keys");
  delta recorded;
  expect(recorded.record(text, operation_kind::set, json(1)).has_value()
           == checked.has_value(),
         "record and check_key have the same rule");
  expect(recorded.empty() != checked.has_value(),
         "a key is recorded if and only if it is valid");
  const auto id = check_id(text, "id");
  if (id) {
    expect(is_utf8(*id) && !id->empty() && id->size() <= 512, "ids");
    expect(check_id(*id, "id").value() == *id, "an id is trimmed once");
  }
  return 0;
}
