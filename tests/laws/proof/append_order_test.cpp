// Hand-made histories of appends: correct ones, and one with each kind of
// anomaly.

#include "append_order.hpp"

#include <boost/test/unit_test.hpp>

#include <utility>

using namespace troupe::testing;

BOOST_AUTO_TEST_SUITE(append_order)

namespace {

constexpr std::uint32_t x = 0;
constexpr std::uint32_t y = 1;

// Builds a history. By default each call is made by a process of its own, after
// the end of the call before.
class script {
public:
  script& append(std::uint32_t key, token what, std::size_t place = 0) {
    return call().also_append(key, what, place);
  }

  script& also_append(std::uint32_t key, token what, std::size_t place = 0) {
    calls.back().appends.push_back({key, what, place});
    return *this;
  }

  script& read(std::uint32_t key, std::vector<token> list) {
    return call().also_read(key, std::move(list));
  }

  script& also_read(std::uint32_t key, std::vector<token> list) {
    calls.back().reads.push_back({key, std::move(list)});
    return *this;
  }

  script& by(std::size_t process, std::size_t channel = 0) {
    calls.back().process = process;
    calls.back().channel = channel;
    return *this;
  }

  script& at(std::uint64_t asked, std::uint64_t answered) {
    calls.back().asked = asked;
    calls.back().answered = answered;
    return *this;
  }

  script& refused() {
    calls.back().came_to = fate::refused;
    return *this;
  }

  script& unknown() {
    calls.back().came_to = fate::unknown;
    return *this;
  }

  std::string finding(time_order time = time_order::none) const {
    return to_string(
      check_append_order(calls, {.time = time, .key_names = {"app:x", "y"}}));
  }

