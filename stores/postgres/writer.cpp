#include "troupe/stores/postgres/writer.hpp"

#include "troupe/stores/postgres/removal.hpp"
#include "troupe/stores/postgres/runs.hpp"
#include "troupe/stores/shared/owner_names.hpp"
#include "troupe/stores/shared/stored_event.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <set>
#include <utility>

namespace troupe {

// Invariant: a commit writes only if every touched scope is at the revision
// that the change builds on, and only into the history that this process knows.
//
// All of it happens under the advisory commit lock, in this order: insert the
// mark and compare the known ones; read the rows of other processes; check the
// revisions; write. With the lock, row numbers are in the order of commits, so
// `seen_` covers every earlier row. Without it, a commit with a lower number
// could become visible after a higher one and never be read.

namespace {

namespace transaction = postgres_transaction;

// Number of the log's last row. It never decreases, because the newest row is
// never deleted.
constexpr postgres_statement find_last
  = {"find_last", "SELECT coalesce(max(id), 0) FROM change_log"};

// Names, id and newest revision of each changed scope; null revision for a
// removed one.
constexpr postgres_statement find_changed = {"find_changed", R"(
WITH fresh AS MATERIALIZED (
  SELECT * FROM change_log WHERE id > $1::bigint AND writer <> $2::bigint)
SELECT removed.app, removed.usr, removed.session, removed.id,
       NULL::bigint AS revision
  FROM fresh, json_to_record(fresh.body::json)
    AS removed(app text, usr text, session text, id bigint)
  WHERE fresh.kind >= 3
UNION ALL
SELECT s.app, s.usr, s.session, s.id, newest.revision
  FROM (SELECT session AS id, max(session_revision) AS revision
          FROM fresh WHERE kind < 3 AND session IS NOT NULL GROUP BY 1
        UNION ALL
        SELECT usr, max(user_revision)
          FROM fresh WHERE usr IS NOT NULL GROUP BY 1
        UNION ALL
        SELECT app, max(app_revision)
          FROM fresh WHERE app IS NOT NULL GROUP BY 1) AS newest
  JOIN scopes AS s ON s.id = newest.id)"};

// The newest revision, folded or not. Rows that are not folded are read only if
// a user or an app is asked for.
constexpr postgres_statement find_heads = {"find_heads", R"(
WITH tail AS MATERIALIZED (
  SELECT usr AS id, max(user_revision) AS revision FROM change_log
    WHERE id > (SELECT id FROM folded) AND usr IS NOT NULL GROUP BY 1
  UNION ALL
  SELECT app, max(app_revision) FROM change_log
    WHERE id > (SELECT id FROM folded) AND app IS NOT NULL GROUP BY 1)
SELECT n.place, s.id,
  CASE WHEN s.session <> '' THEN
    (SELECT l.session_revision FROM change_log AS l WHERE l.session = s.id
       ORDER BY l.session_revision DESC LIMIT 1)
  ELSE
    greatest(s.revision, (SELECT t.revision FROM tail AS t WHERE t.id = s.id))
  END
FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY
    AS n(app, usr, session, place)
  JOIN scopes AS s
    ON s.app = n.app AND s.usr = n.usr AND s.session = n.session)"};

constexpr postgres_statement find_sessions
  = {"find_sessions",
     "SELECT session, id FROM scopes"
     " WHERE app = $1::text AND usr = $2::text AND session <> ''"};

constexpr postgres_statement add_scopes = {"add_scopes", R"(
INSERT INTO scopes (id, app, usr, session, revision, updated, past,
                    past_revision)
SELECT n.id, n.app, n.usr, n.session,
       CASE WHEN n.session <> '' THEN -1 - n.first ELSE 0 END, n.updated,
       nullif(n.past, 0), CASE WHEN n.past <> 0 THEN n.first END
  FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[],
              $6::bigint[], $7::bigint[])
    AS n(app, usr, session, id, past, first, updated))"};

// A fork has the first revision of its parent, or the revision at which it
// begins if that is earlier: the keys there are $5.
constexpr postgres_statement add_first_of_fork = {"add_first_of_fork", R"(
INSERT INTO first_states (scope, revision, updated, delta)
SELECT $1::bigint, least(f.revision, $3::bigint),
       CASE WHEN f.revision <= $3::bigint THEN f.updated ELSE $4::bigint END,
       CASE WHEN f.revision <= $3::bigint THEN f.delta ELSE $5::text END
  FROM first_states AS f WHERE f.scope = $2::bigint AND $3::bigint > 0)"};

// Three arrays: apps, users, sessions.
postgres_parameters names_of(std::span<const owner_name> owners) {
  std::vector<std::string_view> apps;
  std::vector<std::string_view> users;
  std::vector<std::string_view> sessions;
  for (const auto& owner : owners) {
    apps.emplace_back(owner.app);
    users.emplace_back(owner.user);
    sessions.emplace_back(owner.session);
  }
  return postgres_parameters().add(apps).add(users).add(sessions);
}

std::int64_t random_id() {
  std::random_device source;
  return static_cast<std::int64_t>((std::uint64_t{source()} << 32) | source());
}

std::string describe(std::span<const store_change> changes) {
  return fmt::format("commit {} change{}, the first to {}",
                     changes.size(),
                     changes.size() == 1 ? "" : "s",
                     to_string(changes.front().owner));
}

} // namespace

