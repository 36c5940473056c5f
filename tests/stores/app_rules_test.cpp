// The rules that place apps in databases: their form, the longest match, shares
// of a hash, and wrong rules.

#include "troupe/stores/routed/rules.hpp"

#include "../outcome.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <map>
#include <set>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(rules_of_apps)

namespace {

app_rules rules_in(const std::string& text) {
  return app_rules::read(text, "rules").value();
}

std::string address_of(const app_rules& rules, std::string_view app) {
  return rules.addresses()[rules.database_of(app)];
}

std::string refused(const std::string& text) {
  const auto read = app_rules::read(text, "rules");
  BOOST_TEST(code_of(read) == "invalid_argument");
  return reason_of(read);
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

} // namespace

BOOST_AUTO_TEST_CASE(the_longest_match_counts) {
  const auto rules = rules_in("# apps of the press\n"
                              "*        sqlite:rest.db\n"
                              "press*   sqlite:press.db\r\n"
                              "\n"
                              "\tpress  postgres://db/one\n"
                              "press-a* sqlite:a.db");
  BOOST_TEST(rules.addresses().size() == 4U);
  for (const auto& [app, address] :
       std::map<std::string, std::string>{{"press", "postgres://db/one"},
                                          {"press 2", "sqlite:press.db"},
                                          {"press-b", "sqlite:press.db"},
                                          {"press-ab", "sqlite:a.db"},
                                          {"pres", "sqlite:rest.db"},
                                          {"", "sqlite:rest.db"},
                                          {"Press", "sqlite:rest.db"}})
    BOOST_TEST(address_of(rules, app) == address, app);
}

BOOST_AUTO_TEST_CASE(rules_with_one_address_share_a_database) {
  const auto rules = rules_in("a sqlite:one.db\n"
                              "b sqlite:two.db\n"
                              "* sqlite:one.db\n");
  BOOST_TEST(rules.addresses().size() == 2U);
  BOOST_TEST(rules.database_of("a") == rules.database_of("c"));
  BOOST_TEST(rules.database_of("a") != rules.database_of("b"));
}

BOOST_AUTO_TEST_CASE(quotes_take_any_name_and_path) {
  const auto rules = rules_in("\"a b*\" \"sqlite:my shop/a.db\"\n"
                              "\"a \"*  sqlite:b.db\n"
                              "\"\\u00e4\" sqlite:c.db\n"
                              "\"#1\" sqlite:d.db\n"
                              "* main=\"sqlite:the rest.db\"\n");
  BOOST_TEST(address_of(rules, "a b*") == "sqlite:my shop/a.db");
  BOOST_TEST(address_of(rules, "a b") == "sqlite:b.db");
  BOOST_TEST(address_of(rules, "ä") == "sqlite:c.db");
  BOOST_TEST(address_of(rules, "#1") == "sqlite:d.db");
  BOOST_TEST(address_of(rules, "x") == "sqlite:the rest.db");
}

BOOST_AUTO_TEST_CASE(a_new_database_takes_apps_and_moves_no_other) {
  const auto before = rules_in("* one=sqlite:1.db two=sqlite:2.db "
                               "three=sqlite:3.db\n");
  const auto after = rules_in("* four=sqlite:4.db three=sqlite:3.db "
                              "two=sqlite:2.db one=sqlite:1.db\n");
  std::map<std::string, int> counts;
  int moved = 0;
  constexpr int apps = 4'000;
  for (int number = 0; number < apps; ++number) {
    const auto app = "app-" + std::to_string(number);
    const auto old = address_of(before, app);
    const auto now = address_of(after, app);
    ++counts[now];
    if (old != now) {
      ++moved;
      BOOST_TEST(now == "sqlite:4.db");
    }
  }
  BOOST_TEST(counts.size() == 4U);
  for (const auto& [address, count] : counts)
    BOOST_TEST((count > apps / 4 - 200 && count < apps / 4 + 200),
               address << " has " << count);
  BOOST_TEST(moved == counts["sqlite:4.db"]);
}

BOOST_AUTO_TEST_CASE(the_name_decides_and_not_the_address) {
  const auto before = rules_in("* one=sqlite:1.db two=sqlite:2.db\n");
  const auto after = rules_in("* one=sqlite:new.db two=sqlite:2.db\n");
  for (int number = 0; number < 100; ++number) {
    const auto app = std::to_string(number);
    BOOST_TEST((address_of(before, app) == "sqlite:1.db")
               == (address_of(after, app) == "sqlite:new.db"));
  }
}

struct wrong_rules {
  std::string text;
  std::string message;
};

std::ostream& operator<<(std::ostream& out, const wrong_rules& shown) {
  return out << shown.text;
}

const std::vector<wrong_rules> wrong = {
  {"", "rules: no rule is for all other apps"},
  {"press sqlite:a.db\n", "rules: no rule is for all other apps"},
  {"* sqlite:a.db\n\npress sqlite:a.db\npress sqlite:b.db\n",
   "rules:4: 'press': these apps have a rule already, in line 3"},
  {"a* sqlite:a.db\na* sqlite:a.db\n* sqlite:a.db",
   "rules:2: 'a*': these apps have a rule already, in line 1"},
  {"* sqlite:a.db\n* sqlite:b.db", "rules:2: '*': these apps have a rule"},
  {"* mysql:a\n", "rules:1: '*': the store 'mysql:a' has no known scheme"},
  {"* memory:\n", "rules:1: '*': a database of a rule is sqlite:PATH or"},
  {"* apps:more\n", "rules:1: '*': a database of a rule is sqlite:PATH or"},
  {"* sqlite:../a.db\n", "rules:1: '*': the store 'sqlite:../a.db' has a '..'"},
  {"*\n", "rules:1: '*': the rule has no address"},
  {"sqlite:a.db\n", "rules:1: the line begins with an address"},
  {"* sqlite:a.db sqlite:b.db\n",
   "rules:1: '*': a rule with several databases"},
  {"* one=sqlite:a.db sqlite:b.db", "rules:1: '*': a rule with several"},
  {"* one=sqlite:a.db one=sqlite:b.db", "two databases have the name one"},
  {"* one=sqlite:a.db two=sqlite:a.db", "the same database twice"},
  {"* sqlite:a.db\nb sqlite:./a.db",
   "rules:2: 'b': the database is that of "
   "line 1, with another address"},
  {"* postgres://ann:pw@db/x\nb postgresql://ann@db/x",
   "rules:2: 'b': the database is that of line 1"},
  {"a*b sqlite:a.db\n* sqlite:a.db", "rules:1: 'a*b': a * stands at the end"},
  {"\"a sqlite:a.db\n", "rules:1: a quoted name is not a string"},
  {"* \"sqlite:a.db\n", "rules:1: '*': a quoted address is not a string"},
  {"\" a\" sqlite:a.db", "the name of an app has no space at its ends"},
};

BOOST_DATA_TEST_CASE(wrong_rules_are_refused_with_their_line,
                     data::make(wrong),
                     each) {
  const auto why = refused(each.text);
  BOOST_TEST(contains(why, each.message), why);
}

const std::vector<std::string> rules_with_secrets = {
  "* postgres://ann:horse@staple@127.0.0.1/x\n",
  "postgres://ann:horse-staple@127.0.0.1/x\n",
  "one=postgres://ann:horse-staple@127.0.0.1/x\n",
  "ann:horse-staple@127.0.0.1\n",
  "* mysql://ann:horse-staple@127.0.0.1/x\n",
  "* postgres://ann:horse@db/x\nb postgresql://ann:staple@db/x\n",
};

BOOST_DATA_TEST_CASE(errors_of_rules_show_no_password,
                     data::make(rules_with_secrets),
                     text) {
  const auto why = refused(text);
  for (const auto* word : {"horse", "staple"})
    BOOST_TEST(!contains(why, word), why);
}

BOOST_AUTO_TEST_SUITE_END()
