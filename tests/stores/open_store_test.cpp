#include "troupe/stores/open_store.hpp"

#include "troupe/stores/postgres/address.hpp"
#include "troupe/stores/postgres/open.hpp"

#include "../outcome.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(store_address)

BOOST_AUTO_TEST_CASE(is_a_scheme_and_a_place) {
  const auto memory = read_store_address("memory:").value();
  BOOST_TEST((memory.kind == store_kind::memory));
  const auto sqlite = read_store_address("sqlite:a b/c.db").value();
  BOOST_TEST((sqlite.kind == store_kind::sqlite));
  BOOST_TEST(sqlite.location == "a b/c.db");
  const auto postgres
    = read_store_address("postgres://ann@host/db?sslmode=require").value();
  BOOST_TEST((postgres.kind == store_kind::postgres));
  BOOST_TEST(postgres.location == "postgres://ann@host/db?sslmode=require");
  const auto spelled = read_store_address("postgresql://ann@host/db").value();
  BOOST_TEST((spelled.kind == store_kind::postgres));
  BOOST_TEST(spelled.location == "postgresql://ann@host/db");
  const auto apps = read_store_address("apps:a b/rules").value();
  BOOST_TEST((apps.kind == store_kind::apps));
  BOOST_TEST(apps.location == "a b/rules");
}

const std::vector<std::string> good_paths
  = {"/tmp/x.db", "foo..db", "..db", "a/b../c.db", "100%.db", "%zz.db", "%2"};

BOOST_DATA_TEST_CASE(takes_plain_paths, data::make(good_paths), path) {
  const auto parsed = read_store_address("sqlite:" + path);
  BOOST_TEST(code_of(parsed) == "ok", reason_of(parsed));
}

const std::vector<std::string> bad_paths = {"",
                                            "..",
                                            "../x.db",
                                            "a/../b.db",
                                            "a/..",
                                            "a\\..\\b",
                                            "x.db?mode=ro",
                                            "x#y.db",
                                            "%2e%2e/x",
                                            "%2E./x",
                                            "a%2f..%2fb",
                                            "x%3Fmode=ro",
                                            "x%23y",
                                            "%252e%252e/x",
                                            "x%00y"};

BOOST_DATA_TEST_CASE(refuses_paths_that_lead_elsewhere,
                     data::make(bad_paths),
                     path) {
  BOOST_TEST(code_of(read_store_address("sqlite:" + path))
             == "invalid_argument");
  BOOST_TEST(code_of(open_store("sqlite:" + path)) == "invalid_argument");
  BOOST_TEST(code_of(read_store_address("apps:" + path)) == "invalid_argument");
}

BOOST_AUTO_TEST_CASE(tells_an_unknown_scheme_from_a_bad_path) {
  for (const auto* text : {"mysql://x", "", "sqlite", "/tmp/x.db", "Memory:"}) {
    BOOST_TEST(!is_store_scheme(text));
    BOOST_TEST(code_of(read_store_address(text)) == "invalid_argument");
  }
  BOOST_TEST(is_store_scheme("sqlite:../x"));
  BOOST_TEST(code_of(read_store_address("memory:x")) == "invalid_argument");
  for (const auto* text : {"postgres:db", "postgresql:db"}) {
    BOOST_TEST(is_store_scheme(text));
    BOOST_TEST(code_of(read_store_address(text)) == "invalid_argument");
  }
  BOOST_TEST(!is_store_scheme("postgresq://x"));
}

BOOST_AUTO_TEST_CASE(opens_what_it_names) {
  BOOST_TEST(code_of(open_store("memory:")) == "ok");
  const auto file = std::filesystem::temp_directory_path()
                    / ("troupe-open-" + std::to_string(::getpid()) + ".db");
  BOOST_TEST(code_of(open_store("sqlite:" + file.string())) == "ok");
  BOOST_TEST(!std::filesystem::exists(file));
}