postgres_writer::postgres_writer(postgres_pool& pool,
                                 postgres_history& history,
                                 hot_states& hot)
  : pool_(pool),
    history_(history),
    hot_(hot),
    writer_(random_id()),
    copy_(writer_) {}

result<void> postgres_writer::open() {
  constexpr auto attempted = "read where the log of the store ends";
  return pool_.with([&](postgres_connection& connection) -> result<void> {
    const auto last = history_.read(connection, find_last, {}, attempted);
    if (!last)
      return last.error();
    seen_ = last->number(0, 0);
    return {};
  });
}

// -- commits ----

result<commit_outcome>
postgres_writer::commit(std::span<const store_change> changes) {
  if (changes.empty())
    return commit_outcome{};
  const auto attempted = describe(changes);
  if (pool_.setup().read_only)
    return error(errc::store_failed,
                 fmt::format("{}: the store was opened read-only", attempted));
  const bool is_suspected = history_.is_suspected();
  if (is_suspected)
    pool_.renew();
  // A connection that was lost while idle fails here, where nothing has been
  // written yet, so a retry is safe.
  for (bool again = false;; again = true) {
    auto taken = pool_.take(again);
    if (!taken)
      return error(taken.error().code(),
                   fmt::format("{}: {}", attempted, taken.error().message()));
    auto found = lock(**taken, attempted);
    if (!found) {
      if (again || (*taken)->is_usable())
        return give_up(**taken, found.error());
      continue;
    }
    if (!found->is_same || is_suspected)
      return refuse_all(**taken, changes, attempted);
    auto outcome = commit_locked(**taken, changes, *found, attempted);
    if (!outcome)
      heads_.clear();
    return outcome;
  }
}

result<postgres_history::new_mark>
postgres_writer::lock(postgres_connection& connection,
                      std::string_view attempted) {
  connection.queue(transaction::begin);
  connection.queue(transaction::take_lock,
                   postgres_parameters().add(pool_.setup().commit_lock));
  connection.queue(find_last);
  return history_.add(connection, attempted);
}

// Rolls back, because the transaction may hold the commit lock.
error postgres_writer::give_up(postgres_connection& connection,
                               const error& why) {
  if (connection.is_usable()) {
    connection.queue(transaction::roll_back);
    (void)connection.run(why.message(), postgres_deadline);
  }
  return why;
}

// -- another history ----

