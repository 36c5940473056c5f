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
  if (checked) {
    // Keys of artifacts' places are the only ones of the runtime: `__artifact/`
    // and a name, in the session's state.
    auto name = checked->name;
    if (checked->where == scope::session
        && name.starts_with(key_prefix_artifact))
      name.remove_prefix(key_prefix_artifact.size());
    else
      expect(!name.starts_with("__"), "names with '__' are the runtime's");
    expect(is_utf8(text) && !name.empty() && name.size() <= 256
             && text.find('\0') == std::string_view::npos,
           "the rules of keys");
    expect(check_new_key(text).has_value() || name.size() < text.size(),
           "keys that are refused when new have a prefix");
  }
  // The value of an artifact's key is a place, not a number.
  const bool takes_numbers = checked && !is_artifact_key(*checked);
  delta recorded;
  expect(recorded.record(text, operation_kind::set, json(1)).has_value()
           == takes_numbers,
         "record and check_key have the same rule");
  expect(recorded.empty() != takes_numbers,
         "a key is recorded if and only if it is valid");
  const auto id = check_id(text, "id");
  if (id) {
    expect(is_utf8(*id) && !id->empty() && id->size() <= 512, "ids");
    expect(check_id(*id, "id").value() == *id, "an id is trimmed once");
  }
  return 0;
}
