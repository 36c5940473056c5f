// Many threads on one app: no event is lost, doubled or torn, and all readers
// agree on the order.

#include "troupe/runtime/runtime.hpp"

#include "../random.hpp"
#include "runtime_fixture.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <set>

using namespace troupe;
using namespace troupe::testing;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(concurrency, *boost::unit_test::timeout(150))

namespace {

// Random appends of many threads to the sessions of three users, and checks of
// their sums.
class crowd : public runtime_fixture {
public:
  static constexpr std::size_t threads = 8;
  static constexpr std::size_t appends = 250;

  /// Each thread blocks for some of its calls and keeps others under way.
  void append_all(std::uint64_t seed) {
    std::vector<answers<event_ptr>> under_way(threads);
    std::vector<std::vector<planned>> plans;
    for (std::size_t index = 0; index < threads; ++index)
      plans.push_back(plan(seed * threads + index));
    on_threads(threads, [&](std::size_t index) {
      for (const auto& next : plans[index]) {
        const auto& key = keys[next.session];
        if (next.blocks)
          under_way[index].next()(
            sessions().append_event(key, next.event).get());
        else
          sessions()
            .append_event(key, next.event)
            .then(under_way[index].next());
      }
    });
    for (std::size_t index = 0; index < threads; ++index) {
      const auto answered = under_way[index].await();
      for (std::size_t at = 0; at < answered.size(); ++at) {
        const auto& next = plans[index][at];
        BOOST_TEST(code_of(answered[at])
                   == (next.refused ? "type_error" : "ok"));
        if (!next.refused)
          count(next);
      }
    }
  }

  void totals_are_exact() {
    for (std::size_t index = 0; index < keys.size(); ++index) {
      const auto now = fetch(keys[index]);
      BOOST_TEST(now.revision() == stored[index]);
      for (const auto& [counter, total] : totals[index])
        BOOST_TEST(now.state().get<int>(counter, 0) == total, counter);
      BOOST_TEST(now.state().get("list", json::array()).size()
                 == pushed[index]);
      BOOST_TEST(now.state().get<int>("user:n", 0)
                 == user_totals[keys[index].user]);
      BOOST_TEST(now.state().get<int>("app:n", 0) == app_total);
    }
    BOOST_TEST(app_state().value("n", 0) == app_total);
  }

  /// Checks that a log has no gaps, holds the answered events, and replays to
  /// the state of the session.
  void logs_replay() {
    for (const auto& key : keys) {
      const auto now = fetch(key);
      BOOST_TEST(now.events().size() == now.revision());
      auto replayed = replay(now.events(), {{"text", "t"}});
      std::erase_if(replayed.get_ref<json::object_t&>(), [](const auto& field) {
        return field.first.starts_with("app:")
               || field.first.starts_with("user:");
      });
      auto own = now.state().all();
      std::erase_if(own.get_ref<json::object_t&>(), [](const auto& field) {
        return field.first.starts_with("app:")
               || field.first.starts_with("user:");
      });
      BOOST_TEST(replayed == own);
      std::set<std::string> ids;
      for (const auto& said : now.events())
        ids.insert(said->id);
      BOOST_TEST(ids.size() == now.events().size());
    }
  }

  /// Checks that a counter incremented by one takes every value once, over all
  /// sessions.
  void app_numbers_come_once() {
    std::vector<int> numbers;
    for (const auto& key : keys)
      for (const auto& said : events(key)) {
        const auto stored_delta = said->actions.state_delta.to_json();
        if (stored_delta.contains("app:n"))
          numbers.push_back(stored_delta["app:n"].get<int>());
      }
    std::ranges::sort(numbers);
    for (std::size_t index = 0; index < numbers.size(); ++index)
      BOOST_TEST(numbers[index] == static_cast<int>(index) + 1);
    BOOST_TEST(numbers.size() == static_cast<std::size_t>(app_total));
  }

private:
  struct planned {
    std::size_t session = 0;
    bool blocks = false;
    bool refused = false;
    bool app = false;
    bool user = false;
    bool list = false;
    troupe::event event;
  };