  std::vector<list_transaction> calls;

private:
  script& call() {
    list_transaction made;
    made.process = 100 + calls.size();
    made.asked = calls.size() * 10 + 1;
    made.answered = made.asked + 5;
    calls.push_back(std::move(made));
    return *this;
  }
};

bool says(const std::string& finding, const std::string& words) {
  BOOST_TEST_INFO(finding);
  return finding.find(words) != std::string::npos;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_good_history_has_no_findings) {
  script good;
  good.append(x, 1, 1).also_append(y, 2, 1).by(1);
  good.read(x, {1}).also_read(y, {2}).by(2);
  good.append(x, 3, 2).by(1);
  good.append(x, 4).refused();
  good.append(x, 5).unknown();
  good.append(x, 6).unknown();
  good.read(x, {1, 3, 5}).also_read(y, {2}).by(2);
  BOOST_TEST(good.finding() == "");
  BOOST_TEST(good.finding(time_order::process) == "");
  BOOST_TEST(good.finding(time_order::all) == "");
  const auto verdict = check_append_order(good.calls, {time_order::all});
  BOOST_TEST(verdict.appends == 6U);
  BOOST_TEST(verdict.reads == 4U);
  BOOST_TEST(verdict.edges.at("ww") == 2U);
  BOOST_TEST(verdict.edges.at("wr") == 4U);
  BOOST_TEST(verdict.edges.at("rw") == 1U);
  BOOST_TEST(verdict.edges.at("time") > 0U);
}

BOOST_AUTO_TEST_CASE(what_was_lost_is_found) {
  script bad;
  bad.append(x, 1);
  bad.append(x, 2);
  bad.read(x, {2});
  BOOST_TEST(says(bad.finding(),
                  "lost: T0 by process 100 [1, 6], append 1 to 'app:x' was "
                  "acknowledged, but T2"));
  // A reader that asked earlier may miss an append. A later reader may miss an
  // append that was never acknowledged.
  script good;
  good.append(x, 1).at(5, 9);
  good.append(x, 2).unknown().at(1, 0);
  good.read(x, {}).at(7, 12);
  BOOST_TEST(good.finding(time_order::all) == "");
}

BOOST_AUTO_TEST_CASE(what_is_there_twice_is_found) {
  script bad;
  bad.append(x, 1);
  bad.append(x, 2);
  bad.read(x, {1, 2, 1});
  BOOST_TEST(says(bad.finding(), "duplicate: 'app:x' holds 1 twice: T2"));
}

BOOST_AUTO_TEST_CASE(what_nobody_has_sent_is_found) {
  script bad;
  bad.append(y, 1);
  bad.read(x, {1});
  BOOST_TEST(says(bad.finding(), "ghost: 1 was never appended to 'app:x'"));
  script worse;
  worse.read(x, {9});
  BOOST_TEST(says(worse.finding(), "ghost: 9 was never appended"));
}

BOOST_AUTO_TEST_CASE(readers_that_disagree_are_found) {
  script bad;
  bad.append(x, 1);
  bad.append(x, 2);
  bad.append(x, 3);
  bad.read(x, {1, 2, 3});
  bad.read(x, {2, 1});
  BOOST_TEST(
    says(bad.finding(), "incompatible orders: number 1 of 'app:x' is 2 in T4"));
  BOOST_TEST(says(bad.finding(), "and 1 in T3"));
}

BOOST_AUTO_TEST_CASE(a_lost_update_is_two_at_one_place) {
  script bad;
  bad.append(x, 1, 1);
  bad.append(x, 2, 1);
  bad.read(x, {1, 2});
  BOOST_TEST(says(bad.finding(), "other place: T1"));
  BOOST_TEST(says(bad.finding(), "others read it as number 2"));
}

BOOST_AUTO_TEST_CASE(what_a_producer_sent_later_stands_behind) {
  script bad;
  bad.append(x, 1).by(1, 7).at(1, 20);
  bad.append(x, 2).by(1, 7).at(2, 19);
  bad.read(x, {2, 1});
  BOOST_TEST(
    says(bad.finding(),
         "an append that was sent later stands first: T1 by process 1"));
  BOOST_TEST(says(bad.finding(), "before T0 by process 1"));
  // An append on another channel may overtake; so may another process.
  bad.calls[1].channel = 8;
  BOOST_TEST(bad.finding() == "");
  bad.calls[1].channel = 7;
  bad.calls[1].process = 2;
  BOOST_TEST(bad.finding() == "");
}

BOOST_AUTO_TEST_CASE(what_was_refused_is_not_read) {
  script bad;
  bad.append(x, 1).refused();
  bad.read(x, {1});
  BOOST_TEST(says(bad.finding(), "aborted read (G1a): 1 is in T1"));
}

BOOST_AUTO_TEST_CASE(a_half_of_what_one_call_appends_to_a_key_is_not_read) {
  script bad;
  bad.append(x, 1).also_append(x, 2);
  bad.read(x, {1});
  bad.read(x, {1, 2});
  BOOST_TEST(says(bad.finding(), "intermediate read (G1b): T1"));
}

BOOST_AUTO_TEST_CASE(half_of_an_event_is_a_g_single) {
  script bad;
  bad.append(x, 1).also_append(y, 2);
  bad.read(x, {1}).also_read(y, {});
  bad.read(y, {2});
  BOOST_TEST(says(bad.finding(), "G-single: "));
  BOOST_TEST(says(bad.finding(), "whose append to 'app:x' is read by"));
  BOOST_TEST(says(bad.finding(), "which reads 'y' without the append of"));
}

BOOST_AUTO_TEST_CASE(writes_in_two_orders_are_a_g0) {
  script bad;
  bad.append(x, 1).also_append(y, 2);
  bad.append(x, 3).also_append(y, 4);
  bad.read(x, {1, 3});
  bad.read(y, {4, 2});
  BOOST_TEST(says(bad.finding(), "G0: "));
  BOOST_TEST(says(bad.finding(), "whose append to 'app:x' precedes that of"));
  BOOST_TEST(says(bad.finding(), "whose append to 'y' precedes that of"));
}

BOOST_AUTO_TEST_CASE(two_that_have_read_each_other_are_a_g1c) {
  script bad;
  bad.append(x, 1).also_read(y, {2});
  bad.append(y, 2).also_read(x, {1});
  BOOST_TEST(says(bad.finding(), "G1c: "));
}

BOOST_AUTO_TEST_CASE(a_long_fork_is_a_g2) {
  script bad;
  bad.append(x, 1);
  bad.append(y, 2);
  bad.read(x, {1}).also_read(y, {});
  bad.read(x, {}).also_read(y, {2});
  BOOST_TEST(says(bad.finding(), "G2: "));
}

BOOST_AUTO_TEST_CASE(a_stale_read_needs_the_time_to_be_found) {
  script bad;
  bad.append(x, 1).by(1);
  bad.read(x, {}).by(1);
  bad.read(x, {1}).by(2);
  BOOST_TEST(bad.finding() == "");
  BOOST_TEST(says(bad.finding(time_order::process), "G-single with time: "));
  // Read by another process, the list is stale by the clock alone.
  bad.calls[1].process = 3;
  BOOST_TEST(bad.finding(time_order::process) == "");
  // Both calls were on one channel.
  BOOST_TEST(says(bad.finding(time_order::channel), "G-single with time: "));
  bad.calls[1].channel = 5;
  BOOST_TEST(bad.finding(time_order::channel) == "");
  BOOST_TEST(says(bad.finding(time_order::all), "G-single with time: "));
  BOOST_TEST(says(bad.finding(time_order::all),
                  "which was answered before the question of"));
}

BOOST_AUTO_TEST_CASE(a_reader_that_goes_back_is_found) {
  script bad;
  bad.append(x, 1).by(1).at(1, 100);
  bad.read(x, {1}).by(2).at(2, 3);
  bad.read(x, {}).by(2).at(4, 5);
  BOOST_TEST(says(bad.finding(time_order::process), "G-single with time: "));
}

BOOST_AUTO_TEST_CASE(an_effect_without_its_cause_is_found) {
  // One process writes x, waits for the answer, and writes y. A reader sees y
  // and not x.
  script bad;
  bad.append(x, 1).by(1).at(1, 2);
  bad.append(y, 2).by(1).at(3, 4);
  bad.read(x, {}).also_read(y, {2}).by(2).at(1, 5);
  bad.read(x, {1}).by(3).at(6, 7);
  BOOST_TEST(bad.finding() == "");
  BOOST_TEST(says(bad.finding(time_order::process), "G-single with time: "));
}

BOOST_AUTO_TEST_CASE(what_was_read_before_it_was_sent_is_found) {
  script bad;
  bad.read(x, {1}).at(1, 2);
  bad.append(x, 1).at(3, 4);
  BOOST_TEST(says(bad.finding(), "read of the future: T0"));
}

BOOST_AUTO_TEST_SUITE_END()
