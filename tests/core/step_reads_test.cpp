// The values that the plain writes of a step are based on.

#include "troupe/core/state.hpp"

#include <boost/test/unit_test.hpp>

#include <memory>
#include <optional>
#include <string>
#include <utility>

using namespace troupe;

BOOST_AUTO_TEST_SUITE(reads_of_a_step)

namespace {

using kind = operation_kind;

state reading(json session_keys,
              std::shared_ptr<const staged_deltas> staged = nullptr) {
  state_snapshot made;
  for (const auto& [name, held] : session_keys.items())
    made.session.set(name, value(held));
  state view(std::move(made), {}, std::move(staged));
  view.reads().start();
  return view;
}

// Returns the bases as text: `n=1` for a value that the owner had, `n=1/2` if
// the step has seen another one, `n=-/2` if it has not seen the owner's.
std::string bases_of(state& view) {
  std::string all;
  for (const auto& each : view.reads().take_bases()) {
    const auto owned = each.owned ? to_text(each.owned->data()) : "-";
    const auto seen = to_text(each.seen.data());
    all += (all.empty() ? "" : " ") + join_key(each.where, each.name) + "="
           + owned + (owned == seen ? "" : "/" + seen);
  }
  return all;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_set_is_based_on_the_last_read) {
  auto view = reading({{"n", 1}, {"gone", 2}, {"typed", 3}, {"blind", 4}});
  static_cast<void>(view.get("n"));
  static_cast<void>(view.find("new"));
  static_cast<void>(view.contains("gone"));
  static_cast<void>(view.get("typed", 0));
  state_snapshot later;
  later.session.set("n", value(5));
  view.renew(later);
  view.set("blind", 0);
  view.set("new", 0);
  view.add("typed", 1);
  view.erase("gone");
  // The step still goes by its first read.
  view.set("n", 0);
  BOOST_TEST(bases_of(view) == "new=null gone=2 n=1");
}

BOOST_AUTO_TEST_CASE(a_read_of_an_own_write_is_none) {
  auto view = reading({{"n", 1}, {"m", 1}});
  view.set("n", 2);
  static_cast<void>(view.get("n"));
  static_cast<void>(view.all());
  view.set("n", 3);
  BOOST_TEST(bases_of(view).empty());
  // Below an operation the value of the owner is read.
  view.add("k", 2);
  static_cast<void>(view.get("k"));
  view.set("k", 3);
  view.set("k", 4);
  BOOST_TEST(bases_of(view) == "k=null");
}

BOOST_AUTO_TEST_CASE(a_loop_reads_all_keys) {
  auto view = reading({{"n", 1}, {"m", 2}});
  for (const auto& [key, held] : view)
    static_cast<void>(held);
  view.set("n", 0);
  view.erase("m");
  BOOST_TEST(bases_of(view) == "n=1 m=2");
}

BOOST_AUTO_TEST_CASE(after_an_event_the_step_knows_its_own_value) {
  auto view = reading({{"n", 1}, {"typed", 1}});
  static_cast<void>(view.all());
  view.set("n", 2);
  view.add("typed", 1);
  static_cast<void>(bases_of(view));
  view.reads().note_event(view.take());
  view.set("n", 3);
  view.set("typed", 3);
  BOOST_TEST(bases_of(view) == "n=2");
  view.reads().forget();
  view.set("n", 4);
  BOOST_TEST(bases_of(view).empty());
}

BOOST_AUTO_TEST_CASE(changes_of_finished_tools_are_seen) {
  const auto staged = std::make_shared<staged_deltas>();
  delta first;
  first.record("n", kind::set, json(5)).value();
  first.record("m", kind::add, json(5)).value();
  staged->add(first);
  auto view = reading({{"n", 1}, {"m", 1}}, staged);
  for (const auto* key : {"n", "m"})
    view.set(key, view.get<int>(key) + 1);
  BOOST_TEST(bases_of(view) == "n=-/5 m=1/6");
}

BOOST_AUTO_TEST_CASE(nothing_is_noted_before_the_start) {
  state view;
  static_cast<void>(view.find("n"));
  view.set("n", 1);
  BOOST_TEST(bases_of(view).empty());
}

BOOST_AUTO_TEST_SUITE_END()
