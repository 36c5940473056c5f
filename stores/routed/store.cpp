#include "troupe/stores/routed/store.hpp"

#include "troupe/stores/shared/owner_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <iterator>
#include <tuple>
#include <utility>

namespace troupe {

namespace {

// Puts the name of the database in front of a failure.
template <class T>
result<T> named_by(const routed_store& all, std::size_t index, result<T> done) {
  if (done)
    return done;
  return all.named(done.error(), index);
}

// Order of a list of open runs.
auto rank_of(const open_run& listed) {
  return std::tie(listed.opened,
                  listed.invocation_id,
                  listed.key.app,
                  listed.key.user,
                  listed.key.id);
}

bool is_before(const open_run& left, const open_run& right) {
  return rank_of(left) < rank_of(right);
}

} // namespace

routed_store::routed_store(std::vector<routed_part> parts, router part_of)
  : parts_(std::move(parts)),
    part_of_(std::move(part_of)) {
  assert(!parts_.empty() && "a routed store has a database");
}

error routed_store::named(const error& failure, std::size_t index) const {
  return {failure.code(),
          fmt::format("{}: {}", parts_[index].name, failure.message())};
}

// -- writing ----

result<commit_outcome>
routed_store::commit(std::span<const store_change> changes) {
  if (changes.empty())
    return commit_outcome();
  const auto& first = changes.front().owner.app;
  const auto index = part_of(first);
  for (const auto& each : changes)
    if (part_of(each.owner.app) != index)
      return error(
        errc::invalid_argument,
        fmt::format("one commit cannot change the apps '{}' and '{}', which "
                    "are in two databases; commit to each by itself",
                    first,
                    each.owner.app));
  if (auto removed = take_removed(changes); !removed.empty())
    return commit_outcome{.moved = std::move(removed)};
  return named_by(*this, index, part(index).commit(changes));
}

// Takes the owners of the changes whose removal a failed `changed_elsewhere`
// has not returned: their database names a removal only once.
std::vector<owner_name>
routed_store::take_removed(std::span<const store_change> changes) {
  std::vector<owner_name> removed;
  std::erase_if(unreported_, [&](const moved_owner& each) {
    if (each.revision
        || std::ranges::none_of(changes, [&](const store_change& change) {
             return each.owner == change.owner
                    || each.owner == user_of(change.owner)
                    || each.owner == app_of(change.owner);
           }))
      return false;
    removed.push_back(each.owner);
    return true;
  });
  return removed;
}

result<std::vector<moved_owner>> routed_store::changed_elsewhere() {
  std::optional<error> failed;
  for (std::size_t index = 0; index < parts_.size(); ++index) {
    auto moved = part(index).changed_elsewhere();
    if (!moved) {
      if (!failed)
        failed = named(moved.error(), index);
      continue;
    }
    for (auto& each : *moved)
      if (part_of(each.owner.app) == index)
        unreported_.push_back(std::move(each));
  }
  if (failed)
    return *std::move(failed);
  return std::exchange(unreported_, {});
}

std::optional<lost_history> routed_store::take_lost_history() {
  std::optional<lost_history> lost;
  for (const auto& each : parts_) {
    const auto found = each.kept->take_lost_history();
    if (!found)
      continue;
    if (!lost)
      lost.emplace();
    else
      lost->warning += "; ";
    lost->commits += found->commits;
    lost->warning += fmt::format("{}: {}", each.name, found->warning);
  }
  return lost;
}

// -- loads ----

result<std::optional<stored_scope>>
routed_store::load_scope(const owner_name& owner) {
  const auto index = part_of(owner.app);
  return named_by(*this, index, part(index).load_scope(owner));
}

result<std::optional<stored_session>>
routed_store::load_session(const session_key& key,
                           const load_options& options) {
  const auto index = part_of(key.app);
  return named_by(*this, index, part(index).load_session(key, options));
}

result<std::vector<event_ptr>> routed_store::load_events(const session_key& key,
                                                         std::uint64_t first,
                                                         std::uint64_t last) {
  const auto index = part_of(key.app);
  return named_by(*this, index, part(index).load_events(key, first, last));
}

result<std::optional<stored_session>> routed_store::load_session_at(
  const session_key& key, std::uint64_t revision, std::size_t events_max) {
  const auto index = part_of(key.app);
  return named_by(
    *this, index, part(index).load_session_at(key, revision, events_max));
}

result<std::optional<earlier_shared_state>>
routed_store::load_shared_state_at(const session_key& key,
                                   std::uint64_t revision) {
  const auto index = part_of(key.app);
  return named_by(
    *this, index, part(index).load_shared_state_at(key, revision));
}

result<std::vector<event_ptr>>
routed_store::find_events(const session_key& key,
                          std::span<const std::string> ids) {
  const auto index = part_of(key.app);
  return named_by(*this, index, part(index).find_events(key, ids));
}

// -- abilities ----

bool routed_store::can_fork() const noexcept {
  return std::ranges::all_of(
    parts_, [](const routed_part& each) { return each.kept->can_fork(); });
}

bool routed_store::can_trim() const noexcept {
  return std::ranges::all_of(
    parts_, [](const routed_part& each) { return each.kept->can_trim(); });
}

bool routed_store::can_list_runs() const noexcept {
  return std::ranges::all_of(
    parts_, [](const routed_part& each) { return each.kept->can_list_runs(); });
}

// -- open runs ----

result<std::vector<open_run>> routed_store::list_runs(const run_query& query) {
  if (query.session || !query.app.empty()) {
    const auto index = part_of(query.session ? query.session->app : query.app);
    return named_by(*this, index, part(index).list_runs(query));
  }
  std::vector<open_run> listed;
  for (std::size_t index = 0; index < parts_.size(); ++index) {
    auto found = runs_of(index, query);
    if (!found)
      return named(found.error(), index);
    std::ranges::move(*found, std::back_inserter(listed));
  }
  std::ranges::sort(listed, is_before);
  if (listed.size() > query.limit)
    listed.erase(listed.begin() + static_cast<std::ptrdiff_t>(query.limit),
                 listed.end());
  return listed;
}

// Lists the runs of one database, but those of apps that are not in it.
result<std::vector<open_run>> routed_store::runs_of(std::size_t index,
                                                    run_query query) {
  std::vector<open_run> listed;
  while (listed.size() < query.limit) {
    auto page = part(index).list_runs(query);
    if (!page)
      return page;
    const bool is_last = page->size() < query.limit;
    if (!is_last)
      query.behind = position_of(page->back());
    for (auto& each : *page)
      if (listed.size() < query.limit && part_of(each.key.app) == index)
        listed.push_back(std::move(each));
    if (is_last)
      break;
  }
  return listed;
}

result<void> routed_store::renew_holder(const std::string& id) {
  result<void> done;
  for (std::size_t index = 0; index < parts_.size(); ++index)
    if (auto renewed = part(index).renew_holder(id); !renewed && done)
      done = named(renewed.error(), index);
  return done;
}

result<void> routed_store::remove_holder(const std::string& id) {
  result<void> done;
  for (std::size_t index = 0; index < parts_.size(); ++index)
    if (auto removed = part(index).remove_holder(id); !removed && done)
      done = named(removed.error(), index);
  return done;
}

// -- lists ----

result<std::vector<session_row>> routed_store::list(const row_query& query) {
  const auto index = part_of(query.app);
  return named_by(*this, index, part(index).list(query));
}

result<std::vector<session_row>>
routed_store::list_by_name(const name_query& query) {
  const auto index = part_of(query.app);
  return named_by(*this, index, part(index).list_by_name(query));
}

result<std::vector<std::string>>
routed_store::list_users(const user_query& query) {
  const auto index = part_of(query.app);
  return named_by(*this, index, part(index).list_users(query));
}

result<std::vector<std::string>>
routed_store::list_apps(const app_query& query) {
  std::vector<std::string> names;
  for (std::size_t index = 0; index < parts_.size(); ++index) {
    auto found = apps_of(index, query);
    if (!found)
      return named(found.error(), index);
    std::ranges::move(*found, std::back_inserter(names));
  }
  std::ranges::sort(names);
  if (names.size() > query.limit)
    names.resize(query.limit);
  return names;
}

// Lists the apps in one database, but those that are not in it by the rule.
result<std::vector<std::string>> routed_store::apps_of(std::size_t index,
                                                       const app_query& query) {
  std::vector<std::string> names;
  auto asked = query;
  while (names.size() < query.limit) {
    auto page = part(index).list_apps(asked);
    if (!page)
      return page;
    const bool is_last = page->size() < asked.limit;
    if (!is_last)
      asked.behind = page->back();
    for (auto& each : *page)
      if (names.size() < query.limit && part_of(each) == index)
        names.push_back(std::move(each));
    if (is_last)
      break;
  }
  return names;
}

// -- damage ----

result<std::vector<std::string>>
routed_store::check(const std::function<void(double done)>& on_progress) {
  std::vector<std::string> findings;
  const auto count = static_cast<double>(parts_.size());
  for (std::size_t index = 0; index < parts_.size(); ++index) {
    const auto before = static_cast<double>(index);
    const std::function<void(double)> progress = [&](double done) {
      if (on_progress)
        on_progress((before + done) / count);
    };
    const auto found = part(index).check(progress);
    if (!found)
      return named(found.error(), index);
    progress(1); // Not every store tells it.
    for (const auto& each : *found)
      findings.push_back(fmt::format("{}: {}", parts_[index].name, each));
    if (auto read = find_misplaced(index, findings); !read)
      return named(read.error(), index);
  }
  return findings;
}

result<void> routed_store::find_misplaced(std::size_t index,
                                          std::vector<std::string>& findings) {
  app_query query{.limit = 1'000};
  for (bool is_last = false; !is_last;) {
    const auto page = part(index).list_apps(query);
    if (!page && page.error().code() == errc::invalid_argument)
      return {}; // A store that cannot list its apps.
    if (!page)
      return page.error();
    for (const auto& app : *page)
      if (const auto owner = part_of(app); owner != index)
        findings.push_back(
          fmt::format("{}: the app '{}' is here, but its rule says {}: its "
                      "sessions here are not found; export them from here and "
                      "import them there, or change the rule",
                      parts_[index].name,
                      app,
                      parts_[owner].name));
    is_last = page->size() < query.limit;
    if (!is_last)
      query.behind = page->back();
  }
  return {};
}

result<void> routed_store::close() {
  result<void> done;
  for (std::size_t index = 0; index < parts_.size(); ++index)
    if (auto closed = part(index).close(); !closed && done)
      done = named(closed.error(), index);
  return done;
}

} // namespace troupe
