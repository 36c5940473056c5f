// Requests that ADK does not have: events of a session a page at a time or as
// they come, and the append of one event that answers with this event alone.

#include "troupe/server/adk/conflict.hpp"
#include "troupe/server/adk/failure.hpp"
#include "troupe/server/adk/forms.hpp"
#include "troupe/server/adk/query.hpp"
#include "troupe/server/adk/rights.hpp"
#include "troupe/server/adk/served.hpp"
#include "troupe/server/http/event_stream.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

namespace troupe::serving {

namespace {

// -- a page ----

constexpr std::uint64_t page_default = 100;
constexpr std::uint64_t page_max = 1'000;

// Events behind `after`, up to `count` of them.
struct page_bounds {
  std::uint64_t after = 0;
  std::uint64_t count = 0;
};

struct page_request {
  std::optional<std::uint64_t> after;
  std::optional<std::uint64_t> before;
  std::uint64_t limit = page_default;

  // The newest events come from `before` back, others from `after` on. A
  // trimmed session has no events up to revision `oldest`.
  page_bounds bounds(std::uint64_t oldest, std::uint64_t newest) const {
    if (before) {
      const auto last
        = std::max(std::min(newest, *before == 0 ? 0 : *before - 1), oldest);
      const auto count = std::min(limit, last - oldest);
      return {last - count, count};
    }
    const auto first = std::min(after.value_or(oldest), newest);
    return {first, std::min(limit, newest - first)};
  }
};

result<page_request> read_page_request(const request& asked) {
  page_request wanted;
  const auto after = number_in(asked, "after");
  if (!after)
    return after.error();
  const auto before = number_in(asked, "before");
  if (!before)
    return before.error();
  const auto limit = number_in(asked, "limit");
  if (!limit)
    return limit.error();
  if (*after && *before)
    return error(errc::invalid_argument,
                 "'after' and 'before' exclude each other");
  wanted.after = *after;
  wanted.before = *before;
  wanted.limit = std::min(limit->value_or(page_default), page_max);
  return wanted;
}

// Reads the events of one page. A follower reads only these, however long the
// session is.
struct page_reader : std::enable_shared_from_this<page_reader> {
  page_reader(follower from,
              page_bounds of,
              const session& present,
              reply sender)
    : source(std::move(from)),
      bounds(of),
      revision(present.revision()),
      first_revision(present.first_revision()),
      to(std::move(sender)) {}

  void read() {
    if (found.size() == bounds.count)
      return to.send(json_response({{"events", std::move(found)},
                                    {"after", bounds.after},
                                    {"revision", revision},
                                    {"firstRevision", first_revision}}));
    source.next().then(
      [self = shared_from_this()](const result<event_ptr>& next) {
        if (!next)
          return self->to.send(failure(next.error()));
        if (*next == nullptr)
          return self->to.send(
            failure({errc::cancelled, "the server has stopped"}));
        self->found.push_back(event_form(**next));
        self->read();
      });
  }

  follower source;
  const page_bounds bounds;
  const std::uint64_t revision;
  const std::uint64_t first_revision;
  const reply to;
  json found = json::array();
};

void read_page(const served_ptr& on,
               const exchange& asked,
               const page_request& wanted,
               const session& present) {
  const auto bounds
    = wanted.bounds(present.first_revision(), present.revision());
  std::make_shared<page_reader>(
    on->on.sessions().follow(key_in(asked.path), {.from = bounds.after}),
    bounds,
    present,
    asked.to)
    ->read();
}

// -- events as they come ----

// Delivers events to one client until one of both ends.
class live_events : public std::enable_shared_from_this<live_events> {
public:
  live_events(served_ptr on, follower source, const reply& to)
    : on_(std::move(on)),
      source_(std::make_shared<follower>(std::move(source))),
      stream_(to, {}) {}

  void start(const reply& to) {
    on_->follows.add(source_);
    to.watch([source = std::weak_ptr(source_)](departure how) {
      const auto held = source.lock();
      if (held && how == departure::whole)
        held->close();
    });
    ask();
  }

private:
  void ask() {
    source_->next().then(
      [self = shared_from_this()](const result<event_ptr>& next) {
        if (next && *next != nullptr)
          self->take(*next);
        else
          self->finish(next);
      });
  }

