// Requests about the open runs of an app.

#include "troupe/server/adk/body.hpp"
#include "troupe/server/adk/failure.hpp"
#include "troupe/server/adk/query.hpp"
#include "troupe/server/adk/rights.hpp"
#include "troupe/server/recovery/recovery.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::serving {

namespace {

using unfinished_runs = std::vector<unfinished_run>;

// -- the list ----

// The request for a list.
struct list_wish {
  std::string app;
  std::string user; // Empty: of all users.
  std::size_t limit = 0;
};

// Reads the open runs of an app twice: those of this process are in the first
// list and not in the second one. A run that ends in between may be shown as
// one of this process.
class unfinished_list : public std::enable_shared_from_this<unfinished_list> {
public:
  unfinished_list(served_ptr on, list_wish wish, reply to)
    : on_(std::move(on)),
      wish_(std::move(wish)),
      to_(std::move(to)) {}

  // The store lists the runs of all users, so more are read for those of one.
  void start() {
    constexpr std::size_t size_of_user = 1'000;
    read(std::max(wish_.limit + 1, wish_.user.empty() ? 0 : size_of_user));
  }

private:
  void read(std::size_t size) {
    on_->on.unfinished(wish_.app, {.with_own = true, .limit = size})
      .then([self = shared_from_this(), size](result<unfinished_runs> found) {
        if (found)
          self->take(std::move(*found), size);
        else
          self->to_.send(failure(found.error()));
      });
  }

  void take(unfinished_runs found, std::size_t size) {
    constexpr std::size_t growth = 10;
    const bool is_whole = found.size() < size;
    if (!wish_.user.empty())
      std::erase_if(found, [this](const unfinished_run& each) {
        return each.session.user != wish_.user;
      });
    if (found.size() <= wish_.limit && !is_whole)
      return read(size * growth);
    has_more_ = found.size() > wish_.limit;
    if (has_more_)
      found.resize(wish_.limit);
    shown_ = std::move(found);
    read_others(size);
  }

  void read_others(std::size_t size) {
    on_->on.unfinished(wish_.app, {.with_own = false, .limit = size})
      .then([self = shared_from_this()](const result<unfinished_runs>& found) {
        self->to_.send(found ? self->answer(*found) : failure(found.error()));
      });
  }

  response answer(const unfinished_runs& others) const {
    // This process may have left a run between the two lists.
    std::map<std::string_view, const unfinished_run*> newer;
    for (const auto& each : others)
      newer.emplace(each.invocation_id, &each);
    auto runs = json::array();
    for (const auto& each : shown_) {
      const auto found = newer.find(each.invocation_id);
      const bool is_own = found == newer.end();
      runs.push_back(form_of(is_own ? each : *found->second, is_own));
    }
    auto told = json::object();
    told["runs"] = std::move(runs);
    told["hasMore"] = has_more_;
    return json_response(told);
  }

  // The fields are those of `troupe runs --json`, and `own` and `active`.
  json form_of(const unfinished_run& listed, bool is_own) const {
    using std::chrono::milliseconds;
    const auto& [app, user, session] = listed.session;
    const bool is_active
      = on_->runs.find(listed.session, listed.invocation_id) != nullptr;
    auto form = json::object();
    form["run"] = listed.invocation_id;
    form["app"] = app;
    form["user"] = user;
    form["session"] = session;
    form["agent"] = listed.agent;
    form["began"] = to_seconds(listed.began);
    form["holder"] = listed.holder;
    form["silentMs"] = nullptr;
    if (listed.silent)
      form["silentMs"]
        = std::chrono::floor<milliseconds>(*listed.silent).count();
    form["free"] = !is_active && (listed.is_free || is_own);
    form["own"] = is_own;
    form["active"] = is_active;
    return form;
  }

  const served_ptr on_;
  const list_wish wish_;
  const reply to_;
  bool has_more_ = false;
  unfinished_runs shown_;
};

void list_unfinished(const served_ptr& on, exchange asked) {
  constexpr std::uint64_t limit_default = 100;
  constexpr std::uint64_t limit_max = 1'000;
  const auto limit = number_in(asked.asked, "limit");
  if (!limit)
    return asked.to.send(failure(limit.error()));
  if (*limit && **limit == 0)
    return asked.to.send(
      failure({errc::invalid_argument, "'limit' in the query is 0"}));
  const auto* user = asked.asked.target.find("user");
  if (user != nullptr)
    if (auto refused = check_user(asked.who, *user))
      return asked.to.send(std::move(*refused));
  list_wish wish;
  wish.app = spelled(asked.path["app"]);
  wish.limit = static_cast<std::size_t>(
    std::min(limit->value_or(limit_default), limit_max));
  if (user != nullptr)
    wish.user = spelled(*user);
  else if (!asked.who.sees_all())
    wish.user = asked.who.user;
  std::make_shared<unfinished_list>(on, std::move(wish), std::move(asked.to))
    ->start();
}

// -- one run ----

void recover_unfinished(const served_ptr& on, exchange asked) {
  const auto key = key_in(asked.path);
  const auto app = on->apps.find(key.app);
  if (app == on->apps.end())
    return asked.to.send(
      failure({errc::not_found, "App not found: " + key.app}));
  body given(asked.asked.body, true);
  auto options = on->options.runs;
  options.allow_lost_temp
    = given.flag("allowLostTemp").value_or(options.allow_lost_temp);
  if (auto refused = given.refusal())
    return asked.to.send(std::move(*refused));
  const auto& id = asked.path["run"];
  recovery_calls calls;
  calls.begun = [to = asked.to](const result<void>& begun) {
    to.send(begun ? json_text_response("null", 202) : failure(begun.error()));
  };
  if (const auto started
      = start_recovery(on, app->second, key, id, options, std::move(calls));
      !started)
    asked.to.send(failure(started.error()));
}

void close_unfinished(const served_ptr& on, exchange asked) {
  const auto& id = asked.path["run"];
  auto reserved = on->runs.reserve(id);
  if (!reserved)
    return asked.to.send(failure(run_is_taken(id)));
  // The run is given back before the answer, so its client can try again.
  on->on.close_run(key_in(asked.path), id)
    .then([to = asked.to,
           reserved = std::move(reserved)](const result<void>& closed) mutable {
      reserved.reset();
      to.send(closed ? json_text_response("null") : failure(closed.error()));
    });
}

} // namespace

void add_unfinished_runs(router& routes, const served_ptr& on) {
  const std::string run
    = "/apps/{app}/users/{user}/sessions/{session}/runs/{run}";
  routes.add(
    "GET", "/apps/{app}/unfinished-runs", handled_by(on, list_unfinished));
  routes.add("POST", run + "/recover", handled_by(on, recover_unfinished));
  routes.add("DELETE", run, handled_by(on, close_unfinished));
}

} // namespace troupe::serving
