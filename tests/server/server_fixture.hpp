// A server on a free port, over a runtime in memory, and a client of it.

#pragma once

#include "troupe/server/server.hpp"

#include "../runtime/agent_fixture.hpp"
#include "http_client.hpp"

#include <map>
#include <optional>
#include <string>
#include <utility>

namespace troupe::testing {

/// The path of a user's sessions, and of one of them.
inline const std::string all_path = "/apps/press/users/ann/sessions";
inline const std::string one_path = all_path + "/s1";

struct server_fixture {
  explicit server_fixture(std::map<std::string, agent> apps = {},
                          server_options options = {})
    : server_fixture(
      troupe::runtime::open().value(), std::move(apps), std::move(options)) {}

  server_fixture(troupe::runtime opened,
                 std::map<std::string, agent> apps,
                 server_options options = {})
    : runtime(std::move(opened)),
      server(troupe::server::start(runtime, std::move(apps), std::move(options))
               .value()),
      client(server.port()) {}

  http_client connect() const { return http_client(server.port()); }

  /// Creates the session s1.
  http_answer create(const json& state = json::object()) {
    return client.post(all_path, {{"sessionId", "s1"}, {"state", state}});
  }

  troupe::runtime runtime;
  troupe::server server;
  http_client client;
};

} // namespace troupe::testing
