// A store of a program's own: the samples of docs/stores.md and
// docs/cookbook.md.

#include "troupe/stores/conformance/suite.hpp"
#include "troupe/stores/map_stores.hpp"

#include "page_fixture.hpp"

#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>

BOOST_AUTO_TEST_SUITE(own_store_page)

// The database of a program: a text for each app, user and session.
class own_database final : public troupe::app_state_store,
                           public troupe::user_state_store,
                           public troupe::session_store {
public:
  template <class T>
  using result = troupe::result<T>;

  result<std::optional<troupe::json>> load(const std::string& app) override {
    return read({app, "", ""});
  }

  result<void> save(const std::string& app, const troupe::json& map) override {
    return write({app, "", ""}, map);
  }

  result<void> remove(const std::string& app) override {
    return drop({app, "", ""});
  }

  result<std::optional<troupe::json>> load(const std::string& app,
                                           const std::string& user) override {
    return read({app, user, ""});
  }

  result<void> save(const std::string& app,
                    const std::string& user,
                    const troupe::json& map) override {
    return write({app, user, ""}, map);
  }

  result<void> remove(const std::string& app,
                      const std::string& user) override {
    return drop({app, user, ""});
  }

  result<std::optional<troupe::json>>
  load(const troupe::session_key& key) override {
    return read({key.app, key.user, key.id});
  }

  result<void> save(const troupe::session_key& key,
                    const troupe::json& map) override {
    return write({key.app, key.user, key.id}, map);
  }

  result<void> remove(const troupe::session_key& key) override {
    return drop({key.app, key.user, key.id});
  }

private:
  using name = std::tuple<std::string, std::string, std::string>;

  result<std::optional<troupe::json>> read(const name& of) const {
    const auto row = rows_.find(of);
    if (row == rows_.end())
      return std::nullopt;
    return troupe::parse_json(row->second).value();
  }

  result<void> write(const name& of, const troupe::json& map) {
    rows_[of] = troupe::to_text(map);
    return {};
  }

  result<void> drop(const name& of) {
    rows_.erase(of);
    return {};
  }

  std::map<name, std::string> rows_;
};

BOOST_AUTO_TEST_CASE(sessions_live_in_the_database_of_the_program) {
  own_database database;
  const troupe::session_key key("my_app", "ann", "s1");

  for (int program = 0; program < 2; ++program) {
    auto runtime
      = troupe::runtime::open(
          {.store = troupe::compose_store(database, database, database)})
          .value();
    runtime.sessions().get_or_create(key).value();
    runtime.sessions().state(key).add("user:visits", 1).value();
  }

  const auto user = database.load("my_app", "ann").value();
  BOOST_TEST(user->at("visits") == 2);
}

BOOST_AUTO_TEST_CASE(the_store_passes_the_conformance_suite) {
  std::ostringstream errors;
  auto* const before = std::cerr.rdbuf(errors.rdbuf());

  troupe::store_factory factory{
    .make_place = []() -> troupe::store_opener {
      const auto database = std::make_shared<own_database>(); // Empty.
      return [database] { // Opens it, as often as it is called.
        return troupe::compose_store(*database, *database, *database);
      };
    },
    .without = {troupe::store_promise::shared,
                troupe::store_promise::revisions,
                troupe::store_promise::trims,
                troupe::store_promise::runs}};
  for (const auto& check : troupe::conformance_checks(factory))
    for (const auto& failure : check.run(factory))
      std::cerr << check.name << ": " << failure << '\n';
  for (std::uint64_t seed = 1; seed <= 2; ++seed)
    for (const auto& failure : troupe::conformance_lockstep(factory, seed, 500))
      std::cerr << failure << '\n';

  std::cerr.rdbuf(before);
  BOOST_TEST(errors.str() == "");
}

BOOST_AUTO_TEST_SUITE_END()
