// Turns of processes that write to the same users or apps, with a clock that
// only the test moves.

#include "troupe/stores/turns/write_turns.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

using namespace troupe;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(turns_of_writers, *boost::unit_test::timeout(60))

namespace {

const owner_name press{"press"};
const owner_name ann{"press", "ann"};

struct fake_clock {
  write_turns::time_point now{std::chrono::hours(1)};
};

// Counts the places taken. The first place is free unless `is_closed`.
class fake_line final : public turn_line {
public:
  struct book {
    int entered = 0;
    int left = 0;
    bool is_closed = false;
    std::chrono::milliseconds patience{0};
    std::vector<owner_name> wanted;
    owner_name wanted_by_others;
    int looks = 0;
  };

  explicit fake_line(book& kept) : kept_(kept) {}

  bool enter(std::span<const owner_name> wanted,
             std::chrono::milliseconds patience,
             const std::function<void()>& /*meanwhile*/) override {
    kept_.patience = patience;
    kept_.wanted.assign(wanted.begin(), wanted.end());
    if (kept_.is_closed)
      return false;
    ++kept_.entered;
    return true;
  }

  bool is_wanted(std::span<const owner_name> owners) override {
    ++kept_.looks;
    return std::ranges::find(owners, kept_.wanted_by_others) != owners.end();
  }

  void leave() noexcept override { ++kept_.left; }

private:
  book& kept_; // Belongs to the test.
};

store_change count_in_app(const std::string& app = "press") {
  store_change made;
  made.owner = {app, "ann", "s"};
  made.session_revision = 1;
  made.app_revision = 1;
  return made;
}

commit_outcome refused_for(std::vector<owner_name> moved) {
  commit_outcome made;
  made.moved = std::move(moved);
  return made;
}

// A process that calls its store as the queue does.
struct process {
  fake_clock clock;
  fake_line::book line;
  turn_limits limits;
  write_turns turns{
    std::make_unique<fake_line>(line), [this] { return clock.now; }, limits};

  void look(const std::vector<owner_name>& moved = {}) {
    std::vector<moved_owner> found;
    for (const auto& owner : moved)
      found.push_back({owner, 7});
    turns.begin_look();
    turns.end_look(found);
  }

  void commit(const store_change& change = count_in_app(),
              const std::vector<owner_name>& moved = {}) {
    turns.begin_commit({&change, 1});
    turns.end_commit({&change, 1}, refused_for(moved));
  }

  // Ends with the turn, before the first written commit of it.
  void contend() {
    look({press});
    commit();
    look({press});
    look();
    BOOST_REQUIRE(turns.has_turn());
  }
};

} // namespace

BOOST_AUTO_TEST_CASE(a_process_alone_takes_no_turn) {
  process one;
  for (int i = 0; i < 100; ++i) {
    one.look();
    one.commit();
  }
  BOOST_TEST(one.line.entered == 0);
}

BOOST_AUTO_TEST_CASE(changes_of_other_apps_are_no_contention) {
  process one;
  for (int i = 0; i < 100; ++i) {
    one.look({owner_name{"other"}, owner_name{"press", "bob"}});
    one.commit();
  }
  BOOST_TEST(one.line.entered == 0);
}

BOOST_AUTO_TEST_CASE(a_moved_app_of_ones_own_is_contention) {
  process one;
  one.look({press});
  one.commit();
  BOOST_TEST(one.line.entered == 0);
  one.look({press});
  BOOST_TEST(!one.turns.has_turn());
  one.look();
  BOOST_TEST(one.turns.has_turn());
  BOOST_TEST((one.line.patience == one.limits.patience));
}

BOOST_AUTO_TEST_CASE(a_refused_commit_is_contention) {
  process one;
  auto change = count_in_app();
  change.app_revision.reset();
  change.user_revision = 3;
  one.commit(change, {ann});
  one.look();
  BOOST_TEST(one.turns.has_turn());
}

BOOST_AUTO_TEST_CASE(a_process_tells_which_owners_it_contends_for) {
  process one;
  one.look({press, owner_name{"other"}});
  one.commit();
  one.look({press, owner_name{"other"}});
  one.look();
  BOOST_TEST((one.line.wanted == std::vector{press}));
}

