#include "troupe/server/server.hpp"

#include "troupe/core/key.hpp"
#include "troupe/server/access/gate.hpp"
#include "troupe/server/adk/failure.hpp"
#include "troupe/server/adk/served.hpp"
#include "troupe/server/http/connection.hpp"
#include "troupe/server/http/listener.hpp"
#include "troupe/server/page/page.hpp"
#include "troupe/server/recovery/recoveries.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <optional>
#include <utility>
#include <variant>

namespace troupe {

namespace {

using namespace serving;

// The precision of deadlines: fine enough for short ones, and rare enough for
// many connections.
std::chrono::milliseconds tick_of(const server_limits& limits) {
  using std::chrono::milliseconds;
  const auto shortest = std::min({limits.header_time,
                                  limits.body_time,
                                  limits.write_time,
                                  limits.idle_time,
                                  limits.heartbeat});
  return std::clamp(shortest / 4, milliseconds(5), milliseconds(1'000));
}

result<void> check_options(const server_options& options,
                           const std::map<std::string, agent>& apps) {
  for (const auto& [name, root] : apps)
    if (auto checked = check_id(name, "the name of an app"); !checked)
      return checked.error();
  if (options.threads == 0 || options.blocking_threads == 0)
    return error(errc::invalid_argument,
                 "a server needs at least one thread of each kind");
  if (options.tls_certificate.empty() != options.tls_key.empty())
    return error(errc::invalid_argument,
                 "TLS needs both a certificate and its key");
  return {};
}

// Calls `act`, and returns the answer to an exception out of it.
template <class Act>
std::optional<response> failure_of(const Act& act) {
  try {
    act();
    return std::nullopt;
  } catch (const error& thrown) {
    return failure(thrown);
  } catch (const std::bad_alloc&) {
    return serving::detail(503, "out of memory");
  } catch (const std::exception& thrown) {
    return failure({errc::internal, thrown.what()});
  }
}

// Passes a request through the gate to its route.
class entrance {
public:
  entrance(router routes, gate rules, std::shared_ptr<io_threads> threads)
    : routes_(std::move(routes)),
      gate_(std::move(rules)),
      threads_(std::move(threads)) {}

  std::variant<admission, response> admit(const request& head) {
    header_list headers;
    std::variant<admission, response> decided;
    if (auto failed = failure_of([&] { decided = decide(head, headers); }))
      decided = std::move(*failed);
    if (auto* refused = std::get_if<response>(&decided))
      *refused = std::move(*refused).with(std::move(headers));
    else
      std::get<admission>(decided).headers = std::move(headers);
    return decided;
  }

  // Large bodies take long to parse, and the threads that read and write serve
  // all connections.
  void take(request asked, admission admitted, reply to) const {
    constexpr std::size_t quick_bytes_max = std::size_t{64} << 10U;
    if (asked.body.size() <= quick_bytes_max)
      return answer(std::move(asked), std::move(admitted), to);
    threads_->work([asked = std::move(asked),
                    admitted = std::move(admitted),
                    to = std::move(to)]() mutable {
      answer(std::move(asked), std::move(admitted), to);
    });
  }

private:
  static void answer(request asked, admission admitted, const reply& to) {
    auto failed = failure_of([&] {
      (*admitted.handle)(exchange{std::move(asked),
                                  std::move(admitted.path),
                                  std::move(admitted.who),
                                  to});
    });
    if (failed)
      to.send(std::move(*failed));
  }

  std::variant<admission, response> decide(const request& head,
                                           header_list& headers) {
    auto known = gate_.admit(head, headers);
    if (auto* refused = std::get_if<response>(&known))
      return std::move(*refused);
    return routes_.find(head, std::move(std::get<caller>(known)));
  }

  const router routes_;
  gate gate_;
  const std::shared_ptr<io_threads> threads_;
};

} // namespace

struct server::parts {
  std::string scheme;
  std::string address;
  std::shared_ptr<io_threads> threads;
  served_ptr content;
  std::shared_ptr<recoveries> recovered; // Null if the server recovers no runs.
  std::shared_ptr<listener> port;

  ~parts() {
    if (port)
      stop(std::chrono::milliseconds::zero());
  }

  void stop(std::chrono::milliseconds grace) {
    // Time for the last answers, which wait for runs that were cancelled.
    constexpr std::chrono::seconds last_answers{10};
    if (std::exchange(is_stopped, true))
      return;
    recovered.reset(); // This server goes on with no run that it leaves.
    const auto end = std::chrono::steady_clock::now() + grace;
    const auto left = [end] {
      return std::max(std::chrono::duration_cast<std::chrono::milliseconds>(
                        end - std::chrono::steady_clock::now()),
                      std::chrono::milliseconds::zero());
    };
    port->close();
    threads->drain();
    content->follows.close_all();
    content->runs.await_none(left());
    threads->await_requests(left());
    // Another server, or the next program, goes on with them.
    content->runs.cancel_all(content->options.recovers_runs);
    content->runs.await_none(last_answers);
    threads->await_requests(last_answers);
    threads->stop();
  }

  bool is_stopped = false;
};

server::server(std::unique_ptr<parts> made) : parts_(std::move(made)) {}

server::server(server&&) noexcept = default;

server& server::operator=(server&& other) noexcept {
  std::swap(parts_, other.parts_);
  return *this;
}

server::~server() = default;

result<server> server::start(runtime& on,
                             std::map<std::string, agent> apps,
                             server_options options) {
  if (auto fit = check_options(options, apps); !fit)
    return fit.error();
  auto rules = gate::make(options);
  if (!rules)
    return rules.error();
  if (options.ui_folder.empty())
    for (const auto& file : page_files())
      rules->open_path(file.path);
  auto made = std::make_unique<parts>();
  made->threads = std::make_shared<io_threads>(options.limits.connections_max,
                                               tick_of(options.limits));
  made->content = std::shared_ptr<served>(
    new served{on, std::move(apps), options, made->threads, {}, {}, {}});
  const auto door = std::make_shared<entrance>(
    make_routes(made->content), std::move(*rules), made->threads);
  const auto settings
    = std::make_shared<const connection_settings>(connection_settings{
      made->threads,
      options.limits,
      [door](const request& head) { return door->admit(head); },
      [door](request asked, admission admitted, reply to) {
        door->take(std::move(asked), std::move(admitted), std::move(to));
      }});
  auto opened = listener::open(options.address,
                               options.port,
                               {options.tls_certificate, options.tls_key},
                               settings);
  if (!opened)
    return opened.error();
  made->port = std::move(*opened);
  made->scheme = options.tls_certificate.empty() ? "http" : "https";
  made->address = options.address.find(':') == std::string::npos
                    ? options.address
                    : fmt::format("[{}]", options.address);
  made->threads->start(options.threads, options.blocking_threads);
  made->port->start();
  if (made->content->options.recovers_runs) {
    made->recovered = std::make_shared<recoveries>(made->content);
    made->recovered->start();
  }
  return server(std::move(made));
}

std::uint16_t server::port() const noexcept {
  return parts_->port->port();
}

std::string server::address() const {
  return fmt::format("{}://{}:{}", parts_->scheme, parts_->address, port());
}

void server::stop(std::chrono::milliseconds grace) {
  parts_->stop(grace);
}

} // namespace troupe
