// Two runtimes that stay open while their store loses commits.

#pragma once

#include "troupe/stores/open_store.hpp"

#include "../../runtime/counting.hpp"
#include <boost/test/unit_test.hpp>

#include <functional>
#include <mutex>
#include <string>
#include <vector>

namespace troupe::testing {

// Collects the warnings of a runtime.
class warnings {
public:
  runtime_options options(const std::string& url, durability promised) {
    runtime_options chosen;
    chosen.store = url;
    chosen.durability = promised;
    chosen.threads = 2;
    chosen.append_wait_max = {}; // A slow machine refuses nothing.
    chosen.on_warning = [this](const std::string& warning) {
      const std::lock_guard guard(mutex_);
      told_.push_back(warning);
    };
    return chosen;
  }

  // Expects one warning for each of these words, in this order.
  void check(const std::vector<std::string>& expected) const {
    const std::lock_guard guard(mutex_);
    BOOST_TEST(told_.size() == expected.size());
    for (std::size_t index = 0; index < told_.size(); ++index)
      BOOST_TEST((index < expected.size()
                  && told_[index].find(expected[index]) != std::string::npos),
                 told_[index]);
  }

private:
  mutable std::mutex mutex_;
  std::vector<std::string> told_;
};

inline event thirty() {
  return operate({operation_on("app:n", "add", 30)}, json::object(), "thirty");
}

using act = std::function<void()>;

// Acknowledges events to both runtimes, loses some of them, and continues with
// both.
inline void lose_under_two_runtimes(const std::string& url,
                                    durability promised,
                                    const act& begin,
                                    const act& lose) {
  {
    warnings none;
    runtime_fixture first(none.options(url, durability::durable));
    first.open();
    BOOST_TEST(first.append(here, counting("base")) == "ok");
  }
  warnings of_one;
  warnings of_other;
  {
    runtime_fixture one(of_one.options(url, promised));
    runtime_fixture other(of_other.options(url, promised));
    begin();
    for (const auto* const id : {"a", "b", "c"})
      BOOST_TEST(one.append(here, counting(id)) == "ok");
    BOOST_TEST(other.append(here, counting("d")) == "ok");
    BOOST_TEST(one.state(here) == counted(5));
    lose();

    const auto stored = other.sessions().append_event(here, thirty()).get();
    BOOST_TEST(code_of(stored) == "ok", reason_of(stored));
    // The retry of a lost event is stored again and undoes nothing.
    BOOST_TEST(one.append(here, counting("b")) == "ok");
    BOOST_TEST(one.append(here, counting("e")) == "ok");
    BOOST_TEST(other.append(here, counting("b")) == "ok");
    const json expected{{"n", 3}, {"user:n", 3}, {"app:n", 33}};
    for (auto* const each : {&one, &other}) {
      BOOST_TEST(each->state(here) == expected);
      const auto events = each->events(here);
      BOOST_TEST(ids_of(events)
                   == (std::vector<std::string>{"base", "thirty", "b", "e"}),
                 boost::test_tools::per_element());
      BOOST_TEST(replay(events) == expected);
      BOOST_TEST(each->app_state() == json({{"n", 33}}));
    }
  }
  of_one.check({"3 commits"});
  of_other.check({"1 commit "});
  const auto stored = open_store(url, {.read_only = true}).value();
  BOOST_TEST(stored->check({}).value().empty());
}

} // namespace troupe::testing
