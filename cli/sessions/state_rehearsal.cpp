#include "troupe/cli/sessions/state_rehearsal.hpp"

#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace troupe::cli {

namespace {

scope_state state_of(const json& keys) {
  state_map made;
  for (const auto& [name, held] : keys.items())
    made.set(name, value(held));
  return scope_state(std::move(made));
}

} // namespace

state_rehearsal::state_rehearsal(const json& user, const json& app)
  : user_(state_of(user)),
    app_(state_of(app)) {}

result<void> state_rehearsal::apply(const delta& changes) {
  std::vector<resolution> resolved;
  for (const auto where : {scope::session, scope::user, scope::app}) {
    const auto share = changes.share(where);
    if (share.empty())
      continue;
    if (auto judged = at(where).judge(share, resolved, false, {}); !judged)
      return judged;
    at(where).install();
  }
  return {};
}

json state_rehearsal::state() const {
  auto merged = json::object();
  const auto add = [&merged](scope where, const scope_state& owned) {
    owned.keys().for_each([&](std::string_view name, const value& held) {
      merged[join_key(where, name)] = held.data();
    });
  };
  add(scope::session, session_);
  add(scope::user, user_);
  add(scope::app, app_);
  return merged;
}

scope_state& state_rehearsal::at(scope where) {
  return where == scope::session ? session_
         : where == scope::user  ? user_
                                 : app_;
}

} // namespace troupe::cli
