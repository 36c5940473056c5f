// Uses a package without PostgreSQL and models over HTTP: memory, SQLite and
// scripts work, and the other addresses say how to build with them.

#include "troupe/models/open_model.hpp"
#include "troupe/runtime/runtime.hpp"

#include <iostream>
#include <string>

namespace {

bool says(const troupe::error& failure, const std::string& option) {
  std::cout << failure.what() << '\n';
  return failure.code() == troupe::errc::invalid_argument
         && failure.message().find("-D" + option + "=ON") != std::string::npos
         && failure.message().find("s3cret") == std::string::npos;
}

} // namespace

int main(int, char** words) {
  for (const auto& store :
       {std::string("memory:"), "sqlite:" + std::string(words[0]) + ".db"}) {
    auto runtime = troupe::runtime::open({.store = store}).value();
    const auto key
      = runtime.sessions().get_or_create({"press", "ann", "s"}).value().key();
    auto state = runtime.sessions().state(key);
    const auto before = state.get("app:n", 0).value();
    state.add("app:n", 1).value();
    if (state.get<int>("app:n").value() != before + 1)
      return 1;
  }
  const auto store
    = troupe::runtime::open({.store = "postgres://ann:s3cret@localhost/x"});
  const auto model = troupe::open_model({.name = "openai:gpt-x"});
  return !store && says(store.error(), "TROUPE_POSTGRES") && !model
             && says(model.error(), "TROUPE_HTTP_MODELS")
           ? 0
           : 1;
}