// A process whose commits are always written sees no change of others.
BOOST_AUTO_TEST_CASE(a_process_that_is_always_first_lets_others_in) {
  process one;
  one.line.wanted_by_others = press;
  one.commit();
  BOOST_TEST(one.turns.has_turn());
}

BOOST_AUTO_TEST_CASE(others_that_want_other_owners_do_not_matter) {
  process one;
  one.line.wanted_by_others = owner_name{"press", "ann"};
  for (int i = 0; i < 10; ++i) {
    one.commit();
    one.clock.now += one.limits.look;
  }
  BOOST_TEST(one.line.entered == 0);
  BOOST_TEST(one.line.looks == 10);
}

// It would find itself, and contend for ever.
BOOST_AUTO_TEST_CASE(a_process_does_not_look_in_its_own_turn) {
  turn_limits limits;
  limits.memory = limits.span / 2;
  process one{{}, {}, limits};
  one.contend();
  const auto looks = one.line.looks;
  int commits = 0;
  for (; one.turns.has_turn(); ++commits) {
    one.commit();
    one.clock.now += 1ms;
  }
  BOOST_TEST(commits > limits.memory / 1ms + 1);
  BOOST_TEST(one.line.looks == looks);
}

BOOST_AUTO_TEST_CASE(a_process_looks_for_others_now_and_then) {
  process one;
  for (int i = 0; i < 10; ++i)
    one.commit();
  BOOST_TEST(one.line.looks == 1);
  one.clock.now += one.limits.look;
  one.commit();
  BOOST_TEST(one.line.looks == 2);
}

BOOST_AUTO_TEST_CASE(a_moved_session_alone_is_no_contention) {
  process one;
  one.commit(count_in_app(), {owner_name{"press", "ann", "s"}});
  one.look();
  BOOST_TEST(one.line.entered == 0);
}

BOOST_AUTO_TEST_CASE(contention_is_forgotten) {
  process one;
  one.look({press});
  one.commit();
  one.look({press});
  one.clock.now += one.limits.memory;
  one.look();
  BOOST_TEST(one.line.entered == 0);
}

// A process that only reads must not take turns because it wrote long ago.
BOOST_AUTO_TEST_CASE(own_changes_are_forgotten) {
  process one;
  one.look({press});
  one.commit();
  for (int i = 0; i < 3; ++i) {
    one.clock.now += one.limits.memory;
    one.look({owner_name{"other"}});
  }
  one.look({press});
  one.look();
  BOOST_TEST(one.line.entered == 0);
}

BOOST_AUTO_TEST_CASE(a_turn_lasts_over_several_commits) {
  process one;
  one.contend();
  const auto begin = one.clock.now;
  int commits = 0;
  while (one.turns.has_turn()) {
    one.look();
    one.commit();
    ++commits;
    one.clock.now += 1ms;
  }
  // The span begins with the end of the first commit.
  BOOST_TEST((one.clock.now - begin == one.limits.span + 1ms));
  BOOST_TEST(commits == one.limits.span / 1ms + 1);
  BOOST_TEST(one.line.entered == 1);
  BOOST_TEST(one.line.left == 1);
}

// The second look after a commit confirms answers, and must not wait.
BOOST_AUTO_TEST_CASE(the_look_after_the_last_commit_of_a_turn_does_not_wait) {
  process one;
  one.contend();
  while (one.turns.has_turn()) {
    one.commit();
    one.clock.now += 1ms;
  }
  one.look();
  BOOST_TEST(!one.turns.has_turn());
  one.look();
  BOOST_TEST(one.turns.has_turn());
}

BOOST_AUTO_TEST_CASE(a_refused_commit_keeps_the_turn_for_the_second_try) {
  process one;
  one.contend();
  one.commit(count_in_app(), {press});
  one.clock.now += one.limits.retry - 1ms;
  one.turns.expire();
  BOOST_TEST(one.turns.has_turn());
  one.commit();
  BOOST_TEST(one.turns.has_turn());
}

BOOST_AUTO_TEST_CASE(a_turn_ends_without_a_second_try) {
  process one;
  one.contend();
  one.commit(count_in_app(), {press});
  one.clock.now += one.limits.retry;
  one.turns.expire();
  BOOST_TEST(!one.turns.has_turn());
  BOOST_TEST(one.line.left == 1);
}

