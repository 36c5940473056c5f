// Several databases as one store: it keeps the promises of a store, splits
// nothing within an app, and a database that fails does so alone.

#include "troupe/stores/open_store.hpp"
#include "troupe/stores/routed/store.hpp"
#include "troupe/stores/shared/memory_store.hpp"
#include "troupe/stores/vacuum_store.hpp"

#include "../forwarding_store.hpp"
#include "conformance.hpp"
#include "sqlite_file.hpp"
#include <boost/test/unit_test.hpp>

#include <array>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::testing;

namespace {

using names = std::vector<std::string>;

std::size_t by_first_letter(std::string_view app) {
  return app.starts_with('p') ? 0 : 1;
}

std::unique_ptr<store> join(std::unique_ptr<store> one,
                            std::unique_ptr<store> two) {
  std::vector<routed_part> parts;
  parts.push_back({"one", std::move(one)});
  parts.push_back({"two", std::move(two)});
  return std::make_unique<routed_store>(std::move(parts), by_first_letter);
}

store_opener make_memory_places() {
  return [one = make_memory_data(), two = make_memory_data()] {
    return join(make_memory_store(one), make_memory_store(two));
  };
}

store_opener make_sqlite_places() {
  return [folder = std::make_shared<temporary_folder>()]()
           -> result<std::unique_ptr<store>> {
    const auto rules = folder->path() / "rules";
    std::ofstream(rules) << "p* sqlite:" << (folder->path() / "p.db").string()
                         << "\n*  sqlite:"
                         << (folder->path() / "rest.db").string() << '\n';
    return open_store("apps:" + rules.string());
  };
}

const conformance_suite two_memories("routed_memory_stores",
                                     {.make_place = make_memory_places,
                                      .without = {store_promise::mixed_apps}},
                                     4);
const conformance_suite two_files("routed_sqlite_stores",
                                  {.make_place = make_sqlite_places,
                                   .without = {store_promise::mixed_apps}},
                                  2,
                                  1'000);

const session_key press{"press", "ann", "s1"};
const session_key radio{"radio", "ann", "s1"};

// A store that fails on request.
class broken_store final : public forwarding_store {
public:
  using forwarding_store::forwarding_store;

  result<commit_outcome>
  commit(std::span<const store_change> changes) override {
    if (is_broken)
      return broken();
    return forwarding_store::commit(changes);
  }

  result<std::vector<moved_owner>> changed_elsewhere() override {
    if (is_broken)
      return broken();
    return forwarding_store::changed_elsewhere();
  }

  result<std::vector<std::string>> list_apps(const app_query& query) override {
    if (is_broken)
      return broken();
    return forwarding_store::list_apps(query);
  }

  result<void> renew_holder(const std::string& id) override {
    if (is_broken)
      return broken();
    return forwarding_store::renew_holder(id);
  }

  std::optional<lost_history> take_lost_history() override {
    if (!is_broken)
      return std::nullopt;
    return lost_history{2, "the clock went back"};
  }

  result<void> close() override {
    if (is_broken)
      return broken();
    return forwarding_store::close();
  }

  bool is_broken = false;

private:
  static error broken() { return {errc::store_failed, "told to fail"}; }
};

struct routed {
  std::shared_ptr<memory_data> one = make_memory_data();
  std::shared_ptr<memory_data> two = make_memory_data();
  broken_store* second = nullptr;
  std::unique_ptr<store> all = make();

  std::unique_ptr<store> make() {
    auto made = std::make_unique<broken_store>(make_memory_store(two));
    second = made.get();
    return join(make_memory_store(one), std::move(made));
  }

  void create(const session_key& key) const {
    BOOST_TEST(all->commit(std::array{creation(key)}).value().moved.empty());
  }

  static names apps(store& of) { return of.list_apps({}).value(); }
};

store_change opening(const session_key& key,
                     const std::string& run,
                     const std::string& holder) {
  auto made = creation(key);
  made.runs.push_back(
    {.invocation_id = run, .agent = "writer", .holder = holder});
  return made;
}

} // namespace

BOOST_AUTO_TEST_SUITE(routed_store)

BOOST_FIXTURE_TEST_CASE(an_app_is_in_one_database, routed) {
  create(press);
  create(radio);
  BOOST_TEST(apps(*make_memory_store(one)) == names{"press"});
  BOOST_TEST(apps(*make_memory_store(two)) == names{"radio"});
  BOOST_TEST(all->load_session(radio, {}).value().has_value());
  BOOST_TEST(all->list({.app = "radio"}).value().size() == 1U);
  BOOST_TEST(all->list_users({.app = "press"}).value() == names{"ann"});
  BOOST_TEST(all->check({}).value() == names{});
}

BOOST_FIXTURE_TEST_CASE(a_commit_to_two_databases_writes_nothing, routed) {
  const auto refused
    = all->commit(std::array{creation(press), creation(radio)});
  BOOST_TEST(code_of(refused) == "invalid_argument");
  BOOST_TEST(reason_of(refused).find("'press' and 'radio'")
             != std::string::npos);
  BOOST_TEST(apps(*all) == names{});
  BOOST_TEST(code_of(all->commit({})) == "ok");
}

BOOST_FIXTURE_TEST_CASE(a_database_fails_alone_and_is_named, routed) {
  second->is_broken = true;
  create(press);
  const auto failed = all->commit(std::array{creation(radio)});
  BOOST_TEST(code_of(failed) == "store_failed");
  BOOST_TEST(reason_of(failed) == "two: told to fail");
  // A list of all apps would not be whole.
  BOOST_TEST(reason_of(all->list_apps({})) == "two: told to fail");
  BOOST_TEST(reason_of(all->renew_holder("h")) == "two: told to fail");
  const auto lost = all->take_lost_history();
  BOOST_REQUIRE(lost.has_value());
  BOOST_TEST(lost->commits == 2U);
  BOOST_TEST(lost->warning == "two: the clock went back");
  second->is_broken = false;
  BOOST_TEST(!all->take_lost_history().has_value());
  create(radio);
}

BOOST_FIXTURE_TEST_CASE(changes_are_told_after_a_failure, routed) {
  create(press);
  create(radio);
  BOOST_TEST(all->changed_elsewhere().value().empty());
  auto removal = creation(press);
  removal.kind = change_kind::remove;
  removal.event = nullptr;
  removal.session_revision.reset();
  make_memory_store(one)->commit(std::array{removal}).value();
  second->is_broken = true;
  BOOST_TEST(code_of(all->changed_elsewhere()) == "store_failed");
  second->is_broken = false;
  const auto told = all->changed_elsewhere().value();
  BOOST_REQUIRE(told.size() == 1U);
  BOOST_TEST(to_string(told.front().owner) == "press/ann/s1");
  BOOST_TEST(!told.front().revision.has_value());
  BOOST_TEST(all->changed_elsewhere().value().empty());
}

BOOST_FIXTURE_TEST_CASE(a_removal_that_was_not_told_is_moved_once, routed) {
  create(press);
  auto removal = creation(press);
  removal.kind = change_kind::remove;
  removal.event = nullptr;
  removal.session_revision.reset();
  make_memory_store(one)->commit(std::array{removal}).value();
  second->is_broken = true;
  BOOST_TEST(code_of(all->changed_elsewhere()) == "store_failed");
  const auto moved = all->commit(std::array{creation(press)}).value().moved;
  BOOST_REQUIRE(moved.size() == 1U);
  BOOST_TEST(to_string(moved.front()) == "press/ann/s1");
  create(press);
}

BOOST_FIXTURE_TEST_CASE(lists_of_apps_are_merged_in_pages, routed) {
  for (const auto* app : {"p3", "a1", "p1", "z", "p2", "b"})
    create({app, "ann", "s1"});
  const names sorted{"a1", "b", "p1", "p2", "p3", "z"};
  for (const std::size_t limit : {1U, 2U, 4U, 9U}) {
    names found;
    app_query query{.limit = limit};
    for (bool is_last = false; !is_last;) {
      const auto page = all->list_apps(query).value();
      BOOST_TEST(page.size() <= limit);
      found.insert(found.end(), page.begin(), page.end());
      is_last = page.size() < limit;
      if (!is_last)
        query.behind = page.back();
    }
    BOOST_TEST(found == sorted);
  }
}

BOOST_FIXTURE_TEST_CASE(open_runs_are_merged_in_pages, routed) {
  for (int number = 0; number < 3; ++number)
    for (const auto* app : {"press", "radio"})
      all
        ->commit(std::array{opening({app, "ann", std::to_string(number)},
                                    "run-" + std::to_string(number),
                                    "h")})
        .value();
  for (const std::size_t limit : {1U, 2U, 5U, 7U}) {
    std::vector<open_run> found;
    run_query query{.limit = limit};
    for (bool is_last = false; !is_last;) {
      const auto page = all->list_runs(query).value();
      BOOST_TEST(page.size() <= limit);
      found.insert(found.end(), page.begin(), page.end());
      is_last = page.size() < limit;
      if (!is_last)
        query.behind = position_of(page.back());
    }
    BOOST_TEST(found.size() == 6U);
    for (std::size_t next = 1; next < found.size(); ++next)
      BOOST_TEST((found[next - 1].opened <= found[next].opened));
  }
  BOOST_TEST(all->list_runs({.app = "radio"}).value().size() == 3U);
  // The holder is known to both databases, and then to none.
  all->remove_holder("h").value();
  for (const auto& listed : all->list_runs({}).value())
    BOOST_TEST(!listed.silent.has_value());
}

BOOST_FIXTURE_TEST_CASE(an_app_in_a_wrong_database_is_found_by_check, routed) {
  create(press);
  const auto elsewhere = make_memory_store(two);
  elsewhere->commit(std::array{opening(press, "run-1", "h")}).value();
  BOOST_TEST(apps(*all) == names{"press"});
  BOOST_TEST(all->list_runs({}).value().empty());
  BOOST_TEST(all->changed_elsewhere().value().empty());
  const auto findings = all->check({}).value();
  BOOST_REQUIRE(findings.size() == 1U);
  BOOST_TEST(findings.front().starts_with(
               "two: the app 'press' is here, but its rule says one"),
             findings.front());
}

BOOST_FIXTURE_TEST_CASE(check_shows_its_progress_once, routed) {
  double last = 0;
  all
    ->check([&last](double done) {
      BOOST_TEST(done >= last);
      last = done;
    })
    .value();
  BOOST_TEST(last == 1.0);
}

BOOST_FIXTURE_TEST_CASE(a_failed_close_is_told, routed) {
  second->is_broken = true;
  BOOST_TEST(reason_of(all->close()) == "two: told to fail");
}

BOOST_AUTO_TEST_CASE(files_of_rules_that_do_not_open_are_refused) {
  const temporary_folder folder;
  const auto rules = (folder.path() / "rules").string();
  BOOST_TEST(code_of(open_store("apps:" + rules)) == "not_found");
  BOOST_TEST(code_of(open_store("apps:")) == "invalid_argument");
  BOOST_TEST(code_of(open_store("apps:../rules")) == "invalid_argument");
  BOOST_TEST(code_of(open_store("apps:" + folder.path().string()))
             == "store_failed");
  std::ofstream(rules) << "p sqlite:p.db\n";
  const auto wrong = open_store("apps:" + rules);
  BOOST_TEST(code_of(wrong) == "invalid_argument");
  BOOST_TEST(reason_of(wrong).starts_with(rules + ": "), reason_of(wrong));
  // A database that does not open is named, and so no rule is lost.
  const auto text = (folder.path() / "text.db").string();
  std::ofstream(text) << std::string(5'000, 'x');
  std::ofstream(rules) << "* sqlite:" << text << '\n';
  const auto damaged = open_store("apps:" + rules);
  BOOST_TEST(code_of(damaged) == "corrupt");
  BOOST_TEST(reason_of(damaged).starts_with("sqlite:" + text + ": "),
             reason_of(damaged));
  const auto vacuumed = vacuum_store("apps:" + rules);
  BOOST_TEST(code_of(vacuumed) == "invalid_argument");
}

BOOST_AUTO_TEST_SUITE_END()
