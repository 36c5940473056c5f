// Requests that ADK does not have: a session goes back, or is forked.

#include "troupe/server/adk/body.hpp"
#include "troupe/server/adk/conflict.hpp"
#include "troupe/server/adk/failure.hpp"
#include "troupe/server/adk/forms.hpp"
#include "troupe/server/adk/query.hpp"
#include "troupe/server/adk/rights.hpp"
#include "troupe/server/adk/served.hpp"

#include <optional>
#include <string>
#include <utility>

namespace troupe::serving {

namespace {

json rewind_form(const rewound_session& done) {
  return {{"event", event_form(*done.event)},
          {"to", done.to},
          {"revision", done.revision},
          {"keptKeys", done.kept_keys},
          {"compensatedKeys", done.compensated_keys},
          {"cutRuns", done.cut_runs}};
}

void rewind(const served_ptr& on, exchange asked) {
  body given(asked.asked.body);
  const auto to = given.number("to");
  const auto run = given.text("beforeInvocationId");
  const auto cancels = given.flag("cancelRuns").value_or(false);
  const bool compensate = given.flag("compensate").value_or(false);
  if (auto refused = given.refusal())
    return asked.to.send(std::move(*refused));
  if (to.has_value() == run.has_value())
    return asked.to.send(
      failure({errc::invalid_argument,
               "a rewind needs one of 'to' and 'beforeInvocationId'"}));
  // The session's agents may have operated on `app:` keys.
  if (compensate && !asked.who.is_trusted())
    return asked.to.send(forbidden("this token cannot rewind with compensate, "
                                   "since it writes no app: keys"));
  const auto expected = expected_revision(asked.asked);
  if (!expected)
    return asked.to.send(failure(expected.error()));
  on->on.sessions()
    .rewind(key_in(asked.path),
            to ? rewind_target::to(*to) : rewind_target::before_run(*run),
            {.expected_revision = *expected,
             .cancel_runs = cancels,
             .compensate = compensate})
    .then([on, asked = std::move(asked)](const result<rewound_session>& done) {
      if (done)
        asked.to.send(json_response(rewind_form(*done)));
      else
        answer_failed_write(on, asked, done.error());
    });
}

void fork(const served_ptr& on, exchange asked) {
  body given(asked.asked.body, true);
  fork_options options;
  options.at = given.number("at");
  options.keep_open_calls = given.flag("keepOpenCalls").value_or(false);
  auto id = given.text("sessionId").value_or("");
  if (auto refused = given.refusal())
    return asked.to.send(std::move(*refused));
  on->on.sessions()
    .fork(key_in(asked.path), options, std::move(id))
    .then([asked = std::move(asked)](const result<session>& made) {
      asked.to.send(made ? json_response(session_form(*made))
                             .with("etag", etag_of(made->revision()))
                         : failure(made.error()));
    });
}

} // namespace

void add_time_travel(router& routes, const served_ptr& on) {
  const std::string session = "/apps/{app}/users/{user}/sessions/{session}";
  routes.add("POST", session + "/rewind", handled_by(on, rewind));
  routes.add("POST", session + "/fork", handled_by(on, fork));
}

} // namespace troupe::serving
