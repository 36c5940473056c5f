#include "troupe/stores/sqlite/reader.hpp"

#include "troupe/core/session.hpp"
#include "troupe/stores/sqlite/sums.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <tuple>

namespace troupe {

// Invariant: a load sees one state of the file. It reads inside one transaction
// and takes from the tail only rows up to the newest row of that transaction.
//
// Order at the start: hold the tail, begin the transaction, check the file and
// the known commit. A hold after the transaction could miss rows that are
// folded and dropped in between. A check before it could pass for a file that
// is replaced in between.

namespace {

constexpr auto unlimited = std::numeric_limits<std::size_t>::max();

timestamp time_of(std::int64_t microseconds) {
  return timestamp(std::chrono::microseconds(microseconds));
}

stored_scope take_keys(read_scope& from) {
  return {std::move(from.keys), static_cast<std::uint64_t>(from.revision)};
}

// The folded part of a scope without its keys, as `find_` selects it.
std::optional<read_scope> take_scope(sqlite_rows rows) {
  if (!rows.next())
    return std::nullopt;
  rows.expect_sound(4, "scopes");
  read_scope found;
  found.id = rows.integer(0);
  found.folded_revision = rows.integer(1);
  found.last_update_time = time_of(rows.integer(2));
  found.folded_keys = rows.integer(3);
  return found;
}

std::string entry_columns() {
  return fmt::format("number,log,id_hash,{}", is_sound("sum", sums::entries));
}

void apply(const delta& changed, scope where, state_map& keys) {
  for (const auto& done : changed.share(where)) {
    if (done.operand.is_null())
      keys.erase(done.name);
    else
      keys.set(done.name, done.operand);
  }
}

// Limits a number for SQLite, whose integers are signed.
std::int64_t bounded(std::size_t count) {
  return static_cast<std::int64_t>(
    std::min(count, static_cast<std::size_t>(INT64_MAX)));
}

} // namespace

sqlite_reader::sqlite_reader(sqlite_shared& shared)
  : shared_(expect_known_file(shared)),
    database_(shared.settings, sqlite_role::reader),
    log_(database_),
    find_(database_.prepare(
      fmt::format("SELECT id,revision,updated,keys,{} FROM scopes"
                  " WHERE app=?1 AND user=?2 AND session=?3",
                  is_sound("sum", sums::scopes)))),
    find_id_(database_.prepare(
      fmt::format("SELECT id,revision,updated,keys,{} FROM scopes WHERE id=?1",
                  is_sound("sum", sums::scopes)))),
    keys_(database_.prepare(
      fmt::format("SELECT key,value,{} FROM state WHERE scope=?1 ORDER BY key",
                  is_sound("sum", sums::state)))),
    newest_entries_(database_.prepare(
      fmt::format("SELECT {0} FROM settled_entries WHERE scope=?1"
                  " AND number<=?2 UNION ALL"
                  " SELECT {0} FROM fresh_entries WHERE scope=?1"
                  " AND number<=?2 ORDER BY number DESC",
                  entry_columns()))),
    entries_between_(database_.prepare(
      fmt::format("SELECT {0} FROM settled_entries WHERE scope=?1"
                  " AND number BETWEEN ?2 AND ?3 UNION ALL"
                  " SELECT {0} FROM fresh_entries WHERE scope=?1"
                  " AND number BETWEEN ?2 AND ?3 ORDER BY number",
                  entry_columns()))),
    event_(database_.prepare(
      fmt::format("SELECT event,time,body,delta,session,session_revision,"
                  "{} AND {} FROM log WHERE id=?1",
                  is_sound("head_sum", sums::log_head),
                  is_sound("body_sum", sums::log_body)))),
    change_(database_.prepare(
      fmt::format("SELECT time,delta,session,session_revision,{} FROM log"
                  " WHERE id=?1",
                  is_sound("head_sum", sums::log_head)))),
    shared_change_(database_.prepare(
      fmt::format("SELECT delta,user,user_revision,app,app_revision,{} FROM log"
                  " WHERE id=?1",
                  is_sound("head_sum", sums::log_head)))),
    shared_entries_(database_.prepare(
      fmt::format("SELECT number,logs,{} FROM shared_entries WHERE scope=?1"
                  " AND log<=?2 ORDER BY log DESC",
                  is_sound("sum", sums::shared_entries)))),
    shared_entry_behind_(
      database_.prepare("SELECT min(log) FROM shared_entries WHERE scope=?1"
                        " AND log>=?2")),
    settled_ids_(database_.prepare(
      fmt::format("SELECT {} FROM settled_entries INDEXED BY settled_ids WHERE "
                  "scope=?1 AND number>>16=?2 AND id_hash=?3",
                  entry_columns()))),
    fresh_ids_(database_.prepare(
      fmt::format("SELECT {} FROM fresh_entries WHERE scope=?1"
                  " AND id_hash IS NOT NULL",
                  entry_columns()))),
    sessions_(database_, shared.tail),
    snapshots_(database_),
    pasts_(database_),
    runs_(database_),
    watch_(database_, shared.settings.file, shared.file) {}

// -- moments ----

sqlite_reader::moment::moment(sqlite_reader& reader)
  : hold_(reader.shared_.tail),
    reading_(reader.database_, sqlite_transaction::kind::read) {
  reader.watch_.check_file();
  // The mark is taken before the first read, which fixes the state of the
  // transaction. That state therefore has the commit; if not, the file was
  // restored.
  const auto known = reader.shared_.marks.newest();
  reader.newest_ = reader.log_.newest();
  expect_known_commit(reader.log_, known);
  reader.unseen_.clear();
  const auto seen = reader.shared_.tail.last();
  if (seen >= reader.newest_)
    return;
  // Rows that a commit has written but not yet added to the tail are read from
  // the log. So a load also sees commits of other processes.
  auto last = std::max(seen, reader.log_.folded());
  for (auto rows = reader.log_.rows_behind(last); rows.next();) {
    sqlite_log::expect_sound(rows);
    reader.unseen_.push_back(sqlite_log::row_of(rows));
    sqlite_log::expect_number(reader.unseen_.back(), ++last);
  }
}

std::optional<read_scope> sqlite_reader::find(const owner_name& owner) {
  auto found = take_scope(find_.rows(owner.app, owner.user, owner.session));
  if (found)
    find_changes(*found, to_string(owner), owner.where());
  return found;
}

// Adds the changes that are not folded.
void sqlite_reader::find_changes(read_scope& found,
                                 std::string_view name,
                                 scope where,
                                 std::int64_t behind) {
  if (where == scope::session)
    found.past = pasts_.find(found.id);
  if (found.past)
    found.first = found.past->revision;
  collect_pending(found, where, behind);
  found.revision = found.pending.empty() ? found.folded_revision
                                         : found.pending.back().revision;
  if (found.revision < found.first)
    throw error(errc::corrupt,
                fmt::format("{}: its creation is missing in the log", name));
  auto revision = found.folded_revision;
  for (const auto& change : found.pending) {
    // A gap or a repetition is damage; a state computed across it would be
    // wrong.
    if (change.revision != ++revision)
      throw error(errc::corrupt,
                  fmt::format("{}: its log goes from revision {} to {}",
                              name,
                              revision - 1,
                              change.revision));
    found.last_update_time
      = std::max(found.last_update_time, time_of(change.microseconds));
  }
}

std::optional<sqlite_reader::event_parts>
sqlite_reader::find_parts(const session_key& key) {
  auto own = find({key.app, key.user, key.id});
  if (!own)
    return std::nullopt;
  event_parts parts;
  own->kept_from = pasts_.first_revision(own->id);
  auto last = own->revision;
  auto past = own->past;
  parts.push_back({*std::move(own), last});
  while (past) {
    last = std::min(last, past->revision);
    auto shared = find_past(*past);
    past = shared.past;
    parts.push_back({std::move(shared), last});
  }
  return parts;
}

std::optional<read_scope> sqlite_reader::find_session(std::int64_t id) {
  auto found = take_scope(find_id_.rows(id));
  if (found)
    find_changes(*found, fmt::format("scope {}", id), scope::session);
  return found;
}

read_scope sqlite_reader::find_past(const sqlite_past& past) {
  auto found = find_session(past.scope);
  if (!found)
    throw error(errc::corrupt,
                fmt::format("scope {} is missing, which has events of a fork",
                            past.scope));
  // Otherwise a damaged chain of pasts could have no end.
  const bool is_below = !found->past || found->first < past.revision;
  if (found->revision < past.revision || !is_below)
    throw error(errc::corrupt,
                fmt::format("scope {} has the revisions {} to {}, and a fork "
                            "begins at {}",
                            past.scope,
                            found->first,
                            found->revision,
                            past.revision));
  return *std::move(found);
}

void sqlite_reader::collect_pending(read_scope& found,
                                    scope where,
                                    std::int64_t behind) {
  shared_.tail.collect(
    found.id, found.folded_revision, behind, newest_, unlimited, found.pending);
  const auto index = static_cast<std::size_t>(where);
  for (auto& row : unseen_) {
    if (row.scopes[index] != found.id
        || row.revisions[index] <= found.folded_revision
        || (!found.pending.empty() && row.number <= found.pending.back().row))
      continue;
    if (!row.event) {
      event bare;
      bare.actions.state_delta = decode_delta(row.delta).value();
      row.event = std::make_shared<const event>(std::move(bare));
    }
    found.pending.push_back({row.number,
                             row.revisions[index],
                             row.microseconds,
                             row.id_hash,
                             row.scopes[0] != 0,
                             row.event});
  }
}

void sqlite_reader::read_keys(read_scope& found, scope where) {
  std::int64_t count = 0;
  for (auto rows = keys_.rows(found.id); rows.next(); ++count) {
    rows.expect_sound(2, "state");
    found.keys.set(rows.text(0), decode_value(rows.text(1)).value());
  }
  // No key is lost or found twice.
  if (count != found.folded_keys
      || static_cast<std::size_t>(count) != found.keys.size())
    throw error(errc::corrupt,
                fmt::format("a scope has {} rows of its {} keys",
                            count,
                            found.folded_keys));
  apply_pending(found, where);
}

void sqlite_reader::apply_pending(read_scope& found, scope where) {
  for (const auto& change : found.pending)
    if (change.event)
      apply(change.event->actions.state_delta, where, found.keys);
}

std::optional<read_scope> sqlite_reader::read(const owner_name& owner) {
  auto found = find(owner);
  if (found)
    read_keys(*found, owner.where());
  return found;
}

void sqlite_reader::fill_tail() {
  const sqlite_transaction reading(database_, sqlite_transaction::kind::read);
  troupe::fill_tail(shared_.tail, log_, log_.folded());
}

// -- loads ----

std::optional<stored_scope> sqlite_reader::load_scope(const owner_name& owner) {
  const moment now(*this);
  const auto where = owner.where();
  const auto epoch = shared_.hot.epoch();
  auto found = take_scope(find_.rows(owner.app, owner.user, owner.session));
  if (!found)
    return std::nullopt;
  // A state that another reader has loaded may be newer than this moment, or
  // older than the folded one.
  auto known = shared_.hot.find(owner);
  const bool is_hot = known && known->id == found->id && known->row <= newest_
                      && known->revision >= found->folded_revision;
  if (is_hot) {
    found->folded_revision = known->revision;
    find_changes(*found, to_string(owner), where, known->row);
    found->keys = std::move(known->keys);
    apply_pending(*found, where);
  } else {
    find_changes(*found, to_string(owner), where);
    read_keys(*found, where);
  }
  const auto& pending = found->pending;
  // A load that has to be repeated may have read rows of different moments.
  if (!pending.empty() && (is_hot || pending.size() >= hot_states::changes_min)
      && !database_.has_come_into_use())
    shared_.hot.keep(
      owner,
      {found->id, found->revision, pending.back().row, found->keys},
      epoch);
  return take_keys(*found);
}

std::optional<stored_session>
sqlite_reader::load_session(const session_key& key,
                            const load_options& options) {
  const moment now(*this);
  auto parts = find_parts(key);
  if (!parts)
    return std::nullopt;
  auto& own = parts->front().scope;
  read_keys(own, scope::session);
  stored_session loaded;
  loaded.last_update_time = own.last_update_time;
  const auto rows = newest_rows(*parts,
                                std::max(options.events_max, options.ids_max),
                                own.revision,
                                options.after);
  const auto events = std::min(options.events_max, rows.size());
  const auto ids = std::min(options.ids_max, rows.size());
  for (auto next = events; next-- > 0;)
    loaded.events.push_back(
      read_event(rows[next].log, rows[next].scope, rows[next].number));
  for (auto next = ids; next-- > 0;)
    loaded.id_hashes.push_back(rows[next].id_hash);
  loaded.incarnation = static_cast<std::uint64_t>(own.id);
  loaded.first_revision = static_cast<std::uint64_t>(own.kept_from);
  loaded.scope = take_keys(own);
  return loaded;
}

std::vector<sqlite_reader::numbered_row>
sqlite_reader::newest_rows(const event_parts& parts,
                           std::size_t count,
                           std::int64_t last,
                           std::uint64_t after) {
  std::vector<numbered_row> found;
  const auto behind = std::max(parts.front().scope.kept_from, bounded(after));
  for (const auto& part : parts)
    add_newest_rows(part, count, behind, std::min(last, part.last), found);
  return found;
}

void sqlite_reader::add_newest_rows(const event_part& part,
                                    std::size_t count,
                                    std::int64_t kept_from,
                                    std::int64_t last,
                                    std::vector<numbered_row>& found) {
  const auto& session = part.scope;
  // Also reads entry 0, the creation, unless it was trimmed.
  const auto behind = kept_from == 0 ? session.first - 1
                                     : std::max(session.first - 1, kept_from);
  for (auto next = session.pending.rbegin();
       next != session.pending.rend() && found.size() < count;
       ++next)
    if (next->id_hash && next->revision <= last && next->revision > kept_from)
      found.push_back({session.id,
                       next->revision,
                       next->row,
                       static_cast<std::uint32_t>(*next->id_hash)});
  if (found.size() == count || last <= session.first || last <= kept_from)
    return;
  auto rows = newest_entries_.rows(session.id, last);
  for (auto number = std::min(last, session.folded_revision);
       found.size() < count && number > behind;
       --number) {
    next_entry(rows, number);
    if (!rows.is_null(2))
      found.push_back({session.id,
                       number,
                       rows.integer(1),
                       static_cast<std::uint32_t>(rows.integer(2))});
  }
}

// Moves to the entry `number`. Each folded revision has an entry, so a gap is
// damage.
void sqlite_reader::next_entry(sqlite_rows& rows, std::int64_t number) {
  if (!rows.next() || rows.integer(0) != number)
    throw error(errc::corrupt,
                fmt::format("entry {} of a session is missing", number));
  rows.expect_sound(3, "entries");
}

event_ptr sqlite_reader::read_event(std::int64_t log,
                                    std::int64_t session,
                                    std::int64_t number) {
  auto rows = event_.rows(log);
  if (!rows.next() || rows.is_null(2))
    throw error(errc::corrupt,
                fmt::format("the event in row {} of the log is missing", log));
  rows.expect_sound(6, "log");
  if (rows.integer(4) != session || rows.integer(5) != number)
    throw error(errc::corrupt,
                fmt::format("row {} of the log is another event", log));
  auto said
    = decode({rows.text(0), rows.integer(1), rows.text(2), rows.text(3)});
  return std::make_shared<const event>(std::move(said).value());
}

// -- earlier revisions ----

std::optional<stored_session> sqlite_reader::load_session_at(
  const session_key& key, std::uint64_t revision, std::size_t events_max) {
  const moment now(*this);
  const auto parts = find_parts(key);
  if (!parts)
    return std::nullopt;
  const auto newest = parts->front().scope.revision;
  if (revision > static_cast<std::uint64_t>(newest))
    throw detail::no_revision(
      key, revision, static_cast<std::uint64_t>(newest));
  const auto& own = parts->front().scope;
  const auto last = static_cast<std::int64_t>(revision);
  if (last < own.kept_from)
    throw detail::trimmed_revision(
      key, revision, static_cast<std::uint64_t>(own.kept_from));
  auto state = state_at(own, part_with(*parts, last).scope, last);
  stored_session past;
  past.first_revision = static_cast<std::uint64_t>(own.kept_from);
  past.scope = {std::move(state.keys), revision};
  past.last_update_time = time_of(state.microseconds);
  for (const auto& row : newest_rows(*parts, events_max, last))
    past.events.push_back(read_event(row.log, row.scope, row.number));
  std::ranges::reverse(past.events);
  return past;
}

const sqlite_reader::event_part&
sqlite_reader::part_with(const event_parts& parts, std::int64_t revision) {
  const auto part = std::ranges::find_if(parts, [revision](const auto& each) {
    return each.scope.first <= revision;
  });
  if (part == parts.end())
    throw error(errc::corrupt, "a session has no creation");
  return *part;
}

// Replays the log from the nearest snapshot, from the creation, or from where
// the session was trimmed.
sqlite_snapshot sqlite_reader::state_at(const read_scope& session,
                                        const read_scope& part,
                                        std::int64_t revision) {
  sqlite_snapshot state{
    part.first - 1, std::numeric_limits<std::int64_t>::min(), {}};
  if (auto kept = snapshots_.find(part.id, revision))
    state = std::move(*kept);
  if (session.kept_from > 0 && session.kept_from >= part.first
      && session.kept_from > state.revision)
    state = pasts_.first_state(session.id).value();
  const auto folded = std::min(revision, part.folded_revision);
  auto rows = entries_between_.rows(part.id, state.revision + 1, folded);
  while (state.revision < folded) {
    const auto number = state.revision + 1;
    next_entry(rows, number);
    replay(rows.integer(1), part.id, number, state);
  }
  for (const auto& change : part.pending) {
    if (change.revision > revision)
      break;
    if (change.revision <= state.revision)
      continue;
    if (change.event)
      apply(change.event->actions.state_delta, scope::session, state.keys);
    state.revision = change.revision;
    state.microseconds = std::max(state.microseconds, change.microseconds);
  }
  return state;
}

void sqlite_reader::replay(std::int64_t log,
                           std::int64_t session,
                           std::int64_t number,
                           sqlite_snapshot& state) {
  auto rows = change_.rows(log);
  if (!rows.next())
    throw error(errc::corrupt,
                fmt::format("row {} of the log is missing", log));
  rows.expect_sound(4, "log");
  if (rows.integer(2) != session || rows.integer(3) != number)
    throw error(errc::corrupt,
                fmt::format("row {} of the log is another change", log));
  state.revision = number;
  state.microseconds = std::max(state.microseconds, rows.integer(0));
  apply(decode_delta(rows.text(1)).value(), scope::session, state.keys);
}

// -- earlier states of users and apps ----

// All changes are rows of one log. So the row that made the session's revision
// is a moment in the history of its user and app, too.
std::optional<earlier_shared_state>
sqlite_reader::load_shared_state_at(const session_key& key,
                                    std::uint64_t revision) {
  const moment now(*this);
  const auto parts = find_parts(key);
  const auto number = bounded(revision);
  if (!parts || number > parts->front().scope.revision
      || number < parts->front().scope.kept_from)
    return std::nullopt;
  const auto last = row_of(part_with(*parts, number).scope, number);
  return earlier_shared_state{shared_state_after(last, {key.app, key.user}),
                              shared_state_after(last, {key.app})};
}

std::int64_t sqlite_reader::row_of(const read_scope& session,
                                   std::int64_t revision) {
  if (revision > session.folded_revision)
    return session
      .pending[static_cast<std::size_t>(revision - session.folded_revision - 1)]
      .row;
  auto rows = entries_between_.rows(session.id, revision, revision);
  next_entry(rows, revision);
  return rows.integer(1);
}

// Replays the changes since the nearest snapshot. Folded changes are found by
// their entries, the others are in memory.
state_map sqlite_reader::shared_state_after(std::int64_t last,
                                            const owner_name& owner) {
  const auto found = find(owner);
  if (!found)
    return {};
  const auto where = owner.where();
  sqlite_snapshot state;
  const auto entries = entries_since_snapshot(*found, last, state);
  if (state.revision == 0)
    replay_unlisted(*found,
                    where,
                    entries.empty() ? found->folded_revision
                                    : entries.front().base(),
                    last,
                    state);
  for (const auto& entry : entries)
    for (const auto log : entry.logs)
      if (log <= last)
        replay_shared(log, *found, where, state);
  for (const auto& change : found->pending) {
    if (change.row > last)
      break;
    if (change.revision != ++state.revision)
      throw error(errc::corrupt,
                  fmt::format("{} has no entry of its revision {}",
                              to_string(owner),
                              state.revision));
    if (change.event)
      apply(change.event->actions.state_delta, where, state.keys);
  }
  return std::move(state.keys);
}

// The entries that have changes up to the row `last`, oldest first, as far as
// the nearest snapshot, which becomes `state`. The last one may also have later
// changes.
std::vector<shared_entry> sqlite_reader::entries_since_snapshot(
  const read_scope& found, std::int64_t last, sqlite_snapshot& state) {
  auto newest = last;
  // The revision at which the next entry ends; unset for one that has changes
  // behind `last`.
  std::optional<std::int64_t> expected = found.folded_revision;
  if (auto behind = shared_entry_behind_.rows(found.id, last);
      behind.next() && !behind.is_null(0)) {
    newest = behind.integer(0);
    expected.reset();
  }
  std::vector<shared_entry> entries;
  std::optional<sqlite_snapshot> kept;
  bool has_looked = false;
  for (auto rows = shared_entries_.rows(found.id, newest); rows.next();) {
    auto entry = read_entry(rows, found.id, expected);
    // A snapshot is made after the last change of an entry.
    if (entry.logs.back() <= last && !std::exchange(has_looked, true))
      kept = snapshots_.find(found.id, entry.revision);
    if (kept && kept->revision == entry.revision) {
      state = *std::move(kept);
      break;
    }
    expected = entry.base();
    entries.push_back(std::move(entry));
  }
  std::ranges::reverse(entries);
  return entries;
}

// Each folded change has an entry, so a gap is damage.
shared_entry
sqlite_reader::read_entry(const sqlite_rows& rows,
                          std::int64_t scope_id,
                          const std::optional<std::int64_t>& expected) {
  rows.expect_sound(2, "shared_entries");
  shared_entry entry{rows.integer(0), decode_logs(rows.text(1))};
  if (expected && entry.revision != *expected)
    throw error(errc::corrupt,
                fmt::format("scope {} has no entry of its revision {}",
                            scope_id,
                            *expected));
  return entry;
}

// Files of older layouts have no entries of the changes that were folded then,
// up to revision `until`. Searches the log for them, from its beginning.
void sqlite_reader::replay_unlisted(const read_scope& found,
                                    scope where,
                                    std::int64_t until,
                                    std::int64_t last,
                                    sqlite_snapshot& state) {
  if (until == 0)
    return;
  auto unlisted = database_.prepare(fmt::format(
    "SELECT id FROM log WHERE {0}=?1 AND {0}_revision<=?2 AND id<=?3"
    " ORDER BY id LIMIT ?2",
    where == scope::user ? "user" : "app"));
  for (auto rows = unlisted.rows(found.id, until, last); rows.next();)
    replay_shared(rows.integer(0), found, where, state);
}

void sqlite_reader::replay_shared(std::int64_t log,
                                  const read_scope& found,
                                  scope where,
                                  sqlite_snapshot& state) {
  auto rows = shared_change_.rows(log);
  if (!rows.next())
    throw error(errc::corrupt,
                fmt::format("row {} of the log is missing", log));
  rows.expect_sound(5, "log");
  const int column = where == scope::user ? 1 : 3;
  if (rows.integer(column) != found.id
      || rows.integer(column + 1) != state.revision + 1)
    throw error(errc::corrupt,
                fmt::format("row {} of the log is another change", log));
  ++state.revision;
  apply(decode_delta(rows.text(0)).value(), where, state.keys);
}

std::vector<event_ptr> sqlite_reader::load_events(const session_key& key,
                                                  std::uint64_t first,
                                                  std::uint64_t last) {
  const moment now(*this);
  std::vector<event_ptr> loaded;
  const auto parts = find_parts(key);
  if (!parts)
    return loaded;
  const auto kept_from
    = static_cast<std::uint64_t>(parts->front().scope.kept_from);
  if (kept_from > 0 && first <= kept_from)
    throw detail::trimmed_event(key, first, kept_from);
  for (auto part = parts->rbegin(); part != parts->rend(); ++part)
    load_events(*part, bounded(first), bounded(last), loaded);
  return loaded;
}

void sqlite_reader::load_events(const event_part& part,
                                std::int64_t first,
                                std::int64_t last,
                                std::vector<event_ptr>& loaded) {
  const auto& session = part.scope;
  const auto from = std::max(first, session.first + 1);
  const auto to = std::min(last, part.last);
  if (from > to)
    return;
  auto rows = entries_between_.rows(session.id, from, to);
  for (auto number = from; number <= std::min(to, session.folded_revision);
       ++number) {
    next_entry(rows, number);
    if (!rows.is_null(2))
      loaded.push_back(read_event(rows.integer(1), session.id, number));
  }
  for (const auto& change : session.pending)
    if (change.id_hash && change.revision >= from && change.revision <= to)
      loaded.push_back(read_event(change.row, session.id, change.revision));
}

// -- events by id ----

std::vector<event_ptr>
sqlite_reader::find_events(const session_key& key,
                           std::span<const std::string> ids) {
  const moment now(*this);
  std::vector<event_ptr> events(ids.size());
  if (const auto parts = find_parts(key))
    for (const auto& part : *parts)
      find_events(part, parts->front().scope.kept_from, ids, events);
  return events;
}

void sqlite_reader::find_events(const event_part& part,
                                std::int64_t kept_from,
                                std::span<const std::string> ids,
                                std::vector<event_ptr>& events) {
  const auto& session = part.scope;
  std::unordered_multimap<std::int64_t, std::size_t> wanted;
  for (std::size_t index = 0; index < ids.size(); ++index)
    if (!events[index])
      wanted.emplace(id_hash(ids[index]), index);
  // Different ids may have the same hash, so the id decides.
  const auto take
    = [&](std::int64_t hash, std::int64_t log, std::int64_t number) {
        if (number > part.last || number <= kept_from)
          return;
        for (auto [next, end] = wanted.equal_range(hash); next != end; ++next) {
          auto& event = events[next->second];
          if (event)
            continue;
          auto read = read_event(log, session.id, number);
          if (read->id == ids[next->second])
            event = std::move(read);
        }
      };
  for (const auto& change : session.pending)
    if (change.id_hash)
      take(*change.id_hash, change.row, change.revision);
  for (auto rows = fresh_ids_.rows(session.id); rows.next();) {
    if (!wanted.contains(rows.integer(2)))
      continue;
    rows.expect_sound(3, "entries");
    take(rows.integer(2), rows.integer(1), rows.integer(0));
  }
  const auto look_into = [&](std::int64_t block, std::int64_t hash) {
    std::vector<numbered_row> same;
    for (auto rows = settled_ids_.rows(session.id, block, hash); rows.next();) {
      rows.expect_sound(3, "entries");
      same.push_back({session.id, rows.integer(0), rows.integer(1), 0});
    }
    for (const auto& each : same)
      take(hash, each.log, each.number);
  };
  // Retries usually come in the order of the events, so the block of the
  // previous id is searched first. Its pages are in memory already, and other
  // blocks are read only if the id is not in it.
  const auto newest_block = std::min(session.folded_revision, part.last) >> 16;
  auto likely = newest_block;
  for (std::size_t index = 0; index < ids.size(); ++index) {
    if (events[index])
      continue;
    const auto hash = id_hash(ids[index]);
    look_into(likely, hash);
    for (auto block = newest_block;
         block >= session.first >> 16 && !events[index];
         --block) {
      if (block == likely)
        continue;
      look_into(block, hash);
      if (events[index])
        likely = block;
    }
  }
}

// -- lists ----

std::vector<session_row> sqlite_reader::list(const row_query& query) {
  const moment now(*this);
  return rows_of(query.app,
                 sessions_.page(query, newest_, log_.folded(), unseen_));
}

std::vector<session_row> sqlite_reader::list_by_name(const name_query& query) {
  const moment now(*this);
  return rows_of(query.app, sessions_.names(query));
}

std::vector<std::string> sqlite_reader::list_users(const user_query& query) {
  const moment now(*this);
  std::vector<std::string> names;
  auto next = std::optional(query.behind);
  while (names.size() < query.limit
         && (next = sessions_.next_user(query.app, *next)))
    names.push_back(*next);
  return names;
}

std::vector<std::string> sqlite_reader::list_apps(const app_query& query) {
  const moment now(*this);
  const auto has_keys = [this](const owner_name& app) {
    const auto scope = read(app);
    return scope && scope->keys.size() > 0;
  };
  std::vector<std::string> names;
  auto next = std::optional(query.behind);
  while (names.size() < query.limit && (next = sessions_.next_app(*next)))
    if (sessions_.next_user(*next, {}) || has_keys({*next}))
      names.push_back(*next);
  return names;
}

std::vector<open_run> sqlite_reader::list_runs(const run_query& query) {
  const moment now(*this);
  return runs_.list(query);
}

// Reads the states of listed sessions; called inside a moment.
std::vector<session_row>
sqlite_reader::rows_of(const std::string& app_id,
                       const std::vector<listed_session>& found) {
  std::vector<session_row> page;
  if (found.empty())
    return page;
  const auto keys_of = [this](const owner_name& owner) {
    auto scope = read(owner);
    if (!scope)
      throw error(
        errc::corrupt,
        fmt::format("{} is missing, but has sessions", to_string(owner)));
    return std::move(scope->keys);
  };
  const auto app = keys_of({app_id});
  std::unordered_map<std::string, state_map> users;
  for (const auto& each : found) {
    auto user = users.find(each.user);
    if (user == users.end())
      user = users.emplace(each.user, keys_of({app_id, each.user})).first;
    auto session = read({app_id, each.user, each.session});
    if (!session || session->id != each.id)
      throw error(
        errc::corrupt,
        fmt::format("session {} is listed, but not found", each.session));
    page.push_back({{app_id, each.user, each.session},
                    std::move(session->keys),
                    user->second,
                    app,
                    static_cast<std::uint64_t>(session->revision),
                    session->last_update_time});
  }
  return page;
}

} // namespace troupe
