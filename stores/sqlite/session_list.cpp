#include "troupe/stores/sqlite/session_list.hpp"

#include "troupe/stores/sqlite/sums.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

namespace troupe {

namespace {

std::int64_t micros_of(timestamp time) {
  return time.time_since_epoch().count();
}

// The order of a list: newest update first, then by names. The complement
// reverses the order of all numbers; a minus would overflow for the least one.
auto order_of(const listed_session& each) {
  return std::tuple(
    ~each.updated, std::string_view(each.user), std::string_view(each.session));
}

bool stands_before(const listed_session& left, const listed_session& right) {
  return order_of(left) < order_of(right);
}

bool is_behind(const row_query& query, const listed_session& each) {
  if (!query.behind)
    return true;
  return std::tuple(~micros_of(query.behind->last_update_time),
                    std::string_view(query.behind->user),
                    std::string_view(query.behind->session))
         < order_of(each);
}

// Two statements: SQLite cannot use an index for an `OR`, or for a row value
// with mixed directions.
std::string select(std::string_view index, std::string_view where) {
  return fmt::format("SELECT id,user,session,updated,{} FROM scopes INDEXED BY "
                     "{} WHERE app=?1 AND session<>'' AND {} "
                     "ORDER BY updated DESC,user,session",
                     is_sound("sum", sums::scopes),
                     index,
                     where);
}

// Reads the names in the order of their unique index.
std::string select_names(std::string_view where) {
  return fmt::format("SELECT id,user,session,{} FROM scopes "
                     "WHERE app=?1 AND session<>'' AND {} "
                     "ORDER BY app,user,session",
                     is_sound("sum", sums::scopes),
                     where);
}

// Finds the next name in the order of the unique index.
std::string select_next(std::string_view name, std::string_view where) {
  return fmt::format("SELECT {},{} FROM scopes WHERE {} "
                     "ORDER BY app,user,session LIMIT 1",
                     name,
                     is_sound("sum", sums::scopes),
                     where);
}

std::optional<std::string> first_name(sqlite_rows rows) {
  if (!rows.next())
    return std::nullopt;
  rows.expect_sound(1, "scopes");
  return std::string(rows.text(0));
}

} // namespace

sqlite_session_list::sqlite_session_list(const sqlite_database& database,
                                         log_tail& tail)
  : tail_(tail),
    find_(database.prepare(
      fmt::format("SELECT app,user,session,updated,{} FROM scopes WHERE id=?1",
                  is_sound("sum", sums::scopes)))),
    app_tied_(database.prepare(
      select("sessions_of_app", "updated=?2 AND (user,session)>(?3,?4)"))),
    app_older_(database.prepare(select("sessions_of_app", "updated<?2"))),
    user_tied_(database.prepare(
      select("sessions_of_user", "updated=?2 AND user=?3 AND session>?4"))),
    user_older_(
      database.prepare(select("sessions_of_user", "updated<?2 AND user=?3"))),
    app_names_(database.prepare(select_names("(user,session)>(?2,?3)"))),
    user_names_(database.prepare(select_names("user=?2 AND session>?3"))),
    next_user_(database.prepare(select_next("user", "app=?1 AND user>?2"))),
    next_app_(database.prepare(select_next("app", "app>?1"))) {}

std::vector<listed_session>
sqlite_session_list::page(const row_query& query,
                          std::int64_t newest,
                          std::int64_t folded,
                          std::span<const log_row> unseen) {
  if (std::exchange(folded_, folded) != folded)
    recent_.clear();
  look_at_recent(newest, unseen);
  std::vector<listed_session> found;
  add_recent(query, found);
  add_folded(query, found);
  std::ranges::sort(found, stands_before);
  if (found.size() > query.limit)
    found.resize(query.limit);
  return found;
}

std::vector<listed_session>
sqlite_session_list::names(const name_query& query) {
  const std::string_view app = query.app;
  std::string_view user;
  std::string_view session;
  if (query.behind) {
    user = query.behind->user;
    session = query.behind->id;
  }
  if (query.user) {
    if (*query.user < user)
      return {};
    if (*query.user > user)
      session = {};
    user = *query.user;
  }
  std::vector<listed_session> found;
  auto rows = (query.user ? user_names_ : app_names_).rows(app, user, session);
  while (found.size() < query.limit && rows.next()) {
    rows.expect_sound(3, "scopes");
    auto& added = found.emplace_back();
    added.id = rows.integer(0);
    added.user = rows.text(1);
    added.session = rows.text(2);
  }
  return found;
}

std::optional<std::string>
sqlite_session_list::next_user(std::string_view app, std::string_view behind) {
  return first_name(next_user_.rows(app, behind));
}

std::optional<std::string>
sqlite_session_list::next_app(std::string_view behind) {
  return first_name(next_app_.rows(behind));
}

void sqlite_session_list::look_at_recent(std::int64_t newest,
                                         std::span<const log_row> unseen) {
  // A cached row is valid while the session's first row in the tail is the
  // same. Folding changes the table and then drops that row; until it is
  // dropped, the tail still has all newer times.
  auto before = std::exchange(recent_, recent_sessions());
  for (const auto& rows : tail_.sessions(newest)) {
    auto kept = before.extract(rows.id);
    if (kept && kept.mapped().first == rows.first) {
      auto& listed = kept.mapped().listed;
      listed.updated = std::max(listed.updated, rows.newest);
      recent_.insert(std::move(kept));
      continue;
    }
    auto& added = recent_[rows.id];
    added.first = rows.first;
    read_folded(rows.id, added);
    added.listed.updated = std::max(added.listed.updated, rows.newest);
  }
  for (const auto& row : unseen)
    if (const auto id = row.scopes[0]; id != 0) {
      // The tail does not have this row, so the session is not cached.
      auto& added = recent_[id];
      added.first = 0;
      read_folded(id, added);
      added.listed.updated = std::max(added.listed.updated, row.microseconds);
    }
}

void sqlite_session_list::read_folded(std::int64_t id, folded_row& kept) {
  auto rows = find_.rows(id);
  kept.app.clear();
  if (!rows.next())
    return;
  rows.expect_sound(4, "scopes");
  kept.app = rows.text(0);
  kept.listed.id = id;
  kept.listed.user = rows.text(1);
  kept.listed.session = rows.text(2);
  kept.listed.updated = std::max(kept.listed.updated, rows.integer(3));
}

// A session that was removed after its row was cached has no row any more, or
// one without names.
void sqlite_session_list::add_recent(const row_query& query,
                                     std::vector<listed_session>& found) {
  std::vector<const listed_session*> candidates;
  for (const auto& [id, kept] : recent_)
    if (!kept.app.empty() && kept.app == query.app
        && (!query.user || kept.listed.user == *query.user)
        && is_behind(query, kept.listed))
      candidates.push_back(&kept.listed);
  const auto stands_behind = [](const auto* left, const auto* right) {
    return stands_before(*right, *left);
  };
  std::ranges::make_heap(candidates, stands_behind);
  while (found.size() < query.limit && !candidates.empty()) {
    std::ranges::pop_heap(candidates, stands_behind);
    if (auto rows = find_.rows(candidates.back()->id);
        rows.next() && !rows.text(0).empty())
      found.push_back(*candidates.back());
    candidates.pop_back();
  }
}

void sqlite_session_list::add_folded(const row_query& query,
                                     std::vector<listed_session>& found) {
  auto left = query.limit;
  const std::string_view app = query.app;
  auto time = std::numeric_limits<std::int64_t>::max();
  if (query.behind) {
    time = micros_of(query.behind->last_update_time);
    const std::string_view user = query.behind->user;
    const std::string_view session = query.behind->session;
    // If the position belongs to another user, equal times continue by the name
    // of the user that the query asks for.
    const bool is_user_behind = query.user && *query.user < user;
    const std::string_view after
      = query.user && *query.user > user ? std::string_view() : session;
    if (query.user) {
      if (!is_user_behind
          && !take(
            user_tied_.rows(app, time, std::string_view(*query.user), after),
            left,
            found))
        return;
    } else if (!take(app_tied_.rows(app, time, user, session), left, found)) {
      return;
    }
  }
  if (query.user)
    take(
      user_older_.rows(app, time, std::string_view(*query.user)), left, found);
  else
    take(app_older_.rows(app, time), left, found);
}

// Returns true if the page has room for more.
bool sqlite_session_list::take(sqlite_rows rows,
                               std::size_t& left,
                               std::vector<listed_session>& found) {
  while (left > 0 && rows.next()) {
    rows.expect_sound(4, "scopes");
    if (recent_.contains(rows.integer(0)))
      continue; // Its place comes from the tail.
    found.push_back({rows.integer(0),
                     std::string(rows.text(1)),
                     std::string(rows.text(2)),
                     rows.integer(3)});
    --left;
  }
  return left > 0;
}

} // namespace troupe
