// Histories that the search accepts, histories that it rejects, and the text of
// its findings.

#include "linearizability.hpp"

#include "../../random.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <optional>

using namespace troupe::testing;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(linearizability, *boost::unit_test::timeout(120))

namespace {

using kind = register_spec::kind;
using history = std::vector<timed_call<register_spec::operation>>;

// Builds a history by hand: `at(1, 4, read(7))` is a call asked at 1 and
// answered at 4, by a caller of its own.
class calls {
public:
  calls& at(std::uint64_t asked,
            std::uint64_t answered,
            register_spec::operation what) {
    all_.push_back({what, asked, answered, all_.size()});
    return *this;
  }

  /// Returns the violation as text; empty if there is none.
  std::string finding() const {
    return check_linearizability<register_spec>("k", all_).finding;
  }

  bool is_linearizable() const { return finding().empty(); }

private:
  history all_;
};

register_spec::operation read(std::optional<std::int64_t> seen) {
  return {.what = kind::read, .seen = seen};
}

register_spec::operation set(std::int64_t to) {
  return {.what = kind::set, .operand = to, .seen = to};
}

register_spec::operation add(std::int64_t by, std::int64_t seen) {
  return {.what = kind::add, .operand = by, .seen = seen};
}

register_spec::operation erase() {
  return {.what = kind::erase};
}

register_spec::operation
cas(std::optional<std::int64_t> from, std::int64_t to, bool done) {
  return {.what = kind::compare_and_set,
          .operand = to,
          .expected = from,
          .refused = !done,
          .seen = to};
}

bool says(const std::string& finding, const std::string& words) {
  BOOST_TEST_INFO(finding);
  return finding.find(words) != std::string::npos;
}

// Generates a history of one real register: every call takes effect at some
// moment between its question and its answer.
history real_history(random_source& random, std::size_t count) {
  struct moment {
    std::uint64_t effect;
    timed_call<register_spec::operation> call;
  };

  std::vector<moment> moments;
  for (std::size_t index = 0; index < count; ++index) {
    const auto asked = random.below(count * 4);
    const auto effect = asked + random.below(12);
    auto answered = effect + random.below(12);
    if (random.one_in(100))
      answered = never;
    const auto value = static_cast<std::int64_t>(random.below(4));
    register_spec::operation what;
    what.what = static_cast<kind>(random.below(5));
    what.operand = value;
    if (what.what == kind::compare_and_set && random.one_in(2))
      what.expected = static_cast<std::int64_t>(random.below(4));
    moments.push_back({effect, {what, asked, answered, index}});
  }
  std::ranges::stable_sort(moments, {}, &moment::effect);
  register_spec::state held;
  history all;
  for (auto& [effect, call] : moments) {
    auto& what = call.what;
    const bool lost = call.answered == never && random.one_in(2);
    if (!lost) {
      what.refused
        = what.what == kind::compare_and_set && held != what.expected;
      if (!what.refused)
        register_spec::step(held, what, false);
      what.seen = held;
    }
    all.push_back(call);
  }
  return all;
}

} // namespace

BOOST_AUTO_TEST_CASE(one_call_after_the_other_is_linearizable) {
  BOOST_TEST(calls().is_linearizable());
  BOOST_TEST(calls()
               .at(1, 2, read({}))
               .at(3, 4, set(7))
               .at(5, 6, add(3, 10))
               .at(7, 8, cas(10, 5, true))
               .at(9, 10, cas(10, 6, false))
               .at(11, 12, read(5))
               .at(13, 14, erase())
               .at(15, 16, cas({}, 1, true))
               .at(17, 18, read(1))
               .is_linearizable());
}

