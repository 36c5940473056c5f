// A program on the installed package: one session, one event in three scopes,
// read back.

#include "troupe/runtime/runtime.hpp"

#include <iostream>

int main() {
  try {
    auto runtime = troupe::runtime::open().value();
    auto& sessions = runtime.sessions();
    const auto created
      = sessions.create({"press", "ann"}, {{"topic", "owls"}}).value();

    troupe::event said(troupe::user_text("Go!"));
    said.author = "user";
    said.actions.state_delta
      = troupe::delta::from_json({{"user:name", "Ann"}, {"app:theme", "dark"}})
          .value();
    static_cast<void>(
      sessions.append_event(created.key(), std::move(said)).value());

    const auto fetched = sessions.get(created.key()).value();
    const auto expected = troupe::json{
      {"topic", "owls"}, {"user:name", "Ann"}, {"app:theme", "dark"}};
    std::cout << fetched.state().all() << '\n';
    return fetched.state().all() == expected && fetched.revision() == 1 ? 0 : 1;
  } catch (const troupe::error& failure) {
    std::cerr << to_string(failure) << '\n';
    return 1;
  }
}