  void take(const event_ptr& said) {
    stream_.write(
      *on_->lines.of(said),
      [self = shared_from_this()] { self->ask(); },
      std::to_string(source_->revision().value_or(0)));
  }

  void finish(const result<event_ptr>& last) {
    on_->follows.remove(*source_);
    if (!last)
      stream_.write(
        to_text(error_line(last.error(), on_->on.environment()->now())), {});
    stream_.end();
  }

  const served_ptr on_;
  const std::shared_ptr<follower> source_;
  const event_stream stream_;
};

void follow(const served_ptr& on,
            const exchange& asked,
            std::optional<std::uint64_t> place,
            const session& present) {
  if (place && *place > present.revision())
    return asked.to.send(failure(
      troupe::detail::no_revision(present.key(), *place, present.revision())));
  if (place && *place < present.first_revision())
    return asked.to.send(failure(troupe::detail::trimmed_event(
      present.key(), *place + 1, present.first_revision())));
  if (asked.asked.method == "HEAD")
    return asked.to.send(stream_head());
  const auto from = place.value_or(present.revision());
  std::make_shared<live_events>(
    on, on->on.sessions().follow(key_in(asked.path), {.from = from}), asked.to)
    ->start(asked.to);
}

// Calls `take` with the session, without its events.
template <class Take>
void with_session(const served_ptr& on, exchange asked, Take take) {
  const auto key = key_in(asked.path);
  on->on.sessions()
    .get(key, {.num_recent_events = 0})
    .then([asked = std::move(asked), take](const result<session>& present) {
      if (present)
        take(asked, *present);
      else
        asked.to.send(failure(present.error()));
    });
}

void get_events(const served_ptr& on, exchange asked) {
  if (wants_stream(asked.asked)) {
    const auto place = stream_place(asked.asked);
    if (!place)
      return asked.to.send(failure(place.error()));
    return with_session(
      on,
      std::move(asked),
      [on, place = *place](const exchange& seen, const session& present) {
        follow(on, seen, place, present);
      });
  }
  const auto wanted = read_page_request(asked.asked);
  if (!wanted)
    return asked.to.send(failure(wanted.error()));
  with_session(
    on,
    std::move(asked),
    [on, wanted = *wanted](const exchange& seen, const session& present) {
      read_page(on, seen, wanted, present);
    });
}

// -- append ----

// Renames the reserved key in the delta of an event on the wire.
void rename_keys(json& said) {
  const auto actions = said.find("actions");
  if (actions == said.end() || !actions->is_object())
    return;
  for (const char* name : {"stateDelta", "state_delta"})
    if (const auto found = actions->find(name); found != actions->end())
      *found = keys_from_adk(std::move(*found));
}

result<event> read_event(const std::string& text) {
  auto parsed = parse_json(text);
  if (!parsed)
    return parsed.error();
  if (parsed->is_object())
    rename_keys(*parsed);
  auto said = event_from_json(*parsed);
  if (said && said->author.empty())
    said->author = "user";
  return said;
}

void append_event(const served_ptr& on, exchange asked) {
  auto said = read_event(asked.asked.body);
  if (!said)
    return asked.to.send(failure(said.error()));
  if (auto refused = check_event_of(asked.who, *said))
    return asked.to.send(std::move(*refused));
  const auto expected = expected_revision(asked.asked);
  if (!expected)
    return asked.to.send(failure(expected.error()));
  const auto key = key_in(asked.path);
  // The body is not needed any more.
  asked.asked.body = {};
  on->on.sessions()
    .append_event(key, std::move(*said), {.expected_revision = *expected})
    .then([on, asked = std::move(asked)](const result<event_ptr>& stored) {
      if (stored)
        asked.to.send(json_response(event_form(**stored)));
      else
        answer_failed_write(on, asked, stored.error());
    });
}

} // namespace

void add_events(router& routes, const served_ptr& on) {
  const std::string events
    = "/apps/{app}/users/{user}/sessions/{session}/events";
  routes.add("GET", events, handled_by(on, get_events));
  routes.add("POST", events, handled_by(on, append_event));
}

} // namespace troupe::serving