result<commit_outcome>
postgres_writer::refuse_all(postgres_connection& connection,
                            std::span<const store_change> changes,
                            std::string_view attempted) {
  connection.queue(transaction::roll_back);
  if (auto changed = change_history(connection, attempted); !changed)
    return changed.error();
  std::set<owner_name> touched;
  for (const auto& change : changes) {
    touched.insert(change.owner);
    if (change.user_revision)
      touched.insert(user_of(change.owner));
    if (change.app_revision)
      touched.insert(app_of(change.owner));
  }
  return commit_outcome{{touched.begin(), touched.end()}};
}

// Forgets all known rows and scopes, because they belong to another history.
// Rows of the new one are not reported as changes: every owner is loaded again.
result<void> postgres_writer::change_history(postgres_connection& connection,
                                             std::string_view attempted) {
  connection.queue(find_last);
  auto answers = connection.run(attempted, postgres_deadline);
  if (!answers)
    return answers.error();
  auto lost = history_.change_over(connection, attempted);
  if (!lost)
    return lost.error();
  pool_.renew();
  seen_ = answers->back().number(0, 0);
  heads_.clear();
  hot_.clear();
  unreported_.clear();
  removals_.clear();
  if (lost_)
    lost->commits += lost_->commits;
  lost_ = *std::move(lost);
  return {};
}

std::optional<lost_history> postgres_writer::take_lost_history() {
  return std::exchange(lost_, std::nullopt);
}

result<commit_outcome>
postgres_writer::commit_locked(postgres_connection& connection,
                               std::span<const store_change> changes,
                               const postgres_history::new_mark& found,
                               std::string_view attempted) {
  forget_after_a_rest();
  const auto last_id = found.earlier.back().number(0, 0);
  // Changes of others come before `look_up`: a head that is out of date would
  // let a change overwrite theirs.
  if (last_id != seen_) {
    if (auto caught = catch_up(connection, attempted); !caught)
      return caught.error();
    seen_ = last_id;
  }
  auto known = look_up(connection, changes, attempted);
  if (!known)
    return known.error();
  auto kept_out = find_kept_out_runs(connection, changes, *known, attempted);
  if (!kept_out)
    return kept_out.error();
  const postgres_plan plan(changes,
                           *std::move(known),
                           last_id,
                           found.mark.stamp,
                           removals_.touched_by(changes));
  if (!plan.moved().empty() || !kept_out->empty()) {
    connection.queue(transaction::roll_back);
    if (auto answers = connection.run(attempted, postgres_deadline); !answers)
      return answers.error();
    removals_.mark_reported(plan.moved());
    for (const auto& owner : plan.moved())
      heads_.refused(owner);
    return commit_outcome{plan.moved(), *std::move(kept_out)};
  }
  if (auto written = write(connection, plan, attempted); !written)
    return written.error();
  // The mark is confirmed only now: a mark that is recorded before COMMIT would
  // count as lost if the commit fails.
  history_.confirm(found);
  seen_ = plan.last_id();
  for (const auto& [owner, head] : plan.outcome().scopes) {
    if (head)
      heads_.put(owner, *head);
    else
      heads_.erase(owner);
    if (const auto told = unreported_.find(owner); told != unreported_.end())
      told->second = head ? std::optional(head->revision) : std::nullopt;
  }
  return commit_outcome{};
}

// Clears the cache after 30 minutes without a commit. A tombstone is kept for
// thirty days only, so a process that was idle for longer may have missed a
// removal.
void postgres_writer::forget_after_a_rest() {
  constexpr std::chrono::minutes rest{30};
  const auto now = std::chrono::steady_clock::now();
  if (now - looked_at_ > rest)
    heads_.clear();
  looked_at_ = now;
}

