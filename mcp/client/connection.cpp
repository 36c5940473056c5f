#include "troupe/mcp/client/connection.hpp"

#include "troupe/core/support/base64.hpp"
#include "troupe/core/support/text_in.hpp"
#include "troupe/mcp/client/message.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace troupe::mcp {

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// A server of an older version may not answer a request before `initialize`.
constexpr milliseconds probe_timeout{5'000};
// Joins several reports of a changed list into one request.
constexpr milliseconds list_delay{100};
constexpr std::size_t tools_max = 10'000;
constexpr std::size_t pages_max = 1'000;
constexpr milliseconds shortest_list_lifetime{1'000};
constexpr milliseconds longest_list_lifetime = std::chrono::hours(24);
// A server that has lived for so long has started well.
constexpr auto good_life = std::chrono::seconds(60);
// Doublings of the wait before the next start.
constexpr unsigned doublings_max = 16;

bool is_printable_ascii(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
}

// The value of a header in the form that the protocol asks for.
std::string header_value(const json& from) {
  auto text = from.is_string() ? from.get<std::string>() : from.dump();
  const bool fits
    = is_printable_ascii(text)
      && (text.empty() || (text.front() != ' ' && text.back() != ' '))
      && !text.starts_with("=?base64?");
  return fits ? text : fmt::format("=?base64?{}?=", to_base64(text));
}

} // namespace

connection::connection(std::shared_ptr<io_thread> thread,
                       std::string name,
                       mcp_source source,
                       mcp_options options,
                       open_transport open)
  : thread_(std::move(thread)),
    name_(std::move(name)),
    source_(std::move(source)),
    options_(std::move(options)),
    open_(std::move(open)) {
  if (options_.version != mcp_version::any)
    is_stateless_ = options_.version == mcp_version::stateless;
}

error connection::failure(std::string_view why) const {
  return {errc::tool_failed, fmt::format("the MCP server '{}' {}", name_, why)};
}

void connection::log(std::string_view line) const {
  if (options_.on_log)
    options_.on_log(line);
}

template <class T>
void connection::answer(const std::shared_ptr<wanted<T>>& asked,
                        result<T> with) {
  if (std::exchange(asked->is_over, true))
    return;
  std::exchange(asked->done, nullptr)(std::move(with));
}

// -- any thread ---------------------------------------------------------------

void connection::connect() {
  thread_->post([self = shared_from_this()] {
    self->when_ready([](const result<void>&) {});
  });
}

void connection::call(std::shared_ptr<wanted<json>> call,
                      std::string tool,
                      std::string shown,
                      json args,
                      trace_context trace) {
  thread_->post([self = shared_from_this(),
                 call = std::move(call),
                 tool = std::move(tool),
                 shown = std::move(shown),
                 args = std::move(args),
                 trace = std::move(trace)]() mutable {
    self->when_ready([self,
                      call = std::move(call),
                      tool = std::move(tool),
                      shown = std::move(shown),
                      args = std::move(args),
                      trace = std::move(trace)](const result<void>& ready) {
      if (call->is_over)
        return;
      if (!ready)
        return answer(call, result<json>(ready.error()));
      request sent;
      sent.method = "tools/call";
      sent.params = {{"name", tool}, {"arguments", args}};
      sent.progress_name = shown;
      sent.trace = trace;
      sent.call = call;
      sent.done = [call](result<json> said) { answer(call, std::move(said)); };
      call->id = self->send(std::move(sent));
    });
  });
}

void connection::ask_tools(std::shared_ptr<wanted<offer>> question) {
  thread_->post([self = shared_from_this(), question = std::move(question)] {
    if (self->tools_) {
      answer(question, result<offer>(self->tools_));
      if (self->is_list_old())
        self->list_later();
      // Each connection lists the tools again.
      if (self->phase_ == phase::idle)
        self->when_ready([](const result<void>&) {});
      return;
    }
    self->is_asked_ = true;
    self->when_ready([self, question](const result<void>& ready) {
      answer(question,
             ready ? result<offer>(self->tools_)
                   : result<offer>(ready.error()));
    });
  });
}

template <class T>
void connection::cancel(std::shared_ptr<wanted<T>> given_up, error why) {
  thread_->post([self = shared_from_this(),
                 given_up = std::move(given_up),
                 why = std::move(why)]() mutable {
    if (given_up->is_over)
      return;
    // The note may end the connection.
    const auto through = self->transport_;
    if (const auto id = given_up->id;
        id && through && self->requests_.erase(*id) > 0) {
      if (through->tells_cancellation(self->is_stateless_.value_or(false)))
        self->send_note("notifications/cancelled",
                        {{"requestId", *id}, {"reason", why.message()}});
      through->forget(*id);
    }
    answer(given_up, result<T>(std::move(why)));
  });
}

template void connection::cancel(std::shared_ptr<wanted<json>>, error);
template void connection::cancel(std::shared_ptr<wanted<offer>>, error);

void connection::close() {
  thread_->post([self = shared_from_this()] {
    self->phase_ = phase::closed;
    self->drop_transport();
    const error why(errc::cancelled,
                    fmt::format("the connection to the MCP server '{}' was "
                                "closed",
                                self->name_));
    for (auto& each : std::exchange(self->waiting_, {}))
      each(why);
    self->end_requests(why);
  });
}

// -- connecting ---------------------------------------------------------------

void connection::when_ready(std::function<void(result<void>)> waiter) {
  switch (phase_) {
  case phase::ready:
    return waiter({});
  case phase::closed:
    return waiter(error(
      errc::cancelled,
      fmt::format("the connection to the MCP server '{}' was closed", name_)));
  case phase::idle:
    waiting_.push_back(std::move(waiter));
    return start();
  case phase::starting:
    waiting_.push_back(std::move(waiter));
  }
}

// Waits first if the server has failed before.
void connection::start() {
  phase_ = phase::starting;
  if (failures_ == 0)
    return open();
  auto wait = options_.restart_first;
  for (unsigned count = 1; count < std::min(failures_, doublings_max); ++count)
    wait = std::min(2 * wait, options_.restart_longest);
  start_timer_ = thread_->call_after(wait, [weak = weak_from_this()] {
    if (const auto self = weak.lock(); self && self->phase_ == phase::starting)
      self->open();
  });
}

transport_events connection::make_events() {
  const auto guarded = [this](auto act) {
    return
      [weak = weak_from_this(), number = transports_, act](auto&&... with) {
        if (const auto self = weak.lock(); self && self->transports_ == number)
          act(*self, std::forward<decltype(with)>(with)...);
      };
  };
  return {
    guarded(
      [](connection& self, json message) { self.receive(std::move(message)); }),
    guarded([](connection& self, std::int64_t id, const error& why) {
      self.fail_request(id, why);
    }),
    guarded([](connection& self, const lost_session& lost) {
      self.note_lost_session(lost);
    }),
    guarded([](connection& self, const error& why) { self.note_closed(why); })};
}

void connection::limit_start() {
  start_timer_
    = thread_->call_after(source_.start_timeout, [weak = weak_from_this()] {
        const auto self = weak.lock();
        if (self && self->phase_ == phase::starting)
          self->fail_start(
            self->failure(fmt::format("has not started within {} ms",
                                      self->source_.start_timeout.count())));
      });
}

void connection::open() {
  limit_start();
  ++transports_;
  auto opened = open_(thread_, make_events());
  if (!opened)
    return fail_start(opened.error());
  transport_ = std::move(*opened);
  if (!is_stateless_)
    discover();
  else if (*is_stateless_)
    list_tools({}, listed_pages());
  else
    initialize();
}

// Asks for the stateless version. A server that does not know it answers with
// an error, or ends, or does not answer.
void connection::discover() {
  is_probing_ = true;
  is_stateless_ = true;
  const auto decide = [this](bool is_stateless) {
    if (!std::exchange(is_probing_, false))
      return;
    probe_timer_ = nullptr;
    is_stateless_ = is_stateless;
    if (is_stateless)
      list_tools({}, listed_pages());
    else
      initialize();
  };
  request sent;
  sent.method = "server/discover";
  sent.params = json::object();
  sent.done = [decide](const result<json>& found) {
    const auto versions = found && found->is_object()
                            ? found->value("supportedVersions", json::array())
                            : json::array();
    decide(std::ranges::find(versions, json(stateless_version))
           != versions.end());
  };
  const auto id = send(std::move(sent));
  probe_timer_ = thread_->call_after(
    std::min(probe_timeout, source_.start_timeout / 2),
    [weak = weak_from_this(), decide, id] {
      if (const auto self = weak.lock(); self && self->is_probing_) {
        self->drop_request(id);
        decide(false);
      }
    });
}

void connection::initialize() {
  request sent;
  sent.method = "initialize";
  sent.params
    = {{"protocolVersion", newest_handshake_version},
       {"capabilities", json::object()},
       {"clientInfo", {{"name", "troupe"}, {"version", TROUPE_VERSION}}}};
  sent.done = [this](const result<json>& said) {
    if (!said)
      return fail_start(said.error());
    take_handshake(*said);
  };
  send(std::move(sent));
}

void connection::take_handshake(const json& answer) {
  const auto version = text_in(answer, "protocolVersion");
  if (!is_handshake_version(version))
    return fail_start(failure(fmt::format(
      "speaks version '{}' of MCP; troupe speaks 2026-07-28, 2025-11-25, "
      "2025-06-18, 2025-03-26 and 2024-11-05",
      version)));
  transport_->note_handshake(version);
  // Servers may refuse requests before they have this note.
  outgoing made{make_notification("notifications/initialized"), {}, {}, {}};
  made.on_sent = [weak = weak_from_this(), number = transports_] {
    const auto self = weak.lock();
    if (!self || self->transports_ != number || self->phase_ != phase::starting
        || self->is_listing_)
      return;
    self->transport_->listen();
    self->list_tools({}, listed_pages());
  };
  transport_->send(std::move(made));
}

void connection::list_tools(std::string cursor, listed_pages so_far) {
  if (!is_listing_ && phase_ == phase::ready)
    limit_list();
  is_listing_ = true;
  request sent;
  sent.method = "tools/list";
  sent.params = cursor.empty() ? json::object() : json{{"cursor", cursor}};
  sent.done = [this, cursor, so_far = std::move(so_far)](
                const result<json>& page) mutable {
    const auto fail = [this](const error& why) {
      is_listing_ = false;
      limit_timer_ = nullptr;
      if (phase_ == phase::starting)
        return fail_start(why);
      log(why.message());
      list_if_changed();
    };
    if (!page)
      return fail(page.error());
    const auto size = check_json(*page, "the list of tools");
    if (!size)
      return fail(failure(size.error().message()));
    auto next = add_tools(*page, so_far.tools);
    so_far.bytes += *size;
    ++so_far.count;
    if (so_far.bytes > options_.message_bytes_max || so_far.count > pages_max
        || so_far.tools.size() > tools_max)
      return fail(failure(fmt::format("lists more than {} tools, {} pages or "
                                      "{} bytes",
                                      tools_max,
                                      pages_max,
                                      options_.message_bytes_max)));
    if (!next.empty() && next == cursor)
      return fail(failure("lists the same page of tools again"));
    const auto life = page->is_object() ? page->value("ttlMs", json()) : json();
    list_lifetime_ = milliseconds(0);
    if (life.is_number_unsigned())
      list_lifetime_ = std::clamp(
        milliseconds(std::min<std::uint64_t>(life.get<std::uint64_t>(),
                                             longest_list_lifetime.count())),
        shortest_list_lifetime,
        longest_list_lifetime);
    if (!next.empty())
      return list_tools(std::move(next), std::move(so_far));
    is_listing_ = false;
    limit_timer_ = nullptr;
    become_ready(std::move(so_far.tools));
    list_if_changed();
  };
  list_id_ = send(std::move(sent));
}

// A list that is not answered must not prevent later ones.
void connection::limit_list() {
  limit_timer_
    = thread_->call_after(source_.start_timeout, [weak = weak_from_this()] {
        const auto self = weak.lock();
        if (!self || !self->is_listing_ || self->phase_ != phase::ready)
          return;
        self->drop_list();
        self->log(self->failure("does not list its tools again").message());
        self->list_if_changed();
      });
}

void connection::drop_list() {
  is_listing_ = false;
  list_timer_ = nullptr;
  limit_timer_ = nullptr;
  if (requests_.erase(list_id_) > 0 && transport_)
    transport_->forget(list_id_);
}

void connection::become_ready(std::vector<offered_tool> tools) {
  tools_ = std::make_shared<const std::vector<offered_tool>>(std::move(tools));
  listed_at_ = steady_clock::now();
  start_timer_ = nullptr;
  if (phase_ != phase::starting)
    return;
  phase_ = phase::ready;
  is_asked_ = false;
  ready_at_ = listed_at_;
  if (is_stateless_.value_or(false))
    subscribe();
  for (auto& each : std::exchange(waiting_, {}))
    each({});
}

void connection::fail_start(const error& why) {
  phase_ = phase::idle;
  ++failures_;
  if (options_.version == mcp_version::any)
    is_stateless_.reset();
  drop_transport();
  if (!std::exchange(is_asked_, false))
    log(why.message());
  auto waiting = std::exchange(waiting_, {});
  end_requests(why);
  for (auto& each : waiting)
    each(why);
}

// Drops the transport, and ignores its later events.
void connection::drop_transport() {
  ++transports_;
  start_timer_ = nullptr;
  probe_timer_ = nullptr;
  list_timer_ = nullptr;
  limit_timer_ = nullptr;
  subscription_timer_ = nullptr;
  is_probing_ = false;
  is_listing_ = false;
  has_changed_ = false;
  if (const auto dropped = std::exchange(transport_, nullptr))
    dropped->close([dropped] {});
}

// Fails the calls of tools. The connection's own requests are dropped without
// a call of their handlers.
void connection::end_requests(const error& why) {
  for (auto& [id, each] : std::exchange(requests_, {}))
    if (each.call)
      each.done(why);
}

// -- messages -----------------------------------------------------------------

// Returns 0 if the connection ended while the request was made.
std::int64_t connection::send(request sent) {
  if (!transport_) {
    sent.done(failure("has ended"));
    return 0;
  }
  const auto id = ++last_id_;
  auto params = sent.params;
  auto meta = is_stateless_.value_or(false) ? stateless_meta() : json::object();
  if (!sent.progress_name.empty() && options_.on_progress)
    meta["progressToken"] = id;
  if (!sent.trace.parent.empty())
    meta["traceparent"] = sent.trace.parent;
  if (!sent.trace.state.empty())
    meta["tracestate"] = sent.trace.state;
  if (!meta.empty())
    params["_meta"] = std::move(meta);
  outgoing made{
    make_request(id, sent.method, std::move(params)), id, headers_of(sent), {}};
  requests_.emplace(id, std::move(sent));
  transport_->send(std::move(made));
  return id;
}

// A tool may ask for arguments to be repeated as headers, for proxies.
std::vector<std::pair<std::string, std::string>>
connection::headers_of(const request& sent) const {
  std::vector<std::pair<std::string, std::string>> headers;
  if (source_.url.empty())
    return headers;
  if (!sent.trace.parent.empty())
    headers.emplace_back("traceparent", sent.trace.parent);
  if (!sent.trace.state.empty())
    headers.emplace_back("tracestate", sent.trace.state);
  if (!is_stateless_.value_or(false))
    return headers;
  headers.emplace_back("MCP-Protocol-Version", std::string(stateless_version));
  headers.emplace_back("Mcp-Method", sent.method);
  if (sent.method != "tools/call")
    return headers;
  const auto name = text_in(sent.params, "name");
  headers.emplace_back("Mcp-Name", header_value(json(name)));
  const auto found = std::ranges::find(*tools_, name, &offered_tool::name);
  if (found == tools_->end() || !found->schema.is_object())
    return headers;
  const auto properties = found->schema.value("properties", json::object());
  const auto& args = sent.params.at("arguments");
  for (const auto& [field, about] : properties.items()) {
    const auto header = text_in(about, "x-mcp-header");
    if (!header.empty() && args.contains(field) && args[field].is_primitive())
      headers.emplace_back("Mcp-Param-" + header, header_value(args[field]));
  }
  return headers;
}

void connection::send_note(std::string_view method, json params) {
  if (!transport_)
    return;
  if (is_stateless_.value_or(false))
    params["_meta"] = stateless_meta();
  outgoing made{make_notification(method, std::move(params)), {}, {}, {}};
  if (!source_.url.empty() && is_stateless_.value_or(false))
    made.headers = {{"MCP-Protocol-Version", std::string(stateless_version)},
                    {"Mcp-Method", std::string(method)}};
  transport_->send(std::move(made));
}

void connection::receive(json message) {
  const auto read = read_message(message);
  switch (read.kind) {
  case incoming::form::request:
    return transport_->send({read.method == "ping"
                               ? make_answer(*read.id, json::object())
                               : make_error(*read.id,
                                            method_not_found,
                                            "the client does not offer this"),
                             {},
                             {},
                             {}});
  case incoming::form::notification:
    return receive_note(read.method, read.params);
  case incoming::form::answer:
    break;
  case incoming::form::unknown:
    return;
  }
  if (!read.id->is_number_integer())
    return;
  const auto id = read.id->get<std::int64_t>();
  auto found = requests_.extract(id);
  if (found.empty())
    return;
  transport_->settle(id);
  auto& answered = found.mapped();
  if (answered.call)
    failures_ = 0;
  if (read.result == nullptr && read.code == unsupported_version && is_probing_)
    return fail_start(failure(fmt::format(
      "speaks no version of MCP that troupe speaks: {}", read.failure)));
  if (read.result == nullptr && id == subscription_id_
      && (read.code == method_not_found || read.code == invalid_params))
    return; // The server has no subscriptions.
  if (read.result == nullptr)
    return answered.done(failure(fmt::format(
      "refuses {}: {} (code {})", answered.method, read.failure, read.code)));
  answered.done(*read.result);
}

void connection::receive_note(const std::string& method, const json* params) {
  // The list may have changed before the server knew of the subscription.
  if (method == "notifications/tools/list_changed"
      || method == "notifications/subscriptions/acknowledged")
    return list_later();
  if (method != "notifications/progress" || !options_.on_progress
      || params == nullptr || !params->is_object())
    return;
  const auto token = params->value("progressToken", json());
  if (!token.is_number_integer())
    return;
  const auto found = requests_.find(token.get<std::int64_t>());
  const auto done = params->value("progress", json());
  if (found == requests_.end() || !done.is_number())
    return;
  mcp_progress told;
  told.tool = found->second.progress_name;
  told.done = done.get<double>();
  if (const auto total = params->value("total", json()); total.is_number())
    told.total = total.get<double>();
  told.message = text_in(*params, "message");
  options_.on_progress(told);
}

void connection::fail_request(std::int64_t id, const error& why) {
  auto found = requests_.extract(id);
  if (!found.empty())
    found.mapped().done(why);
}

void connection::drop_request(std::int64_t id) {
  requests_.erase(id);
  transport_->forget(id);
}

// Begins a new session. A call that the server has not begun is sent again in
// it, once.
void connection::note_lost_session(const lost_session& lost) {
  if (lost.is_current && phase_ == phase::ready) {
    phase_ = phase::starting;
    drop_list();
    limit_start();
    initialize();
  }
  auto found = requests_.extract(lost.id);
  if (found.empty())
    return;
  auto sent = std::move(found.mapped());
  if (!sent.call || sent.was_repeated || !lost.may_repeat)
    return sent.done(lost.why);
  sent.was_repeated = true;
  sent.call->id.reset();
  when_ready([self = shared_from_this(),
              again = std::make_shared<request>(std::move(sent))](
               const result<void>& ready) {
    const auto call = again->call;
    if (call->is_over)
      return;
    if (!ready)
      return again->done(ready.error());
    call->id = self->send(std::move(*again));
  });
}

void connection::note_closed(const error& why) {
  // Some servers end at a request before `initialize`.
  if (is_probing_ && options_.version == mcp_version::any) {
    drop_transport();
    requests_.clear();
    is_stateless_ = false;
    return open();
  }
  if (phase_ == phase::starting)
    return fail_start(why);
  phase_ = phase::idle;
  if (steady_clock::now() - ready_at_ >= good_life)
    failures_ = 0;
  ++failures_;
  drop_transport();
  log(why.message());
  end_requests(why);
}

// -- the list of tools --------------------------------------------------------

bool connection::is_list_old() const {
  const auto life = source_.list_lifetime.count() > 0 ? source_.list_lifetime
                                                      : list_lifetime_;
  return life.count() > 0 && steady_clock::now() - listed_at_ >= life;
}

void connection::list_if_changed() {
  if (std::exchange(has_changed_, false))
    list_later();
}

void connection::list_later() {
  has_changed_ = is_listing_;
  if (phase_ != phase::ready || is_listing_ || list_timer_)
    return;
  list_timer_ = thread_->call_after(list_delay, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self)
      return;
    self->list_timer_ = nullptr;
    if (self->phase_ == phase::ready && !self->is_listing_)
      self->list_tools({}, listed_pages());
  });
}

// A server of the stateless version tells changes to the request that asks for
// them, and answers it when it tells no more.
void connection::subscribe() {
  subscribed_at_ = steady_clock::now();
  request sent;
  sent.method = "subscriptions/listen";
  sent.params["notifications"]["toolsListChanged"] = true;
  sent.done = [this](const result<json>&) { subscribe_later(); };
  subscription_id_ = send(std::move(sent));
}

void connection::subscribe_later() {
  if (phase_ != phase::ready)
    return;
  if (steady_clock::now() - subscribed_at_ >= good_life)
    subscribe_after_ = milliseconds(0);
  subscribe_after_ = std::clamp(
    2 * subscribe_after_, options_.restart_first, options_.restart_longest);
  subscription_timer_
    = thread_->call_after(subscribe_after_, [weak = weak_from_this()] {
        if (const auto self = weak.lock(); self && self->phase_ == phase::ready)
          self->subscribe();
      });
}

} // namespace troupe::mcp
