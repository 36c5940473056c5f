#include "troupe/stores/sqlite/writer.hpp"

#include "troupe/stores/sqlite/schema.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <limits>
#include <utility>

namespace troupe {

// Invariants of a commit:
// - Rows are checked and written inside one SQLite write transaction, after the
//   rows of other processes were read in it. No revision can change in between.
// - The last row carries the commit's mark. Another process, or this one later,
//   finds out by it whether the file still has this history.
// - The tail and the marks learn of the new rows only after COMMIT, so neither
//   holds a row that the file does not have.

namespace {

// Rows of removed owners that one commit deletes.
constexpr std::int64_t purge_rows = 256;

// The same at closing. The next process deletes the rest.
constexpr std::int64_t purge_rows_at_end = 16'384;

owner_view view_of(const owner_name& owner) {
  return {owner.app, owner.user, owner.session};
}

owner_view user_view_of(const owner_name& owner) {
  return {owner.app, owner.user};
}

owner_view app_view_of(const owner_name& owner) {
  return {owner.app};
}

owner_view parent_view_of(const store_change& fork) {
  return {fork.owner.app, fork.owner.user, fork.past->session};
}

std::int64_t signed_revision(std::uint64_t revision) {
  return static_cast<std::int64_t>(revision);
}

std::size_t index_of(scope where) {
  return static_cast<std::size_t>(where);
}

} // namespace

void fill_tail(log_tail& tail, sqlite_log& log, std::int64_t folded) {
  tail.reset(folded);
  auto last = folded;
  for (auto rows = log.rows_behind(folded); rows.next();) {
    sqlite_log::expect_sound(rows);
    auto row = sqlite_log::row_of(rows);
    sqlite_log::expect_number(row, ++last);
    tail.add({&row, 1});
  }
}

sqlite_shared& expect_known_file(sqlite_shared& shared) {
  shared.file.expect_at(shared.settings.file);
  return shared;
}

// The known commit is missing if the file was restored from a copy. Rows after
// it then belong to another history, even if their numbers match.
void expect_known_commit(sqlite_log& log,
                         const std::optional<known_commits::commit>& known) {
  if (known && log.mark_of(known->row) != known->mark)
    throw sqlite_history_lost(sqlite_history_lost::cause::went_back, {});
}

sqlite_writer::sqlite_writer(sqlite_shared& shared)
  : shared_(expect_known_file(shared)),
    database_(open_sqlite_writer(shared.settings)),
    log_(database_),
    scopes_(database_, shared.tail),
    pasts_(database_),
    fold_(database_, shared.tail, shared.settings.fold_rows),
    purge_(database_, pasts_),
    runs_(database_),
    add_removal_(database_.prepare("INSERT INTO removals VALUES(?1,?2,?3,?4)")),
    removals_behind_(
      database_.prepare("SELECT app,user,session FROM removals WHERE log>?1")),
    data_version_(database_.prepare("PRAGMA data_version")),
    log_space_(shared.settings) {
  sqlite3_wal_hook(
    database_.connection(),
    [](void* frames, sqlite3*, const char*, int count) {
      *static_cast<int*>(frames) = count;
      return SQLITE_OK;
    },
    &log_frames_);
  {
    const sqlite_transaction reading(database_, sqlite_transaction::kind::read);
    catch_up();
    // The known facts of the file must belong to the state that was read, so
    // the watch starts inside the same transaction.
    watch_.emplace(database_, shared_.settings.file, shared_.file);
  }
  // A killed program may have left a checkpoint half-way. Errors are ignored
  // here; a lasting one makes the next commits fail.
  if (watch_->has_open_checkpoint())
    sqlite3_wal_checkpoint_v2(database_.connection(),
                              nullptr,
                              SQLITE_CHECKPOINT_PASSIVE,
                              nullptr,
                              nullptr);
}

// -- changes of other processes ----

// Reads the rows of other processes; call it inside a transaction. Returns true
// if another process has written since the last call.
bool sqlite_writer::catch_up() {
  std::int64_t version = 0;
  {
    auto found = data_version_.rows();
    if (found.next())
      version = found.integer(0);
  }
  if (seen_version_ == version)
    return false;
  // `data_version` is stored last: after a failure the next call reads again.
  folded_ = log_.folded();
  read_foreign();
  seen_version_ = version;
  return true;
}

void sqlite_writer::read_foreign() {
  auto& tail = shared_.tail;
  const auto newest = log_.newest();
  // The history is checked before any row is used: rows of another history
  // would be taken for changes of other processes.
  expect_known_history(newest);
  if (!shared_.is_filled)
    tail.reset(folded_);
  const bool is_first = !std::exchange(shared_.is_filled, true);
  const auto seen = tail.last();
  tail.mark_folded(folded_);
  tail.trim(std::numeric_limits<std::size_t>::max());
  if (newest <= seen)
    return;
  // Removals are read before the tail grows. In the other order a failure
  // between the two reads would lose them: the next call starts after the tail.
  if (!is_first)
    for (auto removed = removals_behind_.rows(seen); removed.next();)
      shared_.foreign.note_removal({std::string(removed.text(0)),
                                    std::string(removed.text(1)),
                                    std::string(removed.text(2))});
  auto last = std::max(seen, folded_);
  for (auto rows = log_.rows_behind(seen); rows.next();) {
    sqlite_log::expect_sound(rows);
    auto row = sqlite_log::row_of(rows);
    if (!is_first)
      shared_.foreign.note(row);
    if (row.number <= folded_)
      continue;
    sqlite_log::expect_number(row, ++last);
    tail.add({&row, 1});
  }
  // Folded rows are not added, but the next row number follows them.
  tail.reach(newest);
  scopes_.forget_all();
}

void sqlite_writer::expect_known_history(std::int64_t newest) {
  auto& marks = shared_.marks;
  expect_known_commit(log_, marks.newest());
  const auto mark = log_.mark_of(newest);
  marks.see(mark ? std::optional(known_commits::commit{newest, *mark})
                 : std::nullopt);
}

std::size_t sqlite_writer::forget_lost_commits() {
  const sqlite_transaction reading(database_, sqlite_transaction::kind::read);
  return shared_.marks.forget_missing([this](const auto& written) {
    return log_.mark_of(written.row) == written.mark;
  });
}

void sqlite_writer::follow() {
  const sqlite_transaction reading(database_, sqlite_transaction::kind::read);
  watch_->check_file();
  catch_up();
}

std::vector<moved_owner> sqlite_writer::changed_elsewhere() {
  const sqlite_transaction reading(database_, sqlite_transaction::kind::read);
  watch_->check_file();
  catch_up();
  auto names = shared_.foreign.noted().names;
  for (const auto id : shared_.foreign.noted().scope_ids)
    if (auto name = scopes_.name_of(id); name && !name->app.empty())
      names.insert(std::move(*name));
  std::vector<moved_owner> changed;
  for (const auto& owner : names) {
    const auto* known = scopes_.find(view_of(owner));
    changed.push_back(
      {owner,
       known == nullptr
         ? std::nullopt
         : std::optional(static_cast<std::uint64_t>(known->revision))});
  }
  shared_.foreign.forget();
  return changed;
}

// -- commits ----

// Commits that only close runs of this process, and those of holders, do not
// wait for the disk: a power failure that takes them back leaves a run open
// that has ended, or a holder silent. Called before each transaction, so that a
// failure to set it fails the commit.
void sqlite_writer::wait_for_disk(bool waits) {
  if (waits == waits_for_disk_
      || shared_.settings.options.durability != durability::durable)
    return;
  database_.execute(waits ? "PRAGMA synchronous=FULL"
                          : "PRAGMA synchronous=NORMAL");
  waits_for_disk_ = waits;
}

// A run of another process that is closed was given up, and must not come back.
bool sqlite_writer::closes_own_runs(const store_change& change) const {
  return change.kind == change_kind::close_runs
         && std::ranges::all_of(change.runs, [this](const run_mark& mark) {
              return shared_.holders.contains(mark.holder);
            });
}

commit_outcome sqlite_writer::commit(std::span<const store_change> changes) {
  for (const auto& change : changes)
    for (const auto& mark : change.runs)
      if (mark.opens)
        shared_.holders.insert(mark.holder);
  wait_for_disk(
    std::ranges::any_of(changes, [this](const store_change& change) {
      return !closes_own_runs(change);
    }));
  encode_all(changes);
  scopes_.shrink();
  written_.clear();
  sqlite_transaction writing(database_, sqlite_transaction::kind::write);
  // Both checks belong inside the write transaction: before it, another process
  // could still replace the file or append.
  watch_->check_file();
  catch_up();
  newest_ = shared_.tail.last();
  moved_ = shared_.foreign.removals().touched_by(changes);
  kept_out_ = find_kept_out(changes);
  for (std::size_t index = 0; index < changes.size(); ++index)
    judge(changes[index], texts_[index]);
  if (!moved_.empty()) {
    // The cache holds revisions of the refused changes.
    scopes_.forget_all();
    shared_.foreign.removals().mark_reported(moved_);
    return {std::move(moved_)};
  }
  if (!kept_out_.empty()) {
    scopes_.forget_all();
    return {{}, std::move(kept_out_)};
  }
  const auto rows = std::ssize(written_);
  const known_commits::commit mark{newest_, shared_.marks.make()};
  // A commit without rows must not set a mark: it would overwrite the mark of
  // an earlier commit.
  const bool has_rows = !written_.empty();
  if (has_rows)
    log_.mark(mark.row, mark.mark);
  folded_ = fold_.work(rows, folded_);
  purge_.work(purge_rows, folded_);
  // The transaction has the lock, so no other process writes to the log now.
  log_space_.extend(database_, log_frames_);
  writing.commit();
  // SQLite reports success for a commit into a file that was removed meanwhile,
  // so the path is checked again before the commit is acknowledged.
  watch_->check_file();
  if (has_rows)
    shared_.marks.add_own(mark);
  // Rows enter the tail after the commit. Earlier, a load could return events
  // that a failing commit takes back.
  shared_.tail.add(written_);
  shared_.tail.mark_folded(folded_);
  shared_.tail.trim(static_cast<std::size_t>(4 * rows + 64));
  return {};
}

// Encodes before the file is locked, to keep the lock short.
void sqlite_writer::encode_all(std::span<const store_change> changes) {
  if (texts_.size() < changes.size())
    texts_.resize(changes.size());
  for (std::size_t index = 0; index < changes.size(); ++index)
    encode(changes[index], texts_[index]).value();
}

// A session that the commit creates has no other runs.
std::vector<kept_out_run>
sqlite_writer::find_kept_out(std::span<const store_change> changes) {
  const auto sessions = sessions_to_gate(changes);
  if (sessions.empty())
    return {};
  run_gate gate;
  for (const auto& session : sessions)
    if (const auto* known = scopes_.find(view_of(session)))
      runs_.add_to(gate, session, known->id);
  return std::move(gate).judge(changes);
}

// Checks that the change builds on the stored revisions. Writes it unless an
// earlier change was refused. A change after a refused one is checked as if
// that one had been written, so that each moved owner is named for its own
// reason.
void sqlite_writer::judge(const store_change& change,
                          const stored_event& text) {
  if (change.kind == change_kind::remove) {
    judge_removal(change);
    return;
  }
  if (change.kind == change_kind::remove_user) {
    judge_user_removal(change);
    return;
  }
  if (change.kind == change_kind::trim) {
    judge_trim(change, text);
    return;
  }
  if (change.kind == change_kind::close_runs) {
    close_runs(change);
    return;
  }
  std::array<known_scope*, durable_scopes> touched{};
  if (change.session_revision)
    touched[index_of(scope::session)] = judge_session(change);
  if (change.user_revision)
    touched[index_of(scope::user)]
      = judge_wider(user_view_of(change.owner), *change.user_revision);
  if (change.app_revision)
    touched[index_of(scope::app)]
      = judge_wider(app_view_of(change.owner), *change.app_revision);
  if (may_write())
    write(change, text, touched);
}

known_scope* sqlite_writer::judge_session(const store_change& change) {
  const auto owner = view_of(change.owner);
  const auto revision = signed_revision(*change.session_revision);
  if (change.past)
    judge_past(change);
  auto* known = scopes_.find(owner);
  const bool fits = change.kind == change_kind::create
                      ? known == nullptr
                      : known != nullptr && known->revision + 1 == revision;
  if (!fits)
    add_moved(owner);
  if (known == nullptr)
    known = &scopes_.add(owner);
  known->revision = revision;
  return known;
}

// The number of a session that this commit creates is not known yet, so no
// change names it.
void sqlite_writer::judge_past(const store_change& change) {
  const auto& past = *change.past;
  const auto parent = parent_view_of(change);
  const auto* known = scopes_.find(parent);
  if (known == nullptr || known->revision < signed_revision(past.revision)
      || (past.incarnation != 0
          && known->id != signed_revision(past.incarnation)))
    add_moved(parent);
}

void sqlite_writer::judge_trim(const store_change& change,
                               const stored_event& text) {
  const auto owner = view_of(change.owner);
  const auto& kept = *change.kept;
  const auto* known = scopes_.find(owner);
  if (known == nullptr || known->revision < signed_revision(kept.revision)
      || (kept.incarnation != 0
          && known->id != signed_revision(kept.incarnation)))
    add_moved(owner);
  if (may_write())
    write_trim(known->id, signed_revision(kept.revision), text);
}

void sqlite_writer::close_runs(const store_change& change) {
  if (!may_write())
    return;
  if (const auto* known = scopes_.find(view_of(change.owner)))
    runs_.apply(known->id, change.runs);
}

known_scope* sqlite_writer::judge_wider(const owner_view& owner,
                                        std::uint64_t revision) {
  auto* known = scopes_.find(owner);
  const auto stored = known == nullptr ? 0 : known->revision;
  if (stored + 1 != signed_revision(revision))
    add_moved(owner);
  if (known == nullptr)
    known = &scopes_.add(owner);
  known->revision = signed_revision(revision);
  return known;
}

void sqlite_writer::judge_removal(const store_change& change) {
  const auto owner = view_of(change.owner);
  const auto* const known = scopes_.find(owner);
  if (known == nullptr
      || (change.session_revision
          && known->revision + 1 != signed_revision(*change.session_revision)))
    add_moved(owner);
  if (may_write())
    write_removal(change.kind, owner);
  scopes_.bury(owner);
}

void sqlite_writer::judge_user_removal(const store_change& change) {
  const auto user = user_view_of(change.owner);
  if (may_write()) {
    for (const auto& session : scopes_.sessions_of(user))
      write_removal(change_kind::remove, {user.app, user.user, session});
    if (scopes_.find(user) != nullptr)
      write_removal(change.kind, user);
  }
  scopes_.bury_user(user);
}

void sqlite_writer::add_moved(const owner_view& owner) {
  owner_name name(owner);
  if (std::ranges::find(moved_, name) == moved_.end())
    moved_.push_back(std::move(name));
}

// -- rows ----

void sqlite_writer::write(
  const store_change& change,
  const stored_event& text,
  const std::array<known_scope*, durable_scopes>& touched) {
  const std::array names = {view_of(change.owner),
                            user_view_of(change.owner),
                            app_view_of(change.owner)};
  auto& row = written_.emplace_back();
  row.number = take_number();
  row.kind = change.kind;
  row.microseconds = text.microseconds;
  row.event = change.event;
  if (change.kind == change_kind::append)
    row.id_hash = id_hash(change.event->id);
  for (std::size_t index = 0; index < durable_scopes; ++index) {
    auto* known = touched[index];
    if (known == nullptr)
      continue;
    // Nothing of the scope is folded yet. The first revision of a session is 0,
    // or that of its past, so its folded revision starts one below.
    if (known->id == 0)
      scopes_.insert(names[index],
                     *known,
                     index == index_of(scope::session) ? known->revision - 1
                                                       : 0,
                     text.microseconds);
    row.scopes[index] = known->id;
    row.revisions[index] = known->revision;
  }
  if (change.kind == change_kind::create)
    for (const auto& wider :
         {user_view_of(change.owner), app_view_of(change.owner)})
      insert_missing(change, wider);
  if (change.past)
    write_past(change, text, row.scopes[index_of(scope::session)]);
  log_.append(row, &text);
  if (!change.runs.empty())
    runs_.apply(row.scopes[index_of(scope::session)], change.runs);
}

// A fork has the first revision of its parent, or the revision at which it
// begins if that is earlier.
void sqlite_writer::write_past(const store_change& change,
                               const stored_event& text,
                               std::int64_t fork) {
  const auto* parent = scopes_.find(parent_view_of(change));
  if (parent == nullptr)
    throw error(errc::corrupt,
                fmt::format("{}: the session that it is forked from is lost",
                            to_string(change.owner)));
  const auto revision = signed_revision(change.past->revision);
  pasts_.add(fork, {parent->id, revision});
  if (pasts_.first_revision(parent->id) <= revision)
    pasts_.copy_first(fork, parent->id);
  else if (revision > 0)
    pasts_.trim(fork, revision, text.microseconds, text.delta);
}

// The rows are deleted later, in slices.
void sqlite_writer::write_trim(std::int64_t scope_id,
                               std::int64_t revision,
                               const stored_event& text) {
  if (revision <= pasts_.first_revision(scope_id))
    return;
  pasts_.trim(scope_id, revision, text.microseconds, text.delta);
  purge_.add(scope_id, newest_);
}

// An owner exists as soon as one below it exists.
void sqlite_writer::insert_missing(const store_change& change,
                                   const owner_view& owner) {
  if (scopes_.find(owner) == nullptr)
    scopes_.insert(owner,
                   scopes_.add(owner),
                   0,
                   change.event->timestamp.time_since_epoch().count());
}

void sqlite_writer::write_removal(change_kind kind, const owner_view& owner) {
  const auto* known = scopes_.find(owner);
  if (known == nullptr)
    throw error(
      errc::corrupt,
      fmt::format("{} is listed, but not found", to_string(owner_name(owner))));
  const auto id = known->id;
  runs_.erase(id);
  auto& row = written_.emplace_back();
  row.number = take_number();
  row.kind = kind;
  row.scopes[index_of(owner.session.empty() ? scope::user : scope::session)]
    = id;
  log_.append(row, nullptr);
  row.scopes = {}; // A removal makes no revision.
  add_removal_.run(row.number, owner.app, owner.user, owner.session);
  shared_.foreign.keep_name(id, owner_name(owner));
  if (!pasts_.last_used(id))
    return drop(id, row.number);
  // The events that its forks share stay, without names.
  scopes_.hide(id);
  purge_.add(id, row.number);
}

// Drops a scope that no fork uses, and the pasts that only it has used.
void sqlite_writer::drop(std::int64_t scope_id, std::int64_t row) {
  while (scope_id != 0)
    scope_id = drop_one(scope_id, row);
}

// Returns the past of the scope if no fork uses it any more; 0 otherwise.
std::int64_t sqlite_writer::drop_one(std::int64_t scope_id, std::int64_t row) {
  const auto past = pasts_.find(scope_id);
  pasts_.erase(scope_id);
  pasts_.erase_first(scope_id);
  scopes_.erase(scope_id);
  purge_.add(scope_id, row);
  if (!past)
    return 0;
  const auto name = scopes_.name_of(past->scope);
  if (!name)
    return 0;
  if (!name->app.empty()) {
    // The parent may have been trimmed: its last fork may have kept the old
    // events.
    if (pasts_.first_revision(past->scope) > 0)
      purge_.add(past->scope, row);
    return 0;
  }
  if (!pasts_.last_used(past->scope))
    return past->scope;
  purge_.add(past->scope, row); // Its newest events may be unused now.
  return 0;
}

// -- holders of runs ----

// No row of the log, so no owner has changed, and the commit needs no mark.
void sqlite_writer::renew_holder(const std::string& id) {
  shared_.holders.insert(id);
  wait_for_disk(false);
  sqlite_transaction writing(database_, sqlite_transaction::kind::write);
  watch_->check_file();
  runs_.renew(id);
  writing.commit();
}

void sqlite_writer::remove_holder(const std::string& id) {
  wait_for_disk(false);
  sqlite_transaction writing(database_, sqlite_transaction::kind::write);
  watch_->check_file();
  runs_.forget(id);
  writing.commit();
}

// -- closing ----

void sqlite_writer::finish() {
  wait_for_disk(true);
  {
    sqlite_transaction writing(database_, sqlite_transaction::kind::write);
    watch_->check_file();
    catch_up();
    folded_ = fold_.work_all(folded_);
    fold_.settle_at_end(folded_);
    purge_.work(purge_rows_at_end, folded_);
    writing.commit();
  }
  shared_.tail.mark_folded(folded_);
  // The last connection to close copies the whole write-ahead log and removes
  // it.
  sqlite3_db_config(
    database_.connection(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, nullptr);
  sqlite3_wal_checkpoint_v2(database_.connection(),
                            nullptr,
                            SQLITE_CHECKPOINT_PASSIVE,
                            nullptr,
                            nullptr);
}

void sqlite_writer::checkpoint() {
  int frames = 0;
  if (sqlite3_wal_checkpoint_v2(database_.connection(),
                                nullptr,
                                SQLITE_CHECKPOINT_PASSIVE,
                                &frames,
                                nullptr)
        != SQLITE_OK
      && (sqlite3_errcode(database_.connection()) & 0xff) != SQLITE_BUSY)
    throw database_.failure("checkpoint");
}

} // namespace troupe