BOOST_AUTO_TEST_CASE(calls_that_overlap_may_take_effect_in_any_order) {
  BOOST_TEST(calls()
               .at(1, 10, set(1))
               .at(2, 9, set(2))
               .at(11, 12, read(1))
               .is_linearizable());
  BOOST_TEST(calls()
               .at(1, 10, set(1))
               .at(2, 9, set(2))
               .at(11, 12, read(2))
               .is_linearizable());
  BOOST_TEST(calls()
               .at(1, 10, set(1))
               .at(2, 3, read({}))
               .at(4, 5, read(1))
               .is_linearizable());
  // A question and an answer at the same moment overlap.
  BOOST_TEST(calls().at(1, 5, set(1)).at(5, 9, read({})).is_linearizable());
}

BOOST_AUTO_TEST_CASE(a_stale_read_is_found) {
  const auto found = calls()
                       .at(1, 2, set(1))
                       .at(3, 4, set(2))
                       .at(5, 6, read(1))
                       .at(7, 8, read(2))
                       .finding();
  BOOST_TEST(says(found, "key 'k': its first 3 of 4 calls"));
  BOOST_TEST(
    says(found, "the call that breaks it is\n  caller 2 [5, 6]: read gave 1"));
  BOOST_TEST(says(found, "then it is 2, and none of these fits"));
}

BOOST_AUTO_TEST_CASE(a_lost_update_is_found) {
  const auto found = calls()
                       .at(1, 9, add(1, 1))
                       .at(2, 8, add(1, 1))
                       .at(10, 11, read(1))
                       .finding();
  BOOST_TEST(says(found, "add 1 gave 1"));
}

BOOST_AUTO_TEST_CASE(a_read_that_goes_back_is_found) {
  const auto found
    = calls().at(1, 20, set(1)).at(2, 3, read(1)).at(4, 5, read({})).finding();
  BOOST_TEST(says(found, "caller 2 [4, 5]: read gave absent"));
}

BOOST_AUTO_TEST_CASE(two_winners_of_one_compare_and_set_are_found) {
  const auto found = calls()
                       .at(1, 2, set(0))
                       .at(3, 9, cas(0, 1, true))
                       .at(4, 8, cas(0, 2, true))
                       .finding();
  BOOST_TEST(says(found, "cas from 0 to"));
  BOOST_TEST(says(found, "its first 3 of 3 calls"));
}

BOOST_AUTO_TEST_CASE(a_refusal_without_a_reason_is_found) {
  const auto found
    = calls().at(1, 2, set(3)).at(3, 4, cas(3, 4, false)).finding();
  BOOST_TEST(says(found, "cas from 3 to 4 was refused"));
}

BOOST_AUTO_TEST_CASE(a_value_of_nobody_is_found) {
  BOOST_TEST(
    says(calls().at(1, 2, set(3)).at(3, 4, read(5)).finding(), "read gave 5"));
}

BOOST_AUTO_TEST_CASE(an_unknown_outcome_may_come_late_once_or_never) {
  BOOST_TEST(calls().at(1, never, set(1)).at(2, 3, read({})).is_linearizable());
  BOOST_TEST(calls()
               .at(1, never, set(1))
               .at(2, 3, read({}))
               .at(100, 101, read(1))
               .is_linearizable());
  BOOST_TEST(calls()
               .at(1, never, cas(9, 1, true))
               .at(2, 3, set(2))
               .at(4, 5, read(2))
               .is_linearizable());
  // The unanswered call takes effect at most once, and not before it was asked.
  BOOST_TEST(says(calls()
                    .at(1, never, set(1))
                    .at(2, 3, read(1))
                    .at(4, 5, set(2))
                    .at(6, 7, read(2))
                    .at(8, 9, read(1))
                    .finding(),
                  "caller 4 [8, 9]: read gave 1"));
  BOOST_TEST(says(calls().at(1, 2, read(1)).at(3, never, set(1)).finding(),
                  "its first 1 of 2 calls"));
}

