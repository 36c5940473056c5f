// Apps over two PostgreSQL databases, and over one of PostgreSQL and one of
// SQLite.

#include "troupe/stores/open_store.hpp"

#include "../outcome.hpp"
#include "conformance.hpp"
#include "postgres_server.hpp"
#include "temporary_folder.hpp"
#include <boost/test/unit_test.hpp>
#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

using namespace troupe;
using namespace troupe::testing;

namespace {

postgres_server& routed_server() {
  static postgres_server server;
  return server;
}

struct ruled_folder {
  ruled_folder(const std::string& first, const std::string& rest) {
    std::ofstream(file()) << "p* \"" << first << "\"\n* \"" << rest << "\"\n";
  }

  std::string file() const { return (folder.path() / "rules").string(); }

  result<std::unique_ptr<store>> open() const {
    return open_store("apps:" + file());
  }

  temporary_folder folder;
};

std::string fresh_url() {
  static int count = 0;
  return routed_server().url(fmt::format("routed_{}", ++count));
}

store_opener make_two_schemas() {
  return [place = std::make_shared<ruled_folder>(fresh_url(), fresh_url())] {
    return place->open();
  };
}

const conformance_suite two_schemas("routed_postgres_stores",
                                    {.make_place = make_two_schemas,
                                     .without = {store_promise::mixed_apps}},
                                    2,
                                    500);

const session_key press{"press", "ann", "s1"};
const session_key radio{"radio", "ann", "s1"};

// Creates the session, without keys.
std::string committed(store& to, const session_key& key) {
  store_change made;
  made.kind = change_kind::create;
  made.owner = {key.app, key.user, key.id};
  made.event = std::make_shared<const event>();
  made.session_revision = 0;
  const auto done = to.commit(std::array{made});
  return done && !done->moved.empty() ? "moved" : code_of(done);
}

} // namespace

BOOST_AUTO_TEST_SUITE(postgres_routed)

BOOST_AUTO_TEST_CASE(one_app_is_in_postgres_and_one_in_sqlite) {
  const temporary_folder folder;
  const auto file = "sqlite:" + (folder.path() / "rest.db").string();
  const auto url = fresh_url();
  const ruled_folder place(url, file);
  const auto all = place.open().value();
  BOOST_TEST(committed(*all, press) == "ok");
  BOOST_TEST(committed(*all, radio) == "ok");
  BOOST_TEST(committed(*all, radio) == "moved");
  all->close().value();
  for (const auto& [address, app] :
       {std::pair(url, "press"), std::pair(file, "radio")}) {
    const auto alone = open_store(address).value();
    const auto apps = alone->list_apps({}).value();
    BOOST_REQUIRE(apps.size() == 1U);
    BOOST_TEST(apps.front() == app);
    alone->close().value();
  }
}

BOOST_AUTO_TEST_CASE(a_server_that_is_down_fails_its_apps_alone) {
  postgres_server other;
  const ruled_folder place(fresh_url(), other.url("apps"));
  const auto all = place.open().value();
  other.stop(postgres_server::stopping::fast);
  BOOST_TEST(committed(*all, press) == "ok");
  BOOST_TEST(committed(*all, radio) == "store_failed");
  BOOST_TEST(code_of(all->list_apps({})) == "store_failed");
  BOOST_TEST(all->list({.app = "press"}).value().size() == 1U);
  other.start();
  BOOST_TEST(committed(*all, radio) == "ok");
  BOOST_TEST(all->list_apps({}).value().size() == 2U);
  all->close().value();
}

BOOST_AUTO_TEST_SUITE_END()
