// The event where a run starts to read. It is searched from the newest event
// back, no further than necessary.

#include "troupe/agents/turns/history_search.hpp"

#include "troupe/agents/summary.hpp"
#include "troupe/agents/turns/resumption.hpp"
#include "troupe/contexts/lanes/isolation.hpp"

#include "../outcome.hpp"
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

using namespace troupe;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(history_searches)

namespace {

content answer_to(const std::string& call) {
  return {"user", {part(function_response{call, "f", json::object()})}};
}

class history {
public:
  event& add(event said, std::string author, std::string run) {
    said.id = "e" + std::to_string(events_.size() + 1);
    said.author = std::move(author);
    said.invocation_id = std::move(run);
    said.timestamp = timestamp(std::chrono::seconds(events_.size() + 1));
    return events_.emplace_back(std::move(said));
  }

  void user(std::string run) {
    add(content("user", {part("hi")}), "user", run);
  }

  void says(std::string run) { add(content("model", {part("x")}), "a", run); }

  void calls(const std::string& id, std::string run) {
    event said(
      content("model", {part(function_call{id, "f", json::object()})}));
    said.long_running_tool_ids = {id};
    add(std::move(said), "a", std::move(run));
  }

  void pauses(std::vector<std::string> ids, std::string run) {
    checkpoint where{.agent = "a"};
    where.waits_for = ids;
    where.turn = std::move(ids);
    add(make_pause_event("a", where), "a", std::move(run));
  }

  /// A message that resumes the pause with event number `pause`.
  void goes_on(const std::string& call, std::size_t pause, std::string run) {
    auto& said = add(answer_to(call), "user", std::move(run));
    claim_pause(said, "e" + std::to_string(pause));
  }

  void sums_up(std::optional<std::uint64_t> end = {}) {
    add(make_summary_event("sum", end), "user", "");
  }

  /// Searches the history; `looked_at` is the oldest event that it needed.
  history_search search(const content& message, history_extent reads) {
    history_search found(message, reads);
    looked_at = events_.size() + 1;
    while (looked_at > 1 && found.needs_more()) {
      --looked_at;
      found.take(looked_at, events_[looked_at - 1]);
    }
    BOOST_TEST(!found.needs_more());
    return found;
  }

  std::size_t looked_at = 0;

private:
  std::vector<event> events_;
};

const content hello("user", {part("hello")});

} // namespace

BOOST_AUTO_TEST_CASE(nothing_is_looked_for_in_vain) {
  BOOST_TEST(!history_search(hello, history_extent::newest(5)).needs_more());
  BOOST_TEST(!history_search(hello, history_extent::none()).needs_more());
  BOOST_TEST(!history_search(hello, history_extent::all()).needs_more());
}

// Messages to a task belong to the turn in which the task was called.
BOOST_AUTO_TEST_CASE(the_message_that_starts_the_turn_is_found) {
  history events;
  events.user("r1");
  events.user("r2");
  events.says("r2");
  set_scope(events.add(content("user", {part("in")}), "user", "r3"), "c1");
  events.goes_on("c2", 1, "r4");
  const auto found = events.search(hello, history_extent::since_turn());
  BOOST_TEST(found.turn() == 2U);
  BOOST_TEST(events.looked_at == 2U);
  history none;
  none.says("r1");
  BOOST_TEST(none.search(hello, history_extent::since_turn()).turn() == 1U);
  BOOST_TEST(history_search(hello, history_extent::all()).turn() == 1U);
}

BOOST_AUTO_TEST_CASE(the_newest_summary_is_found) {
  history events;
  events.user("r1");
  events.sums_up();
  events.user("r2");
  events.says("r2");
  events.sums_up(3);
  events.user("r3");
  const auto found = events.search(hello, history_extent::since_summary());
  BOOST_TEST(found.since_summary() == 4U);
  BOOST_TEST(events.looked_at == 5U);
}

BOOST_AUTO_TEST_CASE(a_summary_stands_for_no_event_behind_it) {
  history events;
  events.user("r1");
  events.sums_up(7);
  events.user("r2");
  const auto found = events.search(hello, history_extent::since_summary());
  BOOST_TEST(found.since_summary() == 2U);
}

