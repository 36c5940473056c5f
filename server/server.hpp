// A server that the clients of ADK talk to: sessions, runs and artifacts of a
// runtime over HTTP.
//
//   auto served = troupe::server::start(runtime, {{"press", root}}, {.port =
//   8000}); std::puts(served.value().address().c_str());
//
// Link `troupe::server`. docs/server.md lists the requests and the differences
// from ADK.

#pragma once

#include "troupe/agents/agent.hpp"
#include "troupe/core/error.hpp"
#include "troupe/runtime/runtime.hpp"
#include "troupe/server/server_options.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace troupe {

/// Serves agents by the names of their apps until it is stopped. All members
/// are thread-safe, except moves and destruction.
class server {
public:
  /// Listens and answers. `on` must outlive the server. Fails with
  /// `errc::invalid_argument` on a bad option, on the name of an app that
  /// breaks the rules of `check_id`, and on an address that cannot be used.
  static result<server> start(runtime& on,
                              std::map<std::string, agent> apps,
                              server_options options = {});

  /// Takes the server over. The moved-from object can only be assigned to or
  /// destroyed.
  server(server&&) noexcept;
  /// Exchanges both servers. The former one is stopped when the other object is
  /// destroyed.
  server& operator=(server&&) noexcept;
  /// Stops without a grace period. Not on a thread of the server.
  ~server();

  /// The port that it listens on.
  std::uint16_t port() const noexcept;

  /// `http://127.0.0.1:8000`.
  std::string address() const;

  /// Takes no more requests, and waits for those under way. Runs that have not
  /// ended after `grace` are cancelled, or left open in the store if the server
  /// recovers runs (`server_options::recovers_runs`). Followers are ended at
  /// once. Later calls do nothing. Not on a thread of the server or of the
  /// runtime.
  void stop(std::chrono::milliseconds grace = std::chrono::seconds(10));

private:
  struct parts;

  explicit server(std::unique_ptr<parts> made);

  std::unique_ptr<parts> parts_;
};

} // namespace troupe
