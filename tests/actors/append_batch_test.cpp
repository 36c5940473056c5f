// The appends that a session decides together: judging, taking back, retries.

#include "troupe/actors/sessions/append_batch.hpp"

#include <boost/test/unit_test.hpp>

#include <memory>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::actors;

BOOST_AUTO_TEST_SUITE(appends_of_one_batch)

namespace {

// An append that adds `number` to the key "n", and `text` as its author.
std::unique_ptr<append>
adding(const std::string& id, int number, const std::string& text = "ann") {
  auto said = std::make_shared<event>();
  said->id = id;
  said->author = text;
  BOOST_REQUIRE(said->actions.state_delta.record(
    "n", operation_kind::add, value(json(number))));
  auto letter = std::make_unique<append>();
  letter->own = said;
  letter->event = std::move(said);
  return letter;
}

// A state whose key "n" has this value.
scope_state with_n(json held) {
  state_map keys;
  keys.set("n", value(std::move(held)));
  return scope_state(std::move(keys));
}

struct judging {
  explicit judging(json held) : state(with_n(std::move(held))) {}

  result<void> add(std::unique_ptr<append> next, bool undecided = false) {
    return batch.judge(batch.add(std::move(next)), state, undecided, {});
  }

  json n() { return state.judged_keys().find("n")->data(); }

  std::vector<std::string> accepted() const {
    std::vector<std::string> ids;
    for (const auto* each : batch.accepted())
      ids.push_back(each->event->id);
    return ids;
  }

  append_batch batch;
  scope_state state;
};

std::string code_of(const append& letter) {
  return letter.outcome ? "ok"
                        : std::string(to_string(letter.outcome.error().code()));
}

} // namespace

BOOST_AUTO_TEST_CASE(accepted_events_build_on_each_other) {
  judging on(1);
  BOOST_TEST(on.add(adding("a", 2)).has_value());
  BOOST_TEST(on.add(adding("b", 3)).has_value());
  BOOST_TEST(on.accepted() == std::vector<std::string>({"a", "b"}),
             boost::test_tools::per_element());
  BOOST_TEST(on.n() == 6);
}

BOOST_AUTO_TEST_CASE(a_refused_event_keeps_its_place_and_leaves_nothing) {
  judging on("text");
  BOOST_TEST(!on.add(adding("a", 2)).has_value());
  BOOST_TEST(on.batch.size() == 0U);
  BOOST_TEST(on.batch.letters().size() == 1U);
  BOOST_TEST(on.n() == json("text"));
}

BOOST_AUTO_TEST_CASE(the_last_event_can_be_taken_back) {
  judging on(1);
  BOOST_TEST(on.add(adding("a", 2)).has_value());
  BOOST_TEST(on.add(adding("b", 3), true).has_value());
  const auto& last
    = on.batch.drop_last(on.state, error(errc::conflict, "refused above"));
  BOOST_TEST(last.event->id == "b");
  BOOST_TEST(code_of(last) == "conflict");
  BOOST_TEST(on.batch.size() == 1U);
  BOOST_TEST(on.n() == 3);
}

BOOST_AUTO_TEST_CASE(a_creation_is_accepted_with_its_whole_past) {
  judging on(1);
  auto creation = std::make_unique<create>();
  creation->event = std::make_shared<event>();
  creation->past.push_back(adding("a", 2));
  creation->past.push_back(adding("b", 3));
  BOOST_TEST(!on.batch.creates());
  BOOST_TEST(on.add(std::move(creation)).has_value());
  BOOST_TEST(on.batch.creates());
  BOOST_TEST(on.batch.size() == 3U);
  BOOST_TEST(on.n() == 6);
}

BOOST_AUTO_TEST_CASE(one_refused_event_of_a_past_refuses_the_creation) {
  judging on(1);
  auto creation = std::make_unique<create>();
  creation->event = std::make_shared<event>();
  creation->past.push_back(adding("a", 2));
  auto wrong = std::make_shared<event>();
  BOOST_REQUIRE(wrong->actions.state_delta.record(
    "n", operation_kind::append, value(json(1))));
  creation->past.push_back(std::make_unique<append>());
  creation->past.back()->event = wrong;
  const auto judged = on.add(std::move(creation));
  BOOST_REQUIRE(!judged.has_value());
  BOOST_TEST(judged.error().message().starts_with("event 2: "));
  BOOST_TEST(on.batch.size() == 0U);
  BOOST_TEST(on.n() == 1);
}

BOOST_AUTO_TEST_CASE(a_retry_in_the_batch_follows_its_original) {
  judging on(1);
  BOOST_TEST(on.add(adding("a", 2)).has_value());
  on.batch.join(adding("a", 2), 0);
  BOOST_TEST(on.batch.letters().size() == 1U);
  auto& original = *on.batch.letters().front();
  BOOST_REQUIRE(!original.followers.empty());
  BOOST_TEST(static_cast<const append&>(original.followers.front()).joined);
}

BOOST_AUTO_TEST_CASE(a_retry_with_other_content_is_a_conflict) {
  judging on(1);
  BOOST_TEST(on.add(adding("a", 2)).has_value());
  on.batch.join(adding("a", 2, "bob"), 0);
  BOOST_REQUIRE(on.batch.letters().size() == 2U);
  BOOST_TEST(code_of(*on.batch.letters().back()) == "conflict");
  BOOST_TEST(on.batch.letters().front()->followers.empty());
}

BOOST_AUTO_TEST_CASE(a_retry_of_a_stored_event_gets_that_event) {
  append_batch batch;
  const auto stored = adding("a", 2)->event;
  batch.join(adding("a", 2), stored);
  batch.join(adding("a", 2, "bob"), stored);
  BOOST_REQUIRE(batch.letters().size() == 2U);
  BOOST_TEST((*batch.letters().front()->outcome == stored));
  BOOST_TEST(code_of(*batch.letters().back()) == "conflict");
}

BOOST_AUTO_TEST_CASE(an_append_behind_a_refused_one_of_its_writer_is_cut_off) {
  const auto order = std::make_shared<write_order>();
  order->refuse(1, error(errc::conflict, "refused"));
  append_batch batch;
  auto first = adding("a", 1);
  BOOST_TEST(!batch.cut_off(first));
  BOOST_TEST((first != nullptr));
  auto second = adding("b", 1);
  second->place = write_place(order, 2);
  BOOST_TEST(batch.cut_off(second));
  BOOST_REQUIRE(batch.letters().size() == 1U);
  BOOST_TEST(code_of(*batch.letters().front()) == "cancelled");
}

BOOST_AUTO_TEST_SUITE_END()
