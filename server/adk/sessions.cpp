#include "troupe/server/adk/body.hpp"
#include "troupe/server/adk/conflict.hpp"
#include "troupe/server/adk/failure.hpp"
#include "troupe/server/adk/forms.hpp"
#include "troupe/server/adk/query.hpp"
#include "troupe/server/adk/rights.hpp"
#include "troupe/server/adk/served.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace troupe::serving {

namespace {

constexpr std::string_view sessions_path = "/apps/{app}/users/{user}/sessions";
constexpr std::string_view session_path
  = "/apps/{app}/users/{user}/sessions/{session}";

// Above it, JSON is made on a thread that may be busy for long.
constexpr std::size_t quick_events_max = 64;

void answer_now(const reply& to, const session& fetched) {
  auto shown = json_response(session_form(fetched))
                 .with("etag", etag_of(fetched.revision()));
  // Clients of ADK refuse a further field.
  if (const auto first = fetched.first_revision(); first > 0)
    shown
      = std::move(shown).with("troupe-first-revision", std::to_string(first));
  to.send(std::move(shown));
}

void answer(const served_ptr& on, const reply& to, session fetched) {
  if (fetched.events().size() <= quick_events_max)
    return answer_now(to, fetched);
  on->threads->work(
    [to, fetched = std::move(fetched)] { answer_now(to, fetched); });
}

void answer_fetched(const served_ptr& on,
                    const reply& to,
                    session_key key,
                    const get_options& choice) {
  on->on.sessions()
    .get(std::move(key), choice)
    .then([on, to](result<session> fetched) {
      if (fetched)
        answer(on, to, std::move(*fetched));
      else
        to.send(failure(fetched.error()));
    });
}

// -- list ----

// Reads all pages of a list. The newest session comes first in a page, and last
// in ADK's answer.
struct whole_list : std::enable_shared_from_this<whole_list> {
  whole_list(served_ptr with, exchange sent)
    : on(std::move(with)),
      asked(std::move(sent)) {}

