// Loads of an app with many changes that are not folded: a store that has
// loaded it before applies only later changes.

#include "sqlite_file.hpp"
#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::testing;

BOOST_AUTO_TEST_SUITE(sqlite_hot_states, *boost::unit_test::timeout(120))

namespace {

// Writes to the app, on top of all earlier writes.
class app_writer {
public:
  void write(store& by, std::size_t count) {
    std::vector<store_change> changes;
    for (std::size_t i = 0; i < count; ++i) {
      store_change change;
      change.kind = change_kind::write;
      change.owner = {"press"};
      change.app_revision = ++revision_;
      const auto key = fmt::format("app:k{}", revision_ % 40);
      // Each seventh write erases its key.
      const auto data = revision_ % 7 == 0 ? json() : json(revision_);
      auto written = json::object();
      written[key] = data;
      change.event = make_event("", written);
      changes.push_back(std::move(change));
    }
    BOOST_TEST(by.commit(changes).value().moved.empty());
  }

  std::uint64_t revision() const { return revision_; }

private:
  std::uint64_t revision_ = 0;
};

std::string shown(const stored_scope& loaded) {
  std::string text = fmt::format("{}:", loaded.revision);
  loaded.keys.for_each([&text](std::string_view name, const value& data) {
    text += fmt::format(" {}={}", name, data.data().dump());
  });
  return text;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_load_after_a_load_shows_all_changes) {
  const sqlite_file place;
  const auto one = place.open(2'048);
  const auto other = place.open(2'048);
  app_writer app;
  app.write(*one, 1'500);
  // Few changes, changes of the other store, and so many that the state that
  // was kept is older than the folded one.
  for (const std::size_t count : {1U, 10U, 2'000U, 1U, 6'000U, 1U, 1'200U, 5U})
    for (const auto* each : {&one, &other}) {
      app.write(**each, count);
      const auto fresh = place.open(2'048);
      const auto expected = fresh->load_scope({"press"}).value().value();
      BOOST_TEST(expected.revision == app.revision());
      for (const auto* loads : {&one, &other})
        for (int times = 0; times < 2; ++times) {
          (*loads)->changed_elsewhere().value();
          BOOST_TEST(shown((*loads)->load_scope({"press"}).value().value())
                     == shown(expected));
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()
