// Answers the refunds that wait for a person:
// approve STORE USER SESSION allow|deny

#include "troupe/agents/agent_file.hpp"
#include "troupe/agents/open_call.hpp"
#include "troupe/runtime/runtime.hpp"

#include "desk_tools.hpp"

#include <exception>
#include <iostream>
#include <string>

namespace {

void approve(const std::string& store,
             const troupe::session_key& key,
             bool is_allowed) {
  const auto desk = troupe::load_agent_file(
                      ".", {.tools = troupe::make_registry(desk_tools())})
                      .value();
  auto runtime = troupe::runtime::open({.store = store}).value();
  for (const auto& call : runtime.sessions().open_calls(key).value()) {
    std::cout << call.tool << ' ' << call.args.data() << '\n';
    const auto answer = is_allowed ? troupe::allow(call) : troupe::deny(call);
    for (const auto& said : runtime.run(desk, key, answer))
      if (troupe::is_final(*said))
        std::cout << said->author << ": " << said->text() << '\n';
  }
}

} // namespace

int main(int count, char** words) {
  if (count != 5) {
    std::cerr << "usage: approve STORE USER SESSION allow|deny\n";
    return 2;
  }
  try {
    approve(
      words[1], {"desk", words[2], words[3]}, std::string(words[4]) == "allow");
  } catch (const std::exception& failure) {
    std::cerr << "error: " << failure.what() << '\n';
    return 1;
  }
}
