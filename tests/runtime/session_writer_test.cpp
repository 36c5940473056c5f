// The ordered writer: an append after a failed one is not stored.

#include "troupe/runtime/session_writer.hpp"

#include "../random.hpp"
#include "counting.hpp"
#include "staged_store.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <memory>
#include <ostream>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;
namespace data = boost::unit_test::data;

using step = store_script::step;

BOOST_AUTO_TEST_SUITE(session_writers)

namespace {

struct failing_append {
  std::string name;
  troupe::event event;
  append_options options;
  std::string code;
};

std::ostream& operator<<(std::ostream& out, const failing_append& shown) {
  return out << shown.name;
}

event add_to_word(const std::string& key) {
  return operate({operation_on(key, "add", 1)});
}

event with_bad_id() {
  auto said = change({{"a", 1}});
  said.id = std::string(2'000, 'x');
  return said;
}

const std::vector<failing_append> failing_appends{
  {"broken rule", with_bad_id(), {}, "invalid_argument"},
  {"too large", change({{"a", std::string(300'000, 'x')}}), {}, "too_large"},
  {"refused by the session", add_to_word("word"), {}, "type_error"},
  {"refused by the user", add_to_word("user:word"), {}, "type_error"},
  {"refused by the app", add_to_word("app:word"), {}, "type_error"},
  {"revision", change({{"a", 1}}), {.expected_revision = 77}, "conflict"},
  {"id of another event", change({{"other", 1}}, "first"), {}, "conflict"},
};

std::vector<std::string> codes_of(const std::vector<result<event_ptr>>& all) {
  std::vector<std::string> codes;
  for (const auto& each : all)
    codes.push_back(code_of(each));
  return codes;
}

using strings = std::vector<std::string>;

} // namespace

BOOST_DATA_TEST_CASE(nothing_behind_a_failed_append_is_stored,
                     data::make(failing_appends) * data::make({false, true}),
                     failing,
                     over_a_store) {
  const staged_place place;
  runtime_fixture on(over_a_store ? place.options() : runtime_options());
  on.open("s", {{"word", "x"}, {"user:word", "x"}, {"app:word", "x"}});
  auto writer = on.sessions().writer(here);
  answers<event_ptr> appended;
  const auto append = [&](event said, append_options options = {}) {
    writer.append(std::move(said), options).then(appended.next());
  };
  append(counting("first"));
  append(failing.event, failing.options);
  append(change({{"b", 1}}, "second"));
  append(counting("third"));
  const auto all = appended.await();
  BOOST_TEST(codes_of(all)
             == strings({"ok", failing.code, "cancelled", "cancelled"}));
  BOOST_TEST(all[2].error().message().find(failing.code + ": ")
             != std::string::npos);
  BOOST_TEST(ids_of(on.events(here)) == strings({"first"}));
  BOOST_TEST(code_of(writer.append(change({{"b", 1}})).get()) == "cancelled");
  BOOST_TEST(code_of(writer.resume().get()) == "ok");
  BOOST_TEST(code_of(writer.append(counting("third")).get()) == "ok");
  BOOST_TEST(ids_of(on.events(here)) == strings({"first", "third"}));
}

BOOST_AUTO_TEST_CASE(other_appends_are_not_held_up_by_a_failed_writer) {
  runtime_fixture on;
  on.open();
  auto writer = on.sessions().writer(here);
  auto other = on.sessions().writer(here);
  BOOST_TEST(code_of(writer.append(counting(), {.expected_revision = 9}).get())
             == "conflict");
  BOOST_TEST(code_of(other.append(counting()).get()) == "ok");
  BOOST_TEST(on.append(here, counting()) == "ok");
  BOOST_TEST(code_of(writer.append(counting()).get()) == "cancelled");
}

BOOST_AUTO_TEST_CASE(nothing_behind_a_failed_commit_is_stored) {
  const staged_place place;
  runtime_fixture on(place.options());
  on.open();
  place.script->hold();
  auto writer = on.sessions().writer(here);
  answers<event_ptr> appended;
  writer.append(counting("first")).then(appended.next());
  place.script->arrived.await(2);
  // These are decided in a later commit, and decided again when the first one
  // fails.
  writer.append(counting("second")).then(appended.next());
  writer.append(change({{"a", 1}}, "third")).then(appended.next());
  on.sessions().append_event(here, counting("other")).then(appended.next());
  place.script->next_commits({step::fail});
  place.script->release();
  BOOST_TEST(codes_of(appended.await())
             == strings({"store_failed", "cancelled", "cancelled", "ok"}));
  BOOST_TEST(ids_of(on.events(here)) == strings({"other"}));
  BOOST_TEST(code_of(writer.resume().get()) == "ok");
  for (const auto* id : {"first", "second"})
    BOOST_TEST(code_of(writer.append(counting(id)).get()) == "ok");
  BOOST_TEST(ids_of(on.events(here)) == strings({"other", "first", "second"}));
  BOOST_TEST(place.damage().empty());
}

BOOST_AUTO_TEST_CASE(nothing_behind_a_busy_session_is_stored) {
  const staged_place place;
  auto options = place.options();
  options.session_appends_max = 4;
  runtime_fixture on(std::move(options));
  on.open();
  place.script->hold();
  auto writer = on.sessions().writer(here);
  answers<event_ptr> appended;
  for (int number = 0; number < 6; ++number)
    writer.append(counting(std::to_string(number))).then(appended.next());
  place.script->release();
  BOOST_TEST(codes_of(appended.await())
             == strings({"ok", "ok", "ok", "ok", "busy", "cancelled"}));
  BOOST_TEST(code_of(writer.append(counting("6")).get()) == "cancelled");
  BOOST_TEST(ids_of(on.events(here)) == strings({"0", "1", "2", "3"}));
}

BOOST_AUTO_TEST_CASE(nothing_behind_a_failed_load_is_stored) {
  const staged_place place;
  runtime_fixture(place.options()).open();
  runtime_fixture on(place.options());
  auto writer = on.sessions().writer(here);
  place.script->fail_loads(true);
  BOOST_TEST(code_of(writer.append(counting("first")).get()) == "store_failed");
  place.script->fail_loads(false);
  BOOST_TEST(code_of(writer.append(counting("second")).get()) == "cancelled");
  BOOST_TEST(on.events(here).empty());
  BOOST_TEST(code_of(writer.resume().get()) == "ok");
  BOOST_TEST(code_of(writer.append(counting("first")).get()) == "ok");
}

BOOST_AUTO_TEST_CASE(a_writer_resumes_when_all_of_it_is_answered) {
  const staged_place place;
  runtime_fixture on(place.options());
  on.open();
  place.script->hold();
  auto writer = on.sessions().writer(here);
  answers<event_ptr> appended;
  writer.append(counting("first")).then(appended.next());
  writer.append(with_bad_id()).then(appended.next());
  tally resumed;
  writer.resume().then([&resumed](const result<void>&) { resumed.add(); });
  BOOST_TEST(code_of(writer.append(counting("second")).get()) == "cancelled");
  // Long enough for an answer that does not wait for the store.
  BOOST_TEST(!resumed.reaches(1, 100ms));
  // This commit fails, too; its result is not known yet.
  place.script->next_commits({step::fail});
  place.script->release();
  resumed.await(1);
  BOOST_TEST(codes_of(appended.await())
             == strings({"store_failed", "invalid_argument"}));
  BOOST_TEST(code_of(writer.append(counting("first")).get()) == "ok");
  BOOST_TEST(ids_of(on.events(here)) == strings({"first"}));
}

// The app decides a value whose commit then fails. The refusal that is based on
// this value is withdrawn, and later appends are decided again.
BOOST_AUTO_TEST_CASE(a_refusal_on_stale_state_cuts_nothing) {
  const staged_place place;
  runtime_fixture on(place.options());
  on.open("s", {{"app:k", "old"}});
  const auto other = on.open("t");
  place.script->hold();
  answers<event_ptr> others;
  on.sessions().append_event(other, counting()).then(others.next());
  place.script->arrived.await(3);
  on.sessions()
    .append_event(other, change({{"app:k", "newer"}}))
    .then(others.next());
  // No answer can be waited for, so the app gets time to decide.
  BOOST_TEST(!others.any_within(100ms));
  auto swap = change(json::object(), "swap");
  record_operations(
    swap.actions.state_delta,
    {{{"op", "cas"}, {"key", "app:k"}, {"value", "new"}, {"expected", "old"}}})
    .value();
  auto writer = on.sessions().writer(here);
  answers<event_ptr> appended;
  writer.append(std::move(swap)).then(appended.next());
  for (int number = 0; number < 20; ++number)
    writer.append(change({{"b", number}})).then(appended.next());
  BOOST_TEST(!appended.any_within(100ms));
  place.script->next_commits({step::work, step::fail});
  place.script->release();
  BOOST_TEST(codes_of(others.await()) == strings({"ok", "store_failed"}));
  for (const auto& each : appended.await())
    BOOST_TEST(code_of(each) == "ok");
  BOOST_TEST(on.state(here)["b"] == 19);
  BOOST_TEST(on.app_state()["k"] == "new");
}

// Sends numbered events, many at a time, and after each failure all that are
// left.
BOOST_DATA_TEST_CASE(a_stream_that_is_sent_again_keeps_its_order,
                     data::xrange(20),
                     seed) {
  const staged_place place;
  auto chance
    = std::make_shared<random_source>(static_cast<std::uint64_t>(seed));
  auto options = place.options();
  options.remembered_ids = 16;
  options.events_kept = 8;
  runtime_fixture on(std::move(options));
  on.open();
  place.script->each_commit([chance] {
    const auto drawn = chance->below(8);
    return drawn == 0   ? step::fail
           : drawn == 1 ? step::fail_anyway
                        : step::work;
  });
  constexpr std::size_t count = 200;
  auto writer = on.sessions().writer(here);
  std::size_t acknowledged = 0;
  while (acknowledged < count) {
    answers<event_ptr> appended;
    for (auto next = acknowledged; next < count; ++next)
      writer
        .append(next % 3 == 0 ? counting(std::to_string(next))
                              : change({{"a", next}}, std::to_string(next)))
        .then(appended.next());
    for (const auto& each : appended.await()) {
      if (!each)
        break;
      ++acknowledged;
    }
    writer.resume().value();
  }
  place.script->each_commit(nullptr);
  strings expected;
  for (std::size_t number = 0; number < count; ++number)
    expected.push_back(std::to_string(number));
  BOOST_TEST(ids_of(on.events(here)) == expected);
  BOOST_TEST(place.damage().empty());
}

BOOST_AUTO_TEST_SUITE_END()
