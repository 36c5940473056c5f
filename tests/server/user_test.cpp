// The list of an app's users.

#include "server_fixture.hpp"
#include <boost/test/unit_test.hpp>

#include <string>

using namespace troupe;
using namespace troupe::testing;

BOOST_AUTO_TEST_SUITE(users)

namespace {

const std::string ann_token = "ann-0123456789abcdef";
const std::string admin_token = "admin-0123456789abcdef";

server_options with_tokens() {
  server_options options;
  options.tokens = ann_token + " ann user\n" + admin_token + " root admin\n";
  return options;
}

http_client& as(server_fixture& on, const std::string& token) {
  on.client.headers = {"authorization: Bearer " + token};
  return on.client;
}

void create_for(server_fixture& on, const std::string& user) {
  on.client.post("/apps/press/users/" + user + "/sessions",
                 {{"sessionId", "s1"}});
}

} // namespace

BOOST_AUTO_TEST_CASE(users_come_a_page_at_a_time) {
  server_fixture on;
  for (const auto* user : {"cleo", "ann", "bob"})
    create_for(on, user);
  const auto first = on.client.get("/apps/press/users?limit=2");
  BOOST_TEST(first.data() == json({"ann", "bob"}));
  const auto rest = on.client.get("/apps/press/users?limit=2&cursor="
                                  + first.header("troupe-next-cursor"));
  BOOST_TEST(rest.data() == json({"cleo"}));
  BOOST_TEST(rest.header("troupe-next-cursor") == "");
  BOOST_TEST(on.client.get("/apps/none/users").data() == json::array());
  BOOST_TEST(on.client.get("/apps/press/users?limit=0").status == 400);
}

BOOST_AUTO_TEST_CASE(a_token_of_one_user_sees_no_other_users) {
  server_fixture on({}, with_tokens());
  as(on, admin_token);
  for (const auto* user : {"ann", "bob"})
    create_for(on, user);
  BOOST_TEST(on.client.get("/apps/press/users").data() == json({"ann", "bob"}));
  BOOST_TEST(as(on, ann_token).get("/apps/press/users").data()
             == json({"ann"}));
}

BOOST_AUTO_TEST_SUITE_END()