  std::vector<planned> plan(std::uint64_t seed) {
    random_source random(seed);
    std::vector<planned> all(appends);
    for (auto& next : all) {
      next.session = random.below(keys.size());
      next.blocks = random.one_in(4);
      next.refused = random.one_in(5);
      next.app = random.one_in(3);
      next.user = random.one_in(3);
      next.list = random.one_in(3);
      std::vector<json> operations{operation_on("n", "add", 1)};
      if (next.app)
        operations.push_back(operation_on("app:n", "add", 1));
      if (next.user)
        operations.push_back(operation_on("user:n", "add", 1));
      if (next.list)
        operations.push_back(operation_on("list", "append", 1));
      if (next.refused)
        operations.push_back(operation_on(
          random.pick(std::array{"text", "user:text", "app:text"}), "add", 1));
      auto plain = json::object();
      if (random.one_in(3))
        plain["last"] = random.integer();
      if (random.one_in(6))
        plain["last"] = nullptr;
      next.event = operate(operations, plain);
    }
    return all;
  }

  void count(const planned& next) {
    ++stored[next.session];
    ++totals[next.session]["n"];
    pushed[next.session] += next.list;
    user_totals[keys[next.session].user] += next.user;
    app_total += next.app;
  }

  const std::vector<session_key> keys = open_many(
    {.sessions = 6,
     .users = 3,
     .state = {{"app:text", "t"}, {"user:text", "t"}, {"text", "t"}}});
  std::map<std::size_t, std::uint64_t> stored;
  std::map<std::size_t, std::map<std::string, int>> totals;
  std::map<std::size_t, std::size_t> pushed;
  std::map<std::string, int> user_totals;
  int app_total = 0;
};

} // namespace

BOOST_DATA_TEST_CASE(nothing_is_lost_doubled_or_torn,
                     data::xrange(1U, 7U),
                     seed) {
  crowd on;
  on.append_all(seed);
  on.totals_are_exact();
  on.logs_replay();
  on.app_numbers_come_once();
}

BOOST_AUTO_TEST_CASE(calls_of_one_thread_take_effect_in_call_order) {
  runtime_fixture on;
  const auto key = on.open();
  answers<event_ptr> all;
  for (int count = 0; count < 3'000; ++count) {
    // Events of narrow and wide scopes are mixed; none overtakes another.
    auto plain = json{{"k", count}};
    if (count % 3 == 1)
      plain["user:k"] = count;
    if (count % 7 == 1)
      plain["app:k"] = count;
    on.sessions().append_event(key, change(plain)).then(all.next());
  }
  const auto answered = all.await();
  const auto events = on.events(key);
  BOOST_TEST(events.size() == answered.size());
  for (std::size_t index = 0; index < events.size(); ++index)
    BOOST_TEST((events[index] == *answered[index]));
}