result<postgres_known>
postgres_writer::look_up(postgres_connection& connection,
                         std::span<const store_change> changes,
                         std::string_view attempted) {
  postgres_known known;
  std::vector<owner_name> unknown;
  std::vector<owner_name> removed_users;
  const auto touch = [&](const owner_name& owner) {
    const auto [place, is_new] = known.scopes.try_emplace(owner);
    if (!is_new)
      return;
    place->second = heads_.find(owner);
    if (!place->second)
      unknown.push_back(owner);
  };
  for (const auto& change : changes) {
    const bool is_create = change.kind == change_kind::create;
    const bool is_removal = change.kind == change_kind::remove
                            || change.kind == change_kind::remove_user;
    if (is_create || is_removal || change.kind == change_kind::trim
        || change.kind == change_kind::close_runs || change.session_revision)
      touch(change.owner);
    if (change.past)
      touch({change.owner.app, change.owner.user, change.past->session});
    if (is_create || change.user_revision)
      touch(user_of(change.owner));
    if (is_create || change.app_revision)
      touch(app_of(change.owner));
    if (change.kind == change_kind::remove_user)
      removed_users.push_back(change.owner);
  }
  if (unknown.empty() && removed_users.empty())
    return known;
  connection.queue(find_heads, names_of(unknown));
  for (const auto& user : removed_users)
    connection.queue(find_sessions,
                     postgres_parameters().add(user.app).add(user.user));
  auto answers = connection.run(attempted, postgres_deadline);
  if (!answers)
    return answers.error();
  const auto& heads = answers->front();
  for (int i = 0; i < heads.size(); ++i) {
    const auto& owner
      = unknown[static_cast<std::size_t>(heads.number(i, 0) - 1)];
    known.scopes[owner] = postgres_head{
      heads.number(i, 1), static_cast<std::uint64_t>(heads.number(i, 2))};
  }
  for (std::size_t u = 0; u < removed_users.size(); ++u) {
    const auto& found = (*answers)[u + 1];
    for (int i = 0; i < found.size(); ++i)
      known.scopes.try_emplace({removed_users[u].app,
                                removed_users[u].user,
                                std::string(found.text(i, 0))},
                               postgres_head{found.number(i, 1), 0});
  }
  return known;
}

result<void> postgres_writer::write(postgres_connection& connection,
                                    const postgres_plan& plan,
                                    std::string_view attempted) {
  const auto& steps = plan.steps();
  bool is_committed = false;
  for (const auto& step : steps) {
    if (!step.scopes.empty())
      if (auto queued = queue_scopes(connection, step.scopes); !queued)
        return queued;
    queue_postgres_runs(connection, step.runs);
    if (!step.rows.empty()) {
      const auto limit = postgres_row_copy::limit(step.rows.size());
      if (limit > postgres_deadline)
        connection.queue(
          transaction::allow_long,
          postgres_parameters().add(std::int64_t{limit.count()}));
      // A COPY cannot be part of a pipeline, so the pipeline is emptied first.
      if (auto answers = connection.run(attempted, postgres_deadline); !answers)
        return answers.error();
      is_committed
        = &step == &steps.back() && step.trims.empty() && step.removals.empty();
      if (auto copied
          = copy_.write(connection, step.rows, is_committed, limit, attempted);
          !copied)
        return copied;
    }
    if (!step.trims.empty() || !step.removals.empty())
      connection.queue(transaction::take_lock,
                       postgres_parameters().add(pool_.setup().fold_lock));
    for (const auto& trim : step.trims)
      if (auto trimmed = trim_postgres_session(connection, trim, attempted);
          !trimmed)
        return trimmed;
    for (const auto& removal : step.removals)
      if (auto removed
          = remove_postgres_scope(connection, removal, writer_, attempted);
          !removed)
        return removed;
  }
  if (is_committed)
    return {};
  connection.queue(transaction::commit);
  if (auto answers = connection.run(attempted, postgres_deadline); !answers)
    return answers.error();
  return {};
}

