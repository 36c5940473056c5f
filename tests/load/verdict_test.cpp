// The verdict of a load test: the violations that it finds in faulty stores.

#include "troupe/load/measuring/inspection.hpp"
#include "troupe/runtime/runtime.hpp"

#include "../outcome.hpp"
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
using namespace troupe::load;

BOOST_AUTO_TEST_SUITE(verdicts)

namespace {

settings small() {
  settings chosen;
  chosen.users = 2;
  chosen.sessions = 4;
  chosen.callers = 3;
  chosen.mix = read_mix("session:add=1,session+user+app:add=2,session:set=1,"
                        "session+user:append=1,session:cas=1")
                 .value();
  return chosen;
}

/// A test of 3 × 40 appends that a runtime has stored. The cases change the
/// stored data before the inspection.
class stored_test {
public:
  stored_test() : plan(small(), "x"), told(plan.chosen().callers) {
    auto on = runtime::open().value();
    auto& sessions = on.sessions();
    for (std::size_t index = 0; index < plan.chosen().sessions; ++index) {
      const auto key = plan.session(index);
      sessions.create(key).value();
    }
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> newest;
    for (std::uint64_t number = 0; number < 40; ++number)
      for (std::uint32_t caller = 0; caller < told.size(); ++caller) {
        const auto planned = plan.plan(caller, number);
        numbers_before before;
        if (planned.what->kind == append_kind::compare_and_set) {
          auto& known = newest[{caller, planned.session}];
          if (known > 0)
            before[0] = known - 1;
          known = number + 1;
        }
        told[caller].send(planned.session);
        const auto stored = sessions
                              .append_event(plan.session(planned.session),
                                            plan.make(planned, before))
                              .get();
        told[caller].tell(number, stored ? fate::stored : fate::refused);
      }
    for (std::size_t index = 0; index < plan.chosen().sessions; ++index) {
      auto held = sessions.get(plan.session(index)).value();
      auto& log = logs.emplace_back();
      for (std::size_t place = 0; place < held.events().size(); ++place)
        log.push_back(held.events()[place]);
      states.push_back(held.state());
    }
    for (std::size_t user = 0; user < plan.chosen().users; ++user)
      users.push_back(sessions
                        .user_state(plan.app_name(plan.app_of(user)),
                                    workload::user_name(user))
                        .value());
    app = sessions.app_state(plan.app_name(0)).value();
  }

  verdict inspect() const {
    inspection looking(plan, told);
    for (std::size_t index = 0; index < logs.size(); ++index) {
      event_log log;
      for (const auto& said : logs[index])
        log.push_back(said);
      looking.look_at_session(index,
                              session(plan.session(index),
                                      states[index],
                                      log.slice(),
                                      timestamp(),
                                      logs[index].size()));
    }
    for (std::size_t user = 0; user < users.size(); ++user)
      looking.look_at_user(user, users[user]);
    looking.look_at_app(0, app);
    return looking.finish();
  }

  /// Returns the first event that changes the app: its log, and its place
  /// there.
  std::pair<std::size_t, std::size_t> wide_event() const {
    for (std::size_t index = 0; index < logs.size(); ++index)
      for (std::size_t place = 0; place < logs[index].size(); ++place)
        if (!logs[index][place]->actions.state_delta.share(scope::app).empty())
          return {index, place};
    throw std::logic_error("none is wide");
  }

  const workload plan;
  ledger told;
  std::vector<std::vector<event_ptr>> logs;
  std::vector<readonly_state> states;
  std::vector<json> users;
  json app;
};

} // namespace

BOOST_AUTO_TEST_CASE(what_was_stored_well_holds) {
  const stored_test test;
  const auto found = test.inspect();
  BOOST_TEST(found.holds());
  BOOST_TEST(found.acknowledged == 120U);
  BOOST_TEST(to_string(found)
             == "verdict: 120 acknowledged, 0 lost, 0 doubled, order ok, "
                "totals ok");
}

