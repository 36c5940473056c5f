// Options of a server: its address, its limits, and its callers.

#pragma once

#include "troupe/contexts/run_options.hpp"
#include "troupe/core/error.hpp"
#include "troupe/runtime/unfinished_run.hpp"
#include "troupe/server/commit_counts.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace troupe {

/// Limits of requests and connections. Above a limit, a request is refused or
/// its connection closed; other connections are not affected.
struct server_limits {
  /// Bytes of the request line and the headers of one request; above it, status
  /// 431.
  std::uint32_t header_bytes_max = 16U * 1024U;
  /// Bytes of the body of one request; above it, status 413. Images in a
  /// message need 4/3 of their size.
  std::size_t body_bytes_max = std::size_t{16} << 20U;
  /// Number of open connections. Further ones are closed at once.
  std::size_t connections_max = 20'000;
  /// Time for the headers of a request, from its first byte.
  std::chrono::milliseconds header_time{10'000};
  /// Time for the first MiB of a body, and again for each further one.
  std::chrono::milliseconds body_time{30'000};
  /// Time in which a client must accept a part of an answer.
  std::chrono::milliseconds write_time{30'000};
  /// Time that a connection may wait for its next request.
  std::chrono::milliseconds idle_time{75'000};
  /// Bytes of a stream that a slow client has not accepted yet. Above it, as
  /// many bytes of events wait before the stream; further pieces are left out,
  /// and further stored events are read from the session later. Runs are not
  /// held up.
  std::size_t stream_bytes_max = std::size_t{256} << 10U;
  /// Time without an event after which a stream sends a comment, which shows
  /// that the client is still there.
  std::chrono::milliseconds heartbeat{15'000};
};

/// Options of a server. The defaults serve programs on the same machine.
struct server_options {
  /// Address to listen on: of IPv4 or IPv6, or `localhost`.
  std::string address = "127.0.0.1";
  /// Port to listen on; 0: a free one, which `server::port` tells.
  std::uint16_t port = 0;
  /// Threads that read and write connections; at least 1.
  std::size_t threads = 1;
  /// Threads for work that may take long, such as reading artifacts and bodies
  /// above 64 KiB; at least 1.
  std::size_t blocking_threads = 4;
  /// Limits of requests and connections.
  server_limits limits = {};
  /// Requests that one caller may send in a second: a user, or an address
  /// without one. Above it, status 429. 0: no limit.
  double requests_per_second = 0;
  /// Lines `TOKEN USER ROLE`, with the roles `reader`, `user` and `admin`. A
  /// request then needs `Authorization: Bearer TOKEN`. Empty: each caller is an
  /// admin, which only an address of loopback allows.
  std::string tokens = {};
  /// Name of a header by which a proxy names the user, as role `user`.
  std::string trusted_header = {};
  /// Address of that proxy, or a block such as `10.0.0.0/8`. The header of
  /// other clients is ignored. Its `X-Forwarded-Proto` or `Forwarded` names the
  /// scheme of the site. Listening on loopback, the server then also takes the
  /// hosts of `origins` in `Host`. Without `trusted_header`, callers need
  /// tokens.
  std::string trusted_proxy = {};
  /// Origins of other sites whose pages may send requests, as
  /// `https://example.com`, or `*`; they get headers of CORS. Credentials are
  /// allowed only to origins that are named. Empty: none.
  std::vector<std::string> origins = {};
  /// File of a certificate chain in PEM, for TLS. Empty: none.
  std::string tls_certificate = {};
  /// File of its key in PEM.
  std::string tls_key = {};
  /// Options of the runs that requests start.
  run_options runs = {};
  /// Commits of the runtime, for `GET /figures`: `runtime_options::on_commit`
  /// adds to them. Null: the figures tell nothing about commits.
  std::shared_ptr<const commit_counts> commits = {};
  /// Folder with the page of ADK, `google/adk/cli/browser` of its package,
  /// which is then served under `/dev-ui/`. Empty: none.
  std::string ui_folder = {};
  /// True if a client that goes away cancels its run, unless its request has
  /// `onDisconnect: "continue"`. False: the run goes on, unless the request has
  /// `onDisconnect: "cancel"`.
  bool cancel_on_disconnect = false;
  /// True: the server recovers the open runs of its apps, when it starts and
  /// while it runs (docs/agents.md, "Recovery"): those whose processes have
  /// ended, and whose root agent has the name of the app's. If the store fails
  /// before the run goes on, it is tried again, after two seconds at first and
  /// later after up to a minute. After other failures it is tried again when a
  /// process has had the run since, and has not refused it.
  /// False: only when a request asks for it.
  bool recovers_runs = false;
  /// Called after each recovery by `recovers_runs`, on a thread of the runtime:
  /// with success when the run has ended, or with the error of the recovery or
  /// the run. It must not block or throw. Empty: nothing is called.
  std::function<void(const unfinished_run& run, const result<void>& outcome)>
    on_recovery = {};
};

} // namespace troupe
