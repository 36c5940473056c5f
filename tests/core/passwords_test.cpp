// Passwords in text: the hidden part, and the unchanged rest.

#include "troupe/core/support/passwords.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

using namespace troupe;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(passwords)

// The hidden part of each text contains these two words.
const std::vector<std::string> secrets = {
  "postgres://ann:horse-staple@db:5432/x?sslmode=require",
  "postgresql://ann:horse-staple@db",
  "POSTGRES://ann:horse-staple@db",
  "jdbc:postgresql://db/x?user=ann&password=horse-staple",
  "postgres://:horse-staple@db/x",
  "postgres://ann:horse-staple@one:1,two:2/x",
  "postgres://ann:horse-staple@[::1]:5432/x",
  "postgres://ann:horse%40staple@db/x",
  "postgres://ann%3Ahorse-staple@db/x",
  // An encoded separator is part of the password.
  "postgres://db/x?user=ann&password=horse%26b%3Dstaple",
  "postgres://db/x?password=horse%0Astaple",
  "postgres://db/x?password=horse%20staple",
  "postgres://db/x?password%3Dhorse%26b%3Dstaple",
  "postgres://ann:horse%0Astaple@db/x",
  "postgres://ann:horse%2Fstaple@db/x",
  "postgres://ann:horse%3Fstaple/x",
  "postgres://db:5432%2Fx%3Fuser=ann&password=horse%26b=staple",
  "https://ann:horse%20staple@proxy/",
  "https://ann:12%2Fhorse-staple@proxy:3128/",
  "https://ann:horse%0Astaple@proxy/",
  "mysql://ann:horse%2Fstaple@db/x",
  "redis://:horse%20staple@db",
  "ftp://ann:horse%3fstaple@db/",
  "ftp://ann:horse%23staple@db/",
  "host=db password=horse%20staple",
  "host=db password='horse%27 staple'",
  "PGPASSWORD=horse%20staple",
  // A line break that should be percent-encoded.
  "postgres://ann:horse\nstaple@db/x",
  "postgres://ann:horse\nstaple@db/x?password=horse staple",
  "postgres://ann:horse\r\n-staple@db:5432/x",
  // Characters that should be percent-encoded.
  "postgres://ann:horse@staple@db/x",
  "postgres://ann:horse/staple@db/x",
  "postgres://ann:horse:staple@db/x",
  "postgres://ann:horse?staple@db/x",
  "postgres://ann:horse#staple@db/x",
  "postgres://ann:horse staple@db/x",
  "postgres://ann:horse'staple@db/x",
  "postgres://ann:horse\"staple@db/x",
  // Malformed URLs.
  "postgres:/ann:horse-staple@db/x",
  "postgres:ann:horse-staple@db/x",
  "postgres:///ann:horse-staple@db",
  "postgres://ann:horse-staple/x",
  "postgres://ann:horse staple/x",
  "postgres://ann:horse-staple%40db/x",
  "postgres://one:5432,ann:horse-staple",
  "postgres://db/x?password=horse-staple&sslmode=require",
  "postgres://db/x?password=horse&staple",
  "postgres://db/x?password=horse staple",
  "postgres://ann:x@db/x?password=horse@staple",
  "postgres://db/x?sslpassword=horse-staple",
  "postgres://db/x?p%61ssword=horse-staple",
  "postgres://db/x?PASSWORD=horse-staple",
  "postgres:host=db password=horse-staple user=ann",
  "host=db password='horse staple' user=ann",
  "host=db password = 'horse\\' staple' user=ann",
  "host=db password=horse\\ staple user=ann",
  "host=db sslpassword=horse&staple",
  "PGPASSWORD=horse-staple troupe run",
  "http://ann:horse-staple@proxy:3128/",
  "https://horse-staple@api/v1",
  "http:/ann:horse-staple@proxy",
  "http://ann:horse/staple@proxy",
  "https://ann:horse@staple@proxy/v1",
  "socks5://ann:horse-staple@proxy",
};

BOOST_DATA_TEST_CASE(are_hidden, data::make(secrets), text) {
  for (const auto& whole :
       {text, "the store '" + text + "' is not well", "\n" + text + "\n"}) {
    const auto shown = without_passwords(whole);
    BOOST_TEST(shown.find("***") != std::string::npos, shown);
    for (const auto* word : {"horse", "staple"})
      BOOST_TEST(shown.find(word) == std::string::npos, shown);
  }
}

const std::vector<std::string> harmless
  = {"",
     "memory:",
     "sqlite:/home/ann@work/troupe.db",
     "sqlite:a:b@c.db",
     "file:///home/ann@work",
     "expected memory:, sqlite:PATH, postgres:URL",
     "postgres://USER@HOST:PORT/DATABASE",
     "postgres://ann@db:5432/x?sslmode=require",
     "connect to postgres://one:5432,two:5433/x: no answer",
     "postgres://[::1]:5432/x",
     "postgres://db:5432: connection refused",
     "host=db user=ann passfile=/home/ann/.pgpass",
     "FATAL: password authentication failed for user \"ann\"",
     "https://api/v1/models/claude@20240620:raw",
     "http://localhost:8080/v1 is down, ask ann@work",
     "https://api/v1?at=a:b@c",
     "ssh://git@host/x",
     "line 1: 100%: %zz %4",
     "https://\xff\xfe:80/"};

BOOST_DATA_TEST_CASE(are_not_seen_where_there_are_none,
                     data::make(harmless),
                     text) {
  BOOST_TEST(without_passwords(text) == text);
}

BOOST_AUTO_TEST_CASE(leave_what_is_around_them) {
  BOOST_TEST(without_passwords("open postgres://ann:secret@db:1/x?a=b: away")
             == "open postgres://ann:***@db:1/x?a=b: away");
  BOOST_TEST(without_passwords("host=db password='se cret' user=ann")
             == "host=db password=*** user=ann");
  BOOST_TEST(without_passwords("x?password=secret&a=b and password=two c")
             == "x?password=***&a=b and password=*** c");
  BOOST_TEST(without_passwords("via http://ann:secret@proxy:3128/ to b")
             == "via http://***@proxy:3128/ to b");
  BOOST_TEST(without_passwords("x?password=a%26b%3Dsecret&c=d")
             == "x?password=***&c=d");
  BOOST_TEST(without_passwords("postgres://db: away\nask ann@work")
             == "postgres://db: away\nask ann@work");
  BOOST_TEST(without_passwords("postgres://db/x\npostgres://a:b@c/d")
             == "postgres://db/x\npostgres://a:***@c/d");
  BOOST_TEST(without_passwords(without_passwords("postgres://a:b@c/d"))
             == "postgres://a:***@c/d");
}

BOOST_AUTO_TEST_SUITE_END()