result<void>
postgres_writer::queue_scopes(postgres_connection& connection,
                              std::span<const planned_scope> scopes) {
  std::vector<std::int64_t> ids;
  std::vector<std::int64_t> pasts;
  std::vector<std::int64_t> firsts;
  std::vector<std::int64_t> times;
  std::vector<owner_name> owners;
  for (const auto& made : scopes) {
    ids.push_back(made.id);
    pasts.push_back(made.past);
    firsts.push_back(made.first);
    times.push_back(made.microseconds);
    owners.push_back(made.owner);
  }
  connection.queue(add_scopes,
                   names_of(owners).add(ids).add(pasts).add(firsts).add(times));
  // One after the other, since a fork may be forked in the same step.
  std::string keys;
  for (const auto& made : scopes) {
    if (made.past == 0)
      continue;
    if (auto encoded = encode(*made.keys, keys); !encoded)
      return encoded;
    connection.queue(add_first_of_fork,
                     postgres_parameters()
                       .add(made.id)
                       .add(made.past)
                       .add(made.first)
                       .add(made.microseconds)
                       .add(keys));
  }
  return {};
}

// -- changes of other processes ----

result<void> postgres_writer::catch_up(postgres_connection& connection,
                                       std::string_view attempted) {
  connection.queue(find_changed, postgres_parameters().add(seen_).add(writer_));
  auto answers = connection.run(attempted, postgres_deadline);
  if (!answers)
    return answers.error();
  const auto& rows = answers->front();
  // Removals come first in the result. A later row with the same name is a new
  // scope.
  for (int i = 0; i < rows.size(); ++i) {
    const owner_name owner{std::string(rows.text(i, 0)),
                           std::string(rows.text(i, 1)),
                           std::string(rows.text(i, 2))};
    if (owner.app.empty())
      continue; // A removed session whose events forks share.
    if (rows.is_null(i, 4)) {
      heads_.erase(owner);
      unreported_[owner] = std::nullopt;
      removals_.note(owner);
      continue;
    }
    const auto revision = static_cast<std::uint64_t>(rows.number(i, 4));
    heads_.changed(owner, {rows.number(i, 3), revision});
    unreported_[owner] = revision;
  }
  return {};
}

result<void> postgres_writer::find_made_again(postgres_connection& connection,
                                              std::string_view attempted) {
  // A user that was removed and then created again by a session that does not
  // touch it is in no row of the log.
  std::vector<owner_name> removed;
  for (const auto& [owner, revision] : unreported_)
    if (!revision && owner.where() == scope::user)
      removed.push_back(owner);
  if (removed.empty())
    return {};
  connection.queue(find_heads, names_of(removed));
  auto answers = connection.run(attempted, postgres_deadline);
  if (!answers)
    return answers.error();
  const auto& heads = answers->front();
  for (int i = 0; i < heads.size(); ++i)
    unreported_[removed[static_cast<std::size_t>(heads.number(i, 0) - 1)]]
      = static_cast<std::uint64_t>(heads.number(i, 2));
  return {};
}

result<std::vector<moved_owner>> postgres_writer::changed_elsewhere() {
  constexpr auto attempted = "read the commits of other processes";
  const bool is_suspected = history_.is_suspected();
  if (is_suspected)
    pool_.renew();
  auto last_id
    = pool_.with([&](postgres_connection& connection) -> result<std::int64_t> {
        connection.queue(find_last);
        // The check is queued after `find_last`, so that the known marks cover
        // the rows found.
        const auto asked = history_.queue_mark_check(connection);
        auto answers = connection.run(attempted, postgres_deadline);
        if (!answers)
          return answers.error();
        const auto is_same
          = history_.take_mark_check(asked, answers->back(), attempted);
        if (!is_same)
          return is_same.error();
        if (!*is_same || is_suspected) {
          if (auto changed = change_history(connection, attempted); !changed)
            return changed.error();
          return seen_;
        }
        const auto found = answers->front().number(0, 0);
        if (found > seen_)
          if (auto caught = catch_up(connection, attempted); !caught)
            return caught.error();
        if (auto found_again = find_made_again(connection, attempted);
            !found_again)
          return found_again.error();
        return found;
      });
  if (!last_id)
    return last_id.error();
  // Rows that came between the two statements are read again by the next call.
  seen_ = std::max(seen_, *last_id);
  std::vector<moved_owner> moved;
  for (const auto& [owner, revision] : std::exchange(unreported_, {}))
    moved.push_back({owner, revision});
  removals_.clear();
  return moved;
}

} // namespace troupe