// The owners that the first look named still load.
BOOST_AUTO_TEST_CASE(a_later_look_does_not_shorten_the_time_to_load) {
  process one;
  one.contend();
  one.look({press});
  one.clock.now += 1ms;
  one.look();
  one.clock.now += one.limits.retry - 2ms;
  one.turns.expire();
  BOOST_TEST(one.turns.has_turn());
  one.clock.now += 1ms;
  one.turns.expire();
  BOOST_TEST(!one.turns.has_turn());
}

// A process that only reads keeps the others out for a moment only.
BOOST_AUTO_TEST_CASE(a_turn_without_a_commit_ends_soon) {
  process one;
  one.contend();
  one.clock.now += one.limits.idle;
  one.turns.expire();
  BOOST_TEST(!one.turns.has_turn());
}

BOOST_AUTO_TEST_CASE(a_turn_ends_when_no_call_comes) {
  process one;
  one.contend();
  one.commit();
  one.clock.now += one.limits.idle - 1ms;
  one.turns.expire();
  BOOST_TEST(one.turns.has_turn());
  one.clock.now += 1ms;
  one.turns.expire();
  BOOST_TEST(!one.turns.has_turn());
}

// Without the timer, too: the next call then waits at the end of the line.
BOOST_AUTO_TEST_CASE(an_overdue_turn_ends_with_the_next_call) {
  process one;
  one.contend();
  one.commit();
  one.clock.now += one.limits.idle;
  one.look();
  BOOST_TEST(one.line.left == 1);
  BOOST_TEST(one.line.entered == 2);
}

BOOST_AUTO_TEST_CASE(refusals_do_not_keep_a_turn_for_ever) {
  process one;
  one.contend();
  const auto begin = one.clock.now;
  while (one.line.left == 0 && one.clock.now - begin < 1s) {
    one.commit(count_in_app(), {press});
    one.clock.now += 5ms;
    one.turns.expire();
  }
  BOOST_TEST((one.clock.now - begin == one.limits.longest));
}

BOOST_AUTO_TEST_CASE(a_turn_does_not_end_during_a_call) {
  process one;
  one.contend();
  const auto change = count_in_app();
  one.turns.begin_commit({&change, 1});
  one.clock.now += 10 * one.limits.longest;
  one.turns.expire();
  BOOST_TEST(one.turns.has_turn());
  one.turns.end_commit({&change, 1}, commit_outcome());
  BOOST_TEST(one.turns.has_turn());
  one.turns.expire();
  BOOST_TEST(!one.turns.has_turn());
}

BOOST_AUTO_TEST_CASE(a_failed_call_ends_the_turn) {
  process one;
  one.contend();
  const auto change = count_in_app();
  one.turns.begin_commit({&change, 1});
  one.turns.end_failed();
  BOOST_TEST(!one.turns.has_turn());
  one.look();
  BOOST_TEST(one.line.entered == 1);
}

// Calls go on without a turn, and the next change of others tries again.
BOOST_AUTO_TEST_CASE(a_line_that_cannot_be_used_stops_no_call) {
  process one;
  one.line.is_closed = true;
  one.look({press});
  one.commit();
  one.look({press});
  one.look();
  one.commit();
  BOOST_TEST(!one.turns.has_turn());
  one.line.is_closed = false;
  one.look();
  BOOST_TEST(!one.turns.has_turn());
  one.look({press});
  one.look();
  BOOST_TEST(one.turns.has_turn());
}

BOOST_AUTO_TEST_CASE(a_store_without_a_line_takes_no_turns) {
  write_turns none(nullptr);
  const auto change = count_in_app();
  for (int i = 0; i < 3; ++i) {
    none.begin_commit({&change, 1});
    none.end_commit({&change, 1}, refused_for({press}));
  }
  BOOST_TEST(!none.has_turn());
}

BOOST_AUTO_TEST_CASE(the_end_of_a_store_ends_its_turn) {
  fake_line::book line;
  {
    fake_clock clock;
    write_turns one(
      std::make_unique<fake_line>(line), [&clock] { return clock.now; }, {});
    const auto change = count_in_app();
    one.begin_commit({&change, 1});
    one.end_commit({&change, 1}, refused_for({press}));
    one.begin_commit({&change, 1});
    one.end_commit({&change, 1}, commit_outcome());
    BOOST_TEST(line.left == 0);
  }
  BOOST_TEST(line.entered == 1);
  BOOST_TEST(line.left == 1);
}

BOOST_AUTO_TEST_SUITE_END()
