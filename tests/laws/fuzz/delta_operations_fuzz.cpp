// A list of lists of operations, in the form of `stateOps`. Judged as one batch
// they give the same result as one by one, and a refused one has no effect.

#include "troupe/core/delta.hpp"
#include "troupe/core/support/scope_state.hpp"

#include "fuzz_target.hpp"

#include <deque>
#include <vector>

using namespace troupe;
using troupe::testing::expect;

namespace {

constexpr size_limits limits{.value_bytes_max = 200, .event_bytes_max = 1'000};

std::deque<delta> read(std::string_view text) {
  std::deque<delta> recorded;
  const auto data = parse_json(text);
  if (!data || !data->is_array())
    return recorded;
  for (const auto& each : *data) {
    delta next;
    const auto before = next;
    if (record_operations(next, each))
      recorded.push_back(std::move(next));
    else if (each.is_array() && each.size() == 1)
      expect(next == before, "a refused operation is not recorded");
  }
  return recorded;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes,
                                      std::size_t size) {
  const auto deltas = read(testing::text_of(bytes, size));
  for (const auto where :
       {scope::session, scope::user, scope::app, scope::temp}) {
    scope_state together;
    scope_state one_by_one;
    std::vector<resolution> resolved;
    std::vector<resolution> resolved_alone;
    for (const auto& each : deltas) {
      const auto share = each.share(where);
      if (share.empty())
        continue;
      const auto before = one_by_one.keys();
      const auto judged = together.judge(share, resolved, false, limits);
      const auto alone = one_by_one.judge(share, resolved_alone, false, limits);
      expect(judged.has_value() == alone.has_value(),
             "a batch refuses what its shares refuse");
      if (!alone)
        expect(judged.error().code() == alone.error().code(),
               "a batch refuses for the same reason");
      one_by_one.install();
      if (!alone)
        expect(one_by_one.keys() == before, "a refused share leaves nothing");
    }
    together.install();
    expect(together.keys() == one_by_one.keys(),
           "a batch does what its shares do");
    expect(together.revision() == one_by_one.revision(),
           "every share is a revision");
    expect(resolved.size() == resolved_alone.size(),
           "a batch resolves what its shares resolve");
    // Replaying the resolved values gives the same state as the typed
    // operations.
    for (std::size_t index = 0; index < resolved.size(); ++index)
      expect(resolved[index].outcome == resolved_alone[index].outcome,
             "a batch resolves to the same values");
  }
  return 0;
}