BOOST_AUTO_TEST_CASE(a_lost_event_is_found) {
  stored_test test;
  const auto id = test.logs[1].front()->id;
  test.logs[1].erase(test.logs[1].begin());
  const auto found = test.inspect();
  BOOST_TEST(found.lost == 1U);
  BOOST_TEST(!found.holds());
  BOOST_TEST(found.findings.back().find(id) != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_doubled_event_is_found) {
  stored_test test;
  test.logs[2].push_back(test.logs[2].front());
  const auto found = test.inspect();
  BOOST_TEST(found.doubled == 1U);
  BOOST_TEST(found.lost == 0U);
  BOOST_TEST(to_string(found).find("1 doubled") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(an_event_behind_a_later_one_is_found) {
  stored_test test;
  // Swaps two events of one caller that are next to each other.
  auto& log = test.logs[0];
  for (std::size_t place = 0; place + 1 < log.size(); ++place)
    if (workload::identity_of(log[place]->id)->caller
        == workload::identity_of(log[place + 1]->id)->caller) {
      std::swap(log[place], log[place + 1]);
      break;
    }
  const auto found = test.inspect();
  BOOST_TEST(found.reordered == 1U);
  BOOST_TEST(to_string(found).find("1 out of order") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(an_event_without_all_of_its_changes_is_found) {
  stored_test test;
  const auto [index, place] = test.wide_event();
  auto torn = *test.logs[index][place];
  torn.actions.state_delta.drop(scope::app);
  test.logs[index][place] = std::make_shared<const event>(std::move(torn));
  const auto found = test.inspect();
  BOOST_TEST(found.torn == 1U);
  BOOST_TEST(to_string(found).find("1 torn") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_wrong_total_is_found_in_every_scope) {
  {
    stored_test test;
    test.app[std::string(counter_key)]
      = test.app.at(std::string(counter_key)).get<int>() + 1;
    BOOST_TEST(test.inspect().wrong_totals == 1U);
  }
  {
    stored_test test;
    test.users[1].erase(std::string(counter_key));
    BOOST_TEST(test.inspect().wrong_totals == 1U);
  }
  {
    stored_test test;
    test.states[3] = test.states[2];
    const auto found = test.inspect();
    BOOST_TEST(found.wrong_totals == 1U);
    BOOST_TEST(found.findings.back().find("session 3") != std::string::npos);
  }
}

// A lost update agrees with its own log. Only the expected sum shows it.
BOOST_AUTO_TEST_CASE(a_lost_update_is_found_in_every_scope) {
  for (const auto where : {scope::session, scope::user, scope::app}) {
    stored_test test;
    bool is_done = false;
    for (auto& log : test.logs)
      for (auto& said : log) {
        const auto share = said->actions.state_delta.share(where);
        const auto found = std::ranges::find_if(
          share, [](const auto& done) { return done.name == counter_key; });
        if (is_done || found == share.end()
            || found->operand.data().get<int>() < 2)
          continue;
        auto altered = *said;
        const auto key = (where == scope::user  ? std::string(key_prefix_user)
                          : where == scope::app ? std::string(key_prefix_app)
                                                : std::string())
                         + std::string(counter_key);
        altered.actions.state_delta
          .record(key,
                  operation_kind::set,
                  value(json(found->operand.data().get<int>() - 1)))
          .value();
        said = std::make_shared<const event>(std::move(altered));
        is_done = true;
      }
    BOOST_TEST_REQUIRE(is_done);
    BOOST_TEST(test.inspect().wrong_totals >= 1U);
  }
}

BOOST_AUTO_TEST_CASE(an_event_that_says_or_does_something_else_is_found) {
  const auto altered = [](const std::function<void(event&)>& alter) {
    stored_test test;
    auto& said = test.logs[0].front();
    auto made = *said;
    alter(made);
    said = std::make_shared<const event>(std::move(made));
    return test.inspect().torn;
  };
  BOOST_TEST(altered([](event&) {}) == 0U);
  BOOST_TEST(altered([](event& said) { said.author = "somebody"; }) == 1U);
  BOOST_TEST(altered([](event& said) { said.content.parts = {part("short")}; })
             == 1U);
  BOOST_TEST(altered([](event& said) {
               said.actions.state_delta
                 .record("more", operation_kind::set, value(json(1)))
                 .value();
             })
             == 1U);
  stored_test test;
  for (auto& log : test.logs)
    for (auto& said : log) {
      const auto id = *workload::identity_of(said->id);
      const auto planned = test.plan.plan(id.caller, id.number);
      if (planned.what->kind == append_kind::add)
        continue;
      auto made = *said;
      made.actions.state_delta
        .record(workload::key_of(planned, scope::session),
                operation_kind::set,
                value(json("garbage")))
        .value();
      said = std::make_shared<const event>(std::move(made));
      BOOST_TEST(test.inspect().torn == 1U);
      return;
    }
}

BOOST_AUTO_TEST_CASE(a_state_that_is_not_what_callers_left_is_found) {
  stored_test test;
  for (auto& [name, held] : test.users[0].items())
    if (name.starts_with("list-")) {
      held.erase(0);
      BOOST_TEST(test.inspect().wrong_totals == 1U);
      return;
    }
  BOOST_ERROR("no caller has left a list");
}

BOOST_AUTO_TEST_CASE(a_session_that_is_not_there_is_found) {
  const stored_test test;
  inspection looking(test.plan, test.told);
  looking.miss_session(2);
  const auto found = looking.finish();
  BOOST_TEST(found.wrong_totals == 1U);
  BOOST_TEST(found.findings.front() == "session 2 is missing");
  BOOST_TEST(found.lost == 120U);
}

BOOST_AUTO_TEST_CASE(an_event_that_was_refused_or_never_sent_is_found) {
  {
    stored_test test;
    const auto id = *workload::identity_of(test.logs[0].front()->id);
    test.told[id.caller].tell(id.number, fate::refused);
    BOOST_TEST(test.inspect().ghosts == 1U);
  }
  {
    stored_test test;
    auto stranger = *test.logs[0].front();
    stranger.id = "load-0-99";
    test.logs[0].push_back(std::make_shared<const event>(std::move(stranger)));
    BOOST_TEST(test.inspect().ghosts == 1U);
  }
  {
    stored_test test;
    // The event is in another session than it was sent to.
    test.logs[1].push_back(test.logs[0].front());
    BOOST_TEST(test.inspect().ghosts == 1U);
  }
}

BOOST_AUTO_TEST_CASE(an_event_of_unknown_fate_may_be_there_or_not) {
  stored_test test;
  const auto id = *workload::identity_of(test.logs[0].back()->id);
  test.told[id.caller].tell(id.number, fate::unknown);
  BOOST_TEST(test.inspect().holds());
  BOOST_TEST(test.inspect().acknowledged == 119U);
}

BOOST_AUTO_TEST_SUITE_END()