BOOST_AUTO_TEST_CASE(lists_are_told_apart_by_every_element) {
  const auto list = [](std::initializer_list<std::uint64_t> elements) {
    list_spec::state made;
    for (const auto each : elements)
      list_spec::append(made, each);
    return made;
  };
  using call = timed_call<list_spec::operation>;
  const auto check = [](std::vector<call> history) {
    return check_linearizability<list_spec>("l", history).finding;
  };
  const call one{{.appended = 1}, 1, 5, 0};
  const call two{{.appended = 2}, 2, 6, 1};
  BOOST_TEST(check({one, two, {{.seen = list({1, 2})}, 7, 8, 2}}).empty());
  BOOST_TEST(check({one, two, {{.seen = list({2, 1})}, 7, 8, 2}}).empty());
  BOOST_TEST(says(check({one, two, {{.seen = list({2})}, 7, 8, 2}}),
                  "read gave a list of 1"));
  BOOST_TEST(says(check({one,
                         two,
                         {{.seen = list({1, 2})}, 7, 8, 2},
                         {{.seen = list({2, 1})}, 9, 10, 2}}),
                  "its first 4 of 4 calls"));
  // An append was answered with the place of another append.
  BOOST_TEST(says(check({one, {{2, list({2})}, 6, 7, 1}}), "append 2 gave"));
}

BOOST_AUTO_TEST_CASE(sessions_come_and_go) {
  using enum lifetime_spec::kind;
  using call = timed_call<lifetime_spec::operation>;
  const auto check = [](const std::vector<call>& all) {
    return check_linearizability<lifetime_spec>("s", all).finding;
  };
  const call made{{create, true}, 1, 2, 0};
  const call stored{{append, true}, 3, 9, 1};
  const call gone{{remove, true}, 4, 8, 2};
  BOOST_TEST(check({made, stored, gone, {{get, false}, 10, 11, 3}}) == "");
  BOOST_TEST(check({made, stored, {{get, true, 1}, 5, 6, 3}, gone}) == "");
  BOOST_TEST(check({made, gone, {{create, true}, 5, 9, 3}}) == "");
  // An append without a session, two creations, and a session that came back.
  BOOST_TEST(says(check({{{append, true}, 1, 2, 0}}), "appended"));
  BOOST_TEST(says(check({made, {{create, true}, 1, 9, 3}}), "created"));
  BOOST_TEST(says(check({made, gone, {{get, true, 0}, 10, 11, 3}}),
                  "get found revision 0"));
  BOOST_TEST(says(check({made, stored, {{get, true, 0}, 10, 11, 3}}),
                  "get found revision 0"));
}

BOOST_AUTO_TEST_CASE(a_search_that_takes_too_long_is_given_up) {
  // Sixty concurrent sets, then a read that sees none of them.
  history all;
  for (std::uint64_t index = 0; index < 60; ++index)
    all.push_back({set(static_cast<std::int64_t>(index)), 1, 100, index});
  all.push_back({read({}), 101, 102, 60});
  const auto verdict = check_linearizability<register_spec>("k", all, 10'000);
  BOOST_TEST((verdict.outcome == search_outcome::undecided));
  BOOST_TEST(says(verdict.finding, "given up after 10000 steps"));
}

BOOST_DATA_TEST_CASE(what_one_register_gave_is_linearizable,
                     data::xrange(1U, 31U),
                     seed) {
  random_source random(seed);
  const auto all = real_history(random, 400);
  BOOST_TEST(check_linearizability<register_spec>("k", all).finding == "");
}

// A wrong answer can still be possible by chance; a value that was never
// written cannot.
BOOST_DATA_TEST_CASE(one_wrong_answer_among_many_is_found,
                     data::xrange(1U, 31U),
                     seed) {
  random_source random(seed);
  auto all = real_history(random, 400);
  std::vector<std::size_t> reads;
  for (std::size_t index = 0; index < all.size(); ++index)
    if (all[index].what.what == kind::read && all[index].answered != never)
      reads.push_back(index);
  auto& wrong = all[random.pick(reads)];
  wrong.what.seen = -1'000'000;
  BOOST_TEST(says(check_linearizability<register_spec>("k", all).finding,
                  "read gave -1000000"));
}

BOOST_AUTO_TEST_SUITE_END()
