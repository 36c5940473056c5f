#include "troupe/runtime/live_state.hpp"

#include "troupe/actors/backend.hpp"
#include "troupe/actors/pending_call.hpp"
#include "troupe/runtime/session_service.hpp"

#include <fmt/format.h>

namespace troupe {

namespace {

using actors::make_pending;

// Makes the event of one write.
result<event> make_change(const std::string& key,
                          operation_kind kind,
                          json operand,
                          json expected,
                          write_options options) {
  const auto checked = detail::check_written_key(key, kind, operand);
  if (!checked)
    return checked.error();
  if (checked->where == scope::temp)
    return error(errc::invalid_argument,
                 fmt::format("'{}' would have no effect: temp: keys live only "
                             "during a run. Give it to the run with its "
                             "message, or use a key of the session",
                             key));
  event change;
  change.id = std::move(options.id);
  change.author = std::move(options.author);
  auto recorded = change.actions.state_delta.record(
    key, kind, std::move(operand), std::move(expected));
  if (!recorded)
    return recorded.error();
  return change;
}

} // namespace

live_state::live_state(std::shared_ptr<detail::session_backend> backend,
                       session_key key)
  : backend_(std::move(backend)),
    key_(std::move(key)) {}

pending<readonly_state> live_state::snapshot() const {
  auto convert = [](result<session> fetched) -> result<readonly_state> {
    if (!fetched)
      return fetched.error();
    return fetched->state();
  };
  using made
    = detail::converted_call<readonly_state, session, decltype(convert)>;
  return pending<readonly_state>(std::make_unique<made>(
    session_service(backend_).get(key_, {.num_recent_events = 0}), convert));
}

pending<event_ptr> live_state::write(std::string key,
                                     operation_kind kind,
                                     json operand,
                                     json expected,
                                     write_options options) const {
  return make_pending<event_ptr>(
    backend_->shared(),
    [to = *this,
     key = std::move(key),
     kind,
     operand = std::move(operand),
     expected = std::move(expected),
     options = std::move(options)](completion<event_ptr> done) mutable {
      const append_options conditions{.expected_revision
                                      = options.expected_revision};
      auto change = make_change(
        key, kind, std::move(operand), std::move(expected), std::move(options));
      if (!change)
        return done(change.error());
      session_service(to.backend_)
        .append_event(to.key_, std::move(*change), conditions)
        .then(std::move(done));
    });
}

} // namespace troupe