BOOST_AUTO_TEST_CASE(a_summary_may_name_any_number_as_its_end) {
  for (const auto& [end, first] :
       {std::pair<json, std::uint64_t>{UINT64_MAX, 3U},
        {std::int64_t{1}, 2U},
        {0, 1U},
        {-1, 3U}}) {
    history events;
    events.user("r1");
    events.user("r2");
    auto said = make_summary_event("sum");
    auto extra = said.actions.extra.data();
    extra["compaction"]["endRevision"] = end;
    said.actions.extra = extra;
    events.add(std::move(said), "user", "");
    events.user("r3");
    const auto found = events.search(hello, history_extent::since_summary());
    BOOST_TEST(found.since_summary() == first, end.dump());
  }
}

// ADK writes the end of a summary as a time.
BOOST_AUTO_TEST_CASE(a_summary_ends_at_its_time) {
  history events;
  events.user("r1");
  events.user("r2");
  events.user("r3");
  event said;
  said.actions.extra = json{
    {"compaction",
     {{"startTimestamp", 1.0},
      {"endTimestamp", 2.0},
      {"compactedContent",
       {{"role", "model"}, {"parts", json::array({{{"text", "sum"}}})}}}}}};
  events.add(std::move(said), "user", "");
  events.user("r4");
  const auto found = events.search(hello, history_extent::since_summary());
  BOOST_TEST(found.since_summary() == 3U);
  BOOST_TEST(events.looked_at == 1U); // An older event may not be covered.
}

// Older events, or an older summary of them, are read then, too.
BOOST_AUTO_TEST_CASE(all_is_read_before_a_summary_of_later_events) {
  for (const auto& start :
       {json{{"startTimestamp", 2.0}, {"endTimestamp", 3.0}},
        json{{"startRevision", 2}, {"endTimestamp", 3.0}},
        json{{"startRevision", 2}, {"endRevision", 3}}}) {
    history events;
    events.user("r1");
    events.user("r2");
    events.user("r3");
    auto said = make_summary_event("sum");
    auto extra = said.actions.extra.data();
    extra["compaction"].update(start);
    said.actions.extra = extra;
    events.add(std::move(said), "user", "");
    events.user("r4");
    const auto found = events.search(hello, history_extent::since_summary());
    BOOST_TEST(found.since_summary() == 1U, start.dump());
  }
}

BOOST_AUTO_TEST_CASE(without_a_summary_all_is_read) {
  history events;
  events.user("r1");
  events.says("r1");
  const auto found = events.search(hello, history_extent::since_summary());
  BOOST_TEST(found.since_summary() == 1U);
}

BOOST_AUTO_TEST_CASE(an_answer_reads_on_from_the_message_of_its_run) {
  history events;
  events.user("r0");
  events.user("r1");
  events.user("r2"); // Belongs to another run at the same time.
  events.calls("c1", "r1");
  events.pauses({"c1"}, "r1");
  events.says("r2");
  const auto found = events.search(answer_to("c1"), history_extent::none());
  BOOST_TEST(found.answered().value_or(0) == 2U);
  BOOST_TEST(events.looked_at == 2U);
}

BOOST_AUTO_TEST_CASE(runs_that_went_on_are_followed_to_their_first_message) {
  history events;
  events.user("r0");
  events.user("r1");                 // 2
  events.calls("c1", "r1");          // 3
  events.calls("b1", "r1");          // 4
  events.pauses({"c1", "b1"}, "r1"); // 5
  events.user("rx");                 // 6
  events.says("rx");                 // 7
  events.goes_on("c1", 5, "r2");     // 8
  events.calls("c2", "r2");          // 9
  events.pauses({"c2", "b1"}, "r2"); // 10
  const auto found = events.search(answer_to("c2"), history_extent::none());
  BOOST_TEST(found.answered().value_or(0) == 2U);
  BOOST_TEST(events.looked_at == 2U);
}

BOOST_AUTO_TEST_CASE(a_call_of_no_run_belongs_to_the_message_before_it) {
  history events;
  events.user("");
  events.user("");
  events.calls("c1", "");
  events.add(answer_to("c0"), "user", "");
  const auto found = events.search(answer_to("c1"), history_extent::none());
  BOOST_TEST(found.answered().value_or(0) == 2U);
}

BOOST_AUTO_TEST_CASE(a_run_without_a_message_is_read_from_the_start) {
  history events;
  events.user("r0");
  events.calls("c1", "r1");
  const auto found = events.search(answer_to("c1"), history_extent::none());
  BOOST_TEST(found.answered().value_or(0) == 1U);
}

BOOST_AUTO_TEST_CASE(an_answer_to_no_call_reads_nothing) {
  history events;
  events.user("r0");
  events.says("r0");
  const auto found = events.search(answer_to("c1"), history_extent::none());
  BOOST_TEST(!found.answered().has_value());
}

BOOST_AUTO_TEST_SUITE_END()
