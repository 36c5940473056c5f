#include "troupe/runtime/shared_state.hpp"

#include "troupe/actors/backend.hpp"
#include "troupe/actors/owners/directory.hpp"
#include "troupe/actors/owners/session_letters.hpp"
#include "troupe/actors/pending_call.hpp"
#include "troupe/actors/state_follow_control.hpp"

#include <fmt/format.h>

namespace troupe {

namespace {

using actors::make_pending;

shared_snapshot snapshot_of(actors::scope_keys read, scope where) {
  state_snapshot keys;
  (where == scope::user ? keys.user : keys.app) = std::move(read.keys);
  return {readonly_state(std::move(keys)), read.revision};
}

} // namespace

shared_state::shared_state(std::shared_ptr<detail::session_backend> backend,
                           std::string app,
                           std::optional<std::string> user)
  : backend_(std::move(backend)),
    app_(std::move(app)),
    user_(std::move(user)) {}

result<void> shared_state::check_scope(const scoped_key& key) const {
  if (key.where == where())
    return {};
  return error(errc::invalid_argument,
               fmt::format("'{}' is no key of the {}: these begin with '{}'",
                           join_key(key.where, key.name),
                           user_ ? "user" : "app",
                           prefix_of(where())));
}

result<void> shared_state::check_read(const std::string& key) const {
  const auto checked = check_key(key);
  return checked ? check_scope(*checked) : checked.error();
}

pending<shared_snapshot> shared_state::snapshot() const {
  return make_pending<shared_snapshot>(
    backend_->shared(),
    [from = *this](const completion<shared_snapshot>& done) {
      actors::read_state_of(
        from.backend_->shared(),
        from.app_,
        from.user_,
        [done, where = from.where()](result<actors::scope_keys> read) {
          done(read ? snapshot_of(*std::move(read), where)
                    : result<shared_snapshot>(read.error()));
        });
    });
}

state_follower shared_state::follow(state_follow_options options) const {
  auto names = actors::check_names(app_, user_);
  auto control = std::make_shared<detail::state_follow_control>(
    backend_->share(), names ? *names : owner_name{app_}, options.from);
  if (!names)
    control->cancel(names.error());
  else if (!backend_->enter_follower(control))
    control->cancel(actors::closed());
  else if (!options.from) // A known place is no reason to fetch a state early.
    control->start();
  return state_follower(std::move(control));
}

pending<shared_write> shared_state::write(std::string key,
                                          operation_kind kind,
                                          json operand,
                                          json expected,
                                          shared_write_options options) const {
  return make_pending<shared_write>(
    backend_->shared(),
    [to = *this,
     key = std::move(key),
     kind,
     operand = std::move(operand),
     expected = std::move(expected),
     options = std::move(options)](completion<shared_write> done) mutable {
      const auto checked = detail::check_written_key(key, kind, operand);
      if (!checked)
        return done(checked.error());
      if (auto fits = to.check_scope(*checked); !fits)
        return done(fits.error());
      delta changes;
      if (auto recorded
          = changes.record(key, kind, std::move(operand), std::move(expected));
          !recorded)
        return done(recorded.error());
      actors::write_state_of(to.backend_->share(),
                             to.app_,
                             to.user_,
                             std::move(changes),
                             {std::move(options.id), options.expected_revision},
                             std::move(done));
    });
}

} // namespace troupe