BOOST_AUTO_TEST_CASE(a_password_is_not_shown) {
  for (const auto& [address, shown] :
       {std::pair("postgres://ann:s3cret@db/x", "postgres://ann:***@db/x"),
        std::pair("postgres://ann:s3/c@ret@db:5432/x",
                  "postgres://ann:***@db:5432/x"),
        std::pair("postgresql://ann:s3cret@db/x", "postgresql://ann:***@db/x"),
        std::pair("postgres://ann@db:5432/x", "postgres://ann@db:5432/x"),
        std::pair("postgres://db:5432/x", "postgres://db:5432/x"),
        std::pair("postgres://db/x?user=ann&password=s3cret&a=b",
                  "postgres://db/x?user=ann&password=***&a=b"),
        std::pair("postgres:///x?host=/tmp&sslpassword=s3cret",
                  "postgres:///x?host=/tmp&sslpassword=***"),
        std::pair("sqlite:a:b@c.db", "sqlite:a:b@c.db"),
        std::pair("memory:", "memory:")})
    BOOST_TEST(without_password(address) == shown);
}

const std::vector<std::string> addresses_with_secrets = {
  "postgres://ann:horse-staple@127.0.0.1:1/x",
  "postgres://ann:horse-staple@127.0.0.1:1,127.0.0.1:2/x",
  "postgres:///x?host=/nowhere&user=ann&password=horse-staple",
  "postgres:///x?host=/nowhere&sslpassword=horse-staple",
  "postgres://ann:horse-staple@127.0.0.1:port/x",
  "postgres://ann:horse@staple@127.0.0.1/x",
  "postgres://ann:horse/staple@127.0.0.1/x",
  "postgres://ann:1/horse-staple@127.0.0.1/x",
  "postgres://ann:horse-staple/x",
  "postgres://ann:horse-staple%40127.0.0.1/x",
  "postgres:/ann:horse-staple@127.0.0.1/x",
  "postgres:host=x password='horse staple'",
  "postgresql://ann:horse-staple@127.0.0.1:1/x",
  "postgresql://ann:horse@staple@127.0.0.1/x",
  "postgresql:/ann:horse-staple@127.0.0.1/x",
  "mysql://ann:horse staple@127.0.0.1/x",
  "ann:horse-staple@127.0.0.1",
};

BOOST_DATA_TEST_CASE(errors_of_an_address_show_no_password,
                     data::make(addresses_with_secrets),
                     address) {
  for (const auto& failed :
       {reason_of(open_store(address)),
        reason_of(open_store(address, {.read_only = true})),
        reason_of(open_postgres_store(address))}) {
    BOOST_TEST(failed != "");
    for (const auto* word : {"horse", "staple"})
      BOOST_TEST(failed.find(word) == std::string::npos, failed);
  }
}

BOOST_AUTO_TEST_CASE(passwords_are_left_out_of_an_address_as_libpq_reads_it) {
  for (const auto& [address, left] :
       {std::pair("postgres://ann:s3cret@db/x", "postgres://ann@db/x"),
        std::pair(
          "postgresql://ann:s3cret@db/x?password=s3cret&sslmode=require",
          "postgresql://ann@db/x?sslmode=require"),
        std::pair("postgres://ann:s?3@db/x?a@b", "postgres://ann:s?3@db/x?a@b"),
        std::pair("postgres://ann:s?3@db/x?user=a%40b",
                  "postgres://ann@db/x?user=a%40b"),
        std::pair("postgres://ann@db:5432/x", "postgres://ann@db:5432/x"),
        std::pair("postgres://:s3cret@/x?host=/tmp",
                  "postgres://@/x?host=/tmp"),
        std::pair("postgres://db/x?password=s3cret&sslmode=require",
                  "postgres://db/x?sslmode=require"),
        std::pair("postgres://db/x?sslmode=require&p%61ssword=s3cret",
                  "postgres://db/x?sslmode=require"),
        std::pair("postgres://db/x?sslpassword=s3cret", "postgres://db/x"),
        std::pair("sqlite:a:b@c.db", "sqlite:a:b@c.db"),
        std::pair("memory:", "memory:")})
    BOOST_TEST(leave_out_passwords(address) == left);
}

BOOST_AUTO_TEST_CASE(durability_has_names) {
  for (const auto each :
       {durability::durable, durability::os, durability::none})
    BOOST_TEST((durability_from(to_string(each)).value() == each));
  BOOST_TEST(code_of(durability_from("always")) == "invalid_argument");
}

BOOST_AUTO_TEST_SUITE_END()