  void read(std::string cursor) {
    on->on.sessions()
      .list({asked.path["app"], asked.path["user"], 1'000, std::move(cursor)})
      .then([self = shared_from_this()](result<session_page> page) {
        self->take(std::move(page));
      });
  }

  void take(result<session_page> page) {
    if (!page)
      return asked.to.send(failure(page.error()));
    for (const auto& each : page->sessions)
      found.push_back(session_form(each));
    if (!page->next_cursor.empty())
      return read(page->next_cursor);
    std::ranges::reverse(found);
    asked.to.send(json_response(json(std::move(found))));
  }

  const served_ptr on;
  const exchange asked;
  std::vector<json> found;
};

void list_page(const served_ptr& on, exchange asked, std::uint64_t limit) {
  const auto* cursor = asked.asked.target.find("cursor");
  list_request wanted(asked.path["app"],
                      asked.path["user"],
                      static_cast<std::size_t>(limit),
                      cursor == nullptr ? std::string() : *cursor);
  on->on.sessions()
    .list(std::move(wanted))
    .then([to = asked.to](result<session_page> page) {
      if (!page)
        return to.send(failure(page.error()));
      auto found = json::array();
      for (const auto& each : page->sessions)
        found.push_back(session_form(each));
      auto answer = json_response(found);
      if (!page->next_cursor.empty())
        answer = std::move(answer).with("troupe-next-cursor",
                                        percent_encoded(page->next_cursor));
      to.send(std::move(answer));
    });
}

void list_sessions(const served_ptr& on, exchange asked) {
  constexpr std::uint64_t limit_max = 10'000;
  const auto limit = number_in(asked.asked, "limit");
  if (!limit)
    return asked.to.send(failure(limit.error()));
  if (*limit)
    return list_page(on, std::move(asked), std::min(**limit, limit_max));
  std::make_shared<whole_list>(on, std::move(asked))->read({});
}

// -- create ----

// ADK refuses events of other origin that change a session or answer calls.
bool is_plain(const event& past) {
  return !has_effect(past.actions) && past.long_running_tool_ids.empty()
         && std::ranges::none_of(past.content.parts, [](const part& each) {
              const auto* call = each.call();
              return call != nullptr && call->name.starts_with("adk_");
            });
}

std::vector<event> read_past(body& given) {
  std::vector<event> past;
  const auto* events = given.list("events");
  if (events == nullptr)
    return past;
  for (const auto& each : *events) {
    auto read = event_from_json(each);
    if (read)
      past.push_back(std::move(*read));
    else
      given.refuse("events", read.error().message());
  }
  return past;
}

void create(const served_ptr& on,
            const exchange& asked,
            create_request wanted) {
  if (auto refused = check_keys(asked.who, wanted.state))
    return asked.to.send(std::move(*refused));
  for (const auto& past : wanted.events)
    if (auto refused = check_event_of(asked.who, past))
      return asked.to.send(std::move(*refused));
  const auto id = wanted.id;
  const bool has_past = !wanted.events.empty();
  on->on.sessions()
    .create(std::move(wanted))
    .then([on, asked, id, has_past](result<session> made) {
      if (made && has_past)
        return answer_fetched(on, asked.to, made->key(), {});
      if (made)
        return answer(on, asked.to, std::move(*made));
      if (made.error().code() != errc::already_exists)
        return asked.to.send(failure(made.error()));
      asked.to.send(detail(409, fmt::format("Session already exists: {}", id))
                      .with("troupe-error", "already_exists"));
    });
}

void create_session(const served_ptr& on, exchange asked) {
  body given(asked.asked.body, true);
  create_request wanted(asked.path["app"], asked.path["user"]);
  wanted.id = given.text("sessionId").value_or("");
  if (const auto* state = given.object("state"))
    wanted.state = keys_from_adk(*state);
  wanted.events = read_past(given);
  if (auto refused = given.refusal())
    return asked.to.send(std::move(*refused));
  if (!std::ranges::all_of(wanted.events, is_plain))
    return asked.to.send(
      detail(400,
             "events of a new session have no actions, no long-running calls "
             "and no calls of adk_ functions"));
  create(on, asked, std::move(wanted));
}

// The older form, whose body is the state.
void create_with_id(const served_ptr& on, exchange asked) {
  body given(asked.asked.body, true);
  if (auto refused = given.refusal())
    return asked.to.send(std::move(*refused));
  create_request wanted(key_in(asked.path));
  wanted.state = keys_from_adk(given.data());
  create(on, asked, std::move(wanted));
}

// -- read ----

response no_session() {
  return detail(404, "Session not found").with("troupe-error", "not_found");
}

result<get_options> read_choice(const request& asked) {
  get_options choice;
  const auto at = number_in(asked, "at");
  if (!at)
    return at.error();
  choice.at = *at;
  const auto count = number_in(asked, "events");
  if (!count)
    return count.error();
  if (*count)
    choice.num_recent_events = static_cast<std::size_t>(**count);
  return choice;
}

void get_session(const served_ptr& on, exchange asked) {
  const auto choice = read_choice(asked.asked);
  if (!choice)
    return asked.to.send(failure(choice.error()));
  on->on.sessions()
    .get(key_in(asked.path), *choice)
    .then([on, to = asked.to, is_now = !choice->at](result<session> fetched) {
      if (fetched)
        return answer(on, to, std::move(*fetched));
      if (is_now && fetched.error().code() == errc::not_found)
        return to.send(no_session());
      to.send(failure(fetched.error()));
    });
}

// -- change ----

// The delta of a PATCH, as the client has sent it.
struct patch {
  json keys = json::object();
  json operations = json::array();
  std::optional<std::uint64_t> expected;
  get_options choice;
};

// Removes keys that have this value already. A client that sends the whole
// state back, as ADK's page does to rename a session, would otherwise undo
// changes of other clients.
void drop_equal(json& keys, const readonly_state& present) {
  for (auto each = keys.begin(); each != keys.end();) {
    const auto held = present.find(each.key());
    const bool is_same = held ? equal(held->data(), *each) : each->is_null();
    each = is_same ? keys.erase(each) : std::next(each);
  }
}

result<event> make_change(environment& source, const patch& wanted) {
  auto changed = delta::from_json(wanted.keys);
  if (!changed)
    return changed.error();
  if (auto added = record_operations(*changed, wanted.operations); !added)
    return added.error();
  changed->drop(scope::temp);
  event change;
  change.author = "user";
  change.invocation_id = "p-" + source.new_id();
  change.actions.state_delta = std::move(*changed);
  return change;
}

void apply(const served_ptr& on,
           const exchange& asked,
           patch wanted,
           const session& present) {
  drop_equal(wanted.keys, present.state());
  if (auto refused = check_keys(asked.who, wanted.keys, wanted.operations))
    return asked.to.send(std::move(*refused));
  if (wanted.expected && *wanted.expected != present.revision())
    return asked.to.send(stale());
  auto change = make_change(*on->on.environment(), wanted);
  if (!change)
    return asked.to.send(failure(change.error()));
  if (change->actions.state_delta.empty())
    return answer_fetched(on, asked.to, key_in(asked.path), wanted.choice);
  on->on.sessions()
    .append_event(key_in(asked.path),
                  std::move(*change),
                  {.expected_revision = wanted.expected})
    .then([on, asked, choice = wanted.choice](result<event_ptr> stored) {
      if (!stored)
        return answer_failed_write(on, asked, stored.error());
      answer_fetched(on, asked.to, key_in(asked.path), choice);
    });
}

void patch_session(const served_ptr& on, exchange asked) {
  body given(asked.asked.body);
  patch wanted;
  const auto* operations = given.list("stateOps");
  const auto* keys = operations == nullptr ? given.required_object("stateDelta")
                                           : given.object("stateDelta");
  if (auto refused = given.refusal())
    return asked.to.send(std::move(*refused));
  if (keys != nullptr)
    wanted.keys = keys_from_adk(*keys);
  if (operations != nullptr)
    wanted.operations = *operations;
  const auto expected = expected_revision(asked.asked);
  if (!expected)
    return asked.to.send(failure(expected.error()));
  wanted.expected = *expected;
  const auto choice = read_choice(asked.asked);
  if (!choice)
    return asked.to.send(failure(choice.error()));
  wanted.choice = *choice;
  on->on.sessions()
    .get(key_in(asked.path), {.num_recent_events = 0})
    .then([on, asked = std::move(asked), wanted = std::move(wanted)](
            result<session> present) {
      if (present)
        return apply(on, asked, wanted, *present);
      if (present.error().code() == errc::not_found)
        return asked.to.send(no_session());
      asked.to.send(failure(present.error()));
    });
}

void delete_session(const served_ptr& on, exchange asked) {
  const auto expected = expected_revision(asked.asked);
  if (!expected)
    return asked.to.send(failure(expected.error()));
  on->on.sessions()
    .remove(key_in(asked.path), {.expected_revision = *expected})
    .then(
      [on, asked = std::move(asked), is_conditional = expected->has_value()](
        const result<bool>& removed) {
        if (!removed)
          answer_failed_write(on, asked, removed.error());
        else if (is_conditional && !*removed)
          asked.to.send(stale()); // There is no session.
        else
          asked.to.send(json_text_response("null"));
      });
}

// -- memory ----

void remember_session(const served_ptr& on, exchange asked) {
  if (!on->on.memory())
    return asked.to.send(detail(400, "Memory service is not configured."));
  body given(asked.asked.body);
  const auto id = given.required_text("sessionId");
  if (auto refused = given.refusal())
    return asked.to.send(std::move(*refused));
  on->on.sessions()
    .add_to_memory(
      session_key(spelled(asked.path["app"]), spelled(asked.path["user"]), id))
    .then([asked = std::move(asked)](const result<std::size_t>& added) {
      if (added)
        return asked.to.send(json_text_response("null"));
      if (added.error().code() == errc::not_found)
        return asked.to.send(no_session());
      asked.to.send(failure(added.error()));
    });
}

} // namespace

void add_sessions(router& routes, const served_ptr& on) {
  const std::string all(sessions_path);
  const std::string one(session_path);
  routes.add("GET", all, handled_by(on, list_sessions));
  routes.add("POST", all, handled_by(on, create_session));
  routes.add("GET", one, handled_by(on, get_session));
  routes.add("POST", one, handled_by(on, create_with_id));
  routes.add("PATCH", one, handled_by(on, patch_session));
  routes.add("DELETE", one, handled_by(on, delete_session));
  routes.add("PATCH",
             "/apps/{app}/users/{user}/memory",
             handled_by(on, remember_session));
}

} // namespace troupe::serving