BOOST_AUTO_TEST_CASE(a_reader_never_sees_half_of_an_event) {
  runtime_fixture on;
  const std::vector<session_key> keys{on.open("a"), on.open("b")};
  std::atomic<bool> done = false;
  std::atomic<int> torn = 0;
  std::atomic<int> backward = 0;
  std::atomic<int> reads = 0;
  on_threads(5, [&](std::size_t index) {
    if (index < 2) {
      // A writer sets its own keys of all scopes to the same number. Equal
      // values mean that an event was read as a whole.
      const auto own = std::to_string(index);
      for (int count = 1; count <= 2'000; ++count)
        static_cast<void>(on.sessions()
                            .append_event(keys[index],
                                          change({{"k" + own, count},
                                                  {"user:k" + own, count},
                                                  {"app:k" + own, count}}))
                            .get());
      done = done || index == 0;
      return;
    }
    std::vector<int> newest(2, 0);
    while (!done) {
      for (std::size_t which = 0; which < 2; ++which) {
        const auto own = std::to_string(which);
        const auto now = on.fetch(keys[which]);
        const auto in = [&](const std::string& prefix) {
          return now.state().get<int>(prefix + "k" + own, 0);
        };
        torn += in("") != in("user:") || in("") != in("app:");
        torn += now.events().size() != static_cast<std::size_t>(in(""));
        backward += in("") < newest[which];
        newest[which] = in("");
        ++reads;
      }
      // A row of a list also shows an event as a whole.
      for (const auto& row : on.rows()) {
        const std::string own = row.key().id == "a" ? "0" : "1";
        torn += row.state().get<int>("k" + own, 0)
                != row.state().get<int>("app:k" + own, 0);
      }
    }
  });
  BOOST_TEST(torn == 0);
  BOOST_TEST(backward == 0);
  BOOST_TEST(reads > 0);
}

BOOST_AUTO_TEST_CASE(
  readers_of_other_sessions_see_the_app_before_the_sums_pass_it) {
  // Each event adds one to the app, its user and its session. At every moment
  // the session has at most the value of its user, and the user at most that of
  // the app.
  runtime_fixture on;
  const auto keys = on.open_many({.sessions = 4, .users = 2});
  std::atomic<std::size_t> writing = 4;
  std::atomic<int> wrong = 0;
  on_threads(6, [&](std::size_t index) {
    if (index < 4) {
      for (int count = 0; count < 800; ++count)
        static_cast<void>(
          on.sessions()
            .append_event(keys[index],
                          operate({operation_on("n", "add", 1),
                                   operation_on("user:n", "add", 1),
                                   operation_on("app:n", "add", 1)}))
            .get());
      --writing;
      return;
    }
    while (writing > 0)
      for (const auto& key : keys) {
        const auto now = on.fetch(key);
        const auto in = [&](const char* counter) {
          return now.state().get<int>(counter, 0);
        };
        wrong += in("n") > in("user:n") || in("user:n") > in("app:n");
      }
  });
  BOOST_TEST(wrong == 0);
  BOOST_TEST(on.app_state() == json({{"n", 3'200}}));
  BOOST_TEST(on.user_state("u0") == json({{"n", 1'600}}));
}

BOOST_AUTO_TEST_CASE(everybody_reads_what_was_acknowledged_to_anybody) {
  runtime_fixture on;
  const auto mine = on.open("mine");
  const auto other = on.open("other");
  std::atomic<int> stale = 0;
  on_threads(4, [&](std::size_t index) {
    const auto counter = "app:k" + std::to_string(index);
    for (int count = 1; count <= 300; ++count) {
      static_cast<void>(
        on.sessions().append_event(mine, change({{counter, count}})).get());
      stale += on.fetch(other).state().get<int>(counter) != count;
      stale += on.fetch(mine).state().get<int>(counter) != count;
      stale += on.app_state()[counter.substr(4)] != json(count);
    }
  });
  BOOST_TEST(stale == 0);
}

BOOST_AUTO_TEST_CASE(many_sessions_are_made_and_removed_at_once) {
  runtime_fixture on;
  on_threads(8, [&](std::size_t index) {
    for (int count = 0; count < 100; ++count) {
      const session_key key{"press",
                            "u" + std::to_string(index % 3),
                            std::to_string(index) + "-"
                              + std::to_string(count)};
      on.sessions().create(key, {{"app:" + key.id, 1}}).value();
      on.sessions()
        .append_event(key, operate({operation_on("app:n", "add", 1)}))
        .value();
      if (count % 2 == 0)
        on.sessions().remove(key).value();
    }
  });
  BOOST_TEST(on.app_state()["n"] == json(800));
  BOOST_TEST(on.app_state().size() == 801U);
  BOOST_TEST(on.sessions().list({"press", {}, 1'000}).value().sessions.size()
             == 400U);
}

BOOST_AUTO_TEST_SUITE_END()
