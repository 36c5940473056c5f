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
  // A removal of an old key with two prefixes is allowed.
  const bool erases = kind == operation_kind::erase
                      || (kind == operation_kind::set && operand.is_null());
  const auto checked = erases ? check_key(key) : check_new_key(key);
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

pending<std::string> live_state::get(std::string key,
                                     const char* fallback) const {
  return get<std::string>(std::move(key), fallback);
}

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

pending<std::optional<value>> live_state::find(std::string key) const {
  return read<std::optional<value>>(
    std::move(key),
    [](const readonly_state& newest, const std::string& wanted) {
      return newest.find(wanted);
    });
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

pending<event_ptr>
live_state::set(std::string key, json data, write_options options) const {
  return write(std::move(key),
               operation_kind::set,
               std::move(data),
               nullptr,
               std::move(options));
}

pending<event_ptr> live_state::erase(std::string key,
                                     write_options options) const {
  return write(std::move(key),
               operation_kind::erase,
               nullptr,
               nullptr,
               std::move(options));
}

pending<event_ptr>
live_state::add(std::string key, json number, write_options options) const {
  return write(std::move(key),
               operation_kind::add,
               std::move(number),
               nullptr,
               std::move(options));
}

pending<event_ptr>
live_state::append(std::string key, json element, write_options options) const {
  return write(std::move(key),
               operation_kind::append,
               std::move(element),
               nullptr,
               std::move(options));
}

pending<event_ptr> live_state::add_to_set(std::string key,
                                          json elements,
                                          write_options options) const {
  return write(std::move(key),
               operation_kind::add_to_set,
               std::move(elements),
               nullptr,
               std::move(options));
}

pending<event_ptr>
live_state::min(std::string key, json number, write_options options) const {
  return write(std::move(key),
               operation_kind::min,
               std::move(number),
               nullptr,
               std::move(options));
}

pending<event_ptr>
live_state::max(std::string key, json number, write_options options) const {
  return write(std::move(key),
               operation_kind::max,
               std::move(number),
               nullptr,
               std::move(options));
}

pending<event_ptr>
live_state::merge(std::string key, json fields, write_options options) const {
  return write(std::move(key),
               operation_kind::merge,
               std::move(fields),
               nullptr,
               std::move(options));
}

pending<event_ptr> live_state::compare_and_set(std::string key,
                                               json expected,
                                               json desired,
                                               write_options options) const {
  return write(std::move(key),
               operation_kind::compare_and_set,
               std::move(desired),
               std::move(expected),
               std::move(options));
}

} // namespace troupe
