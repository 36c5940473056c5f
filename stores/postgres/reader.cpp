#include "troupe/stores/postgres/reader.hpp"

#include "troupe/core/session.hpp"
#include "troupe/stores/postgres/event.hpp"
#include "troupe/stores/postgres/schema.hpp"
#include "troupe/stores/shared/stored_event.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <utility>

namespace troupe {

namespace {

// Kinds of rows in the answer of a load. The other columns depend on it:
//   part  | n1        | n2       | n3      | t1  | t2    | t3
//   scope |           | revision | updated |
//   state |           |          |         | key | value |
//   tail  | revision  |          | time    |     | delta |
//   event | revision  |          | time    | id  | delta | body
//   id    | revision  | hash     |
//   span  | rows      | first    | last    |
// `rows` is the number of log rows of the session from revision `first` on,
// `last` its last revision. `first` is the first loaded revision, or that of
// the creation if the session has fewer events than may be loaded.
enum load_part : std::int64_t {
  part_scope,
  part_state,
  part_tail,
  part_event,
  part_id,
  part_span
};

// The scope that is loaded.
#define TROUPE_ME(SESSION)                                                     \
  "WITH me AS MATERIALIZED ("                                                  \
  "  SELECT id, revision, updated FROM scopes"                                 \
  "    WHERE app = $1::text AND usr = $2::text AND session = " SESSION ")"

// Its first rows: the scope and its state.
#define TROUPE_SCOPE_AND_STATE                                                 \
  " SELECT 0 AS part, id AS n1, revision AS n2, updated AS n3,"                \
  "        NULL::text AS t1, NULL::text AS t2, NULL::text AS t3"               \
  "   FROM me"                                                                 \
  " UNION ALL"                                                                 \
  " SELECT 1, 0, 0, 0, key, value, NULL"                                       \
  "   FROM state WHERE scope = (SELECT id FROM me)"                            \
  " UNION ALL"

constexpr postgres_statement load_owner
  = {"load_owner", TROUPE_ME("''") TROUPE_SCOPE_AND_STATE R"(
SELECT 2, CASE WHEN $2::text <> '' THEN user_revision ELSE app_revision END,
       0, time, NULL, delta, NULL
  FROM change_log
  WHERE id > (SELECT id FROM folded)
    AND CASE WHEN $2::text <> '' THEN usr ELSE app END = (SELECT id FROM me)
)"};

constexpr postgres_statement load_session
  = {"load_session", TROUPE_ME("$3::text") R"(,
said AS MATERIALIZED (
  SELECT session_revision, time, event, delta, body
    FROM change_log
    WHERE session = (SELECT id FROM me) AND event_hash IS NOT NULL
    ORDER BY session_revision DESC LIMIT $4::bigint),
ids AS MATERIALIZED (
  SELECT session_revision, event_hash
    FROM change_log
    WHERE session = (SELECT id FROM me) AND event_hash IS NOT NULL
    ORDER BY session_revision DESC LIMIT $5::bigint),
reach AS MATERIALIZED (
  SELECT CASE WHEN (SELECT count(*) FROM said) < $4::bigint
                OR (SELECT count(*) FROM ids) < $5::bigint THEN 0
              ELSE least((SELECT min(session_revision) FROM said),
                         (SELECT min(session_revision) FROM ids)) END AS first)
)" TROUPE_SCOPE_AND_STATE R"(
SELECT 2, session_revision, 0, time, NULL, delta, NULL
  FROM change_log
  WHERE session = (SELECT id FROM me)
    AND session_revision > (SELECT revision FROM me)
UNION ALL
SELECT 3, session_revision, 0, time, event, delta, body FROM said
UNION ALL
SELECT 4, session_revision, event_hash, 0, NULL, NULL, NULL FROM ids
UNION ALL
SELECT 5, count(*), (SELECT first FROM reach),
       (SELECT session_revision FROM change_log
          WHERE session = (SELECT id FROM me)
          ORDER BY session_revision DESC LIMIT 1), NULL, NULL, NULL
  FROM change_log
  WHERE session = (SELECT id FROM me)
    AND session_revision >= (SELECT first FROM reach)
)"};

// Returns the newest revision, then every row of the range.
constexpr postgres_statement load_range
  = {"load_range", TROUPE_ME("$3::text") R"(
SELECT greatest(revision,
                (SELECT session_revision FROM change_log WHERE session = me.id
                   ORDER BY session_revision DESC LIMIT 1)) AS revision,
       NULL::bigint AS time, NULL::text AS event, NULL::text AS delta,
       NULL::text AS body, NULL::integer AS event_hash
  FROM me
UNION ALL
(SELECT session_revision, time, event, delta, body, event_hash
  FROM change_log
  WHERE session = (SELECT id FROM me)
    AND session_revision BETWEEN $4::bigint AND $5::bigint
  ORDER BY session_revision))"};

// Returns the scope and its newest revision, then every change of the range.
constexpr postgres_statement load_changes
  = {"load_changes", TROUPE_ME("$3::text") R"(
SELECT greatest(revision,
                (SELECT session_revision FROM change_log WHERE session = me.id
                   ORDER BY session_revision DESC LIMIT 1)) AS revision,
       id AS time, NULL::text AS delta
  FROM me
UNION ALL
(SELECT session_revision, time, delta
  FROM change_log
  WHERE session = (SELECT id FROM me)
    AND session_revision BETWEEN $4::bigint AND $5::bigint
  ORDER BY session_revision))"};

// Returns the scope, then the events, newest first.
constexpr postgres_statement load_events_before
  = {"load_events_before", TROUPE_ME("$3::text") R"(
SELECT id AS session_revision, NULL::bigint AS time, NULL::text AS event,
       NULL::text AS delta, NULL::text AS body
  FROM me
UNION ALL
(SELECT session_revision, time, event, delta, body
  FROM change_log
  WHERE session = (SELECT id FROM me) AND event_hash IS NOT NULL
    AND session_revision <= $4::bigint
  ORDER BY session_revision DESC LIMIT $5::bigint))"};

#undef TROUPE_ME
#undef TROUPE_SCOPE_AND_STATE

// Probes the index of ids once per id. OFFSET stops the planner from joining
// the other way round, which would read the whole session.
constexpr postgres_statement find_ids = {"find_ids", R"(
SELECT n.place, l.session_revision, l.time, l.event, l.delta, l.body
  FROM unnest($4::bigint[], $5::text[]) WITH ORDINALITY
    AS n(event_hash, event, place)
  CROSS JOIN LATERAL (
    SELECT * FROM change_log AS c
      WHERE c.session = (SELECT id FROM scopes WHERE app = $1::text
                           AND usr = $2::text AND session = $3::text)
        AND c.event_hash = n.event_hash::integer AND c.event = n.event
      OFFSET 0) AS l
  ORDER BY l.session_revision)"};

std::string describe(const owner_name& owner) {
  return fmt::format("load {}", to_string(owner));
}

postgres_parameters names_of(const owner_name& session) {
  return postgres_parameters()
    .add(session.app)
    .add(session.user)
    .add(session.session);
}

error gap(const owner_name& owner, std::int64_t from, std::int64_t to) {
  return {
    errc::corrupt,
    fmt::format(
      "{}: its log goes from revision {} to {}", describe(owner), from, to)};
}

// Checks that the log has one row per revision of the session, up to the last.
result<void> judge_span(const postgres_rows& rows,
                        int row,
                        std::int64_t revision,
                        const owner_name& owner) {
  const auto count = rows.number(row, 1);
  const auto first = rows.number(row, 2);
  const auto last = rows.is_null(row, 3) ? -1 : rows.number(row, 3);
  if (last != revision)
    return error(errc::corrupt,
                 fmt::format("{}: it is at revision {}, and its log ends at {}",
                             describe(owner),
                             revision,
                             last));
  if (count > 0 && count != last - first + 1)
    return error(
      errc::corrupt,
      fmt::format("{}: its log has {} rows of the revisions {} to {}",
                  describe(owner),
                  count,
                  first,
                  last));
  return {};
}

result<std::optional<stored_session>> read_scope(const postgres_rows& rows,
                                                 const owner_name& owner) {
  std::optional<stored_session> loaded;
  std::vector<std::pair<std::int64_t, int>> tail;
  std::optional<int> span;
  // Lowest revision so far of each part, whose rows come newest first.
  std::array<std::int64_t, part_span + 1> above{};
  above.fill(std::numeric_limits<std::int64_t>::max());
  for (int i = 0; i < rows.size(); ++i) {
    const auto part = rows.number(i, 0);
    if (part == part_event || part == part_id) {
      auto& last = above.at(static_cast<std::size_t>(part));
      if (rows.number(i, 1) >= last)
        return gap(owner, last, rows.number(i, 1));
      last = rows.number(i, 1);
    }
    switch (part) {
    case part_scope:
      loaded.emplace();
      loaded->incarnation = static_cast<std::uint64_t>(rows.number(i, 1));
      // A new session is at revision -1 until its creation is replayed.
      loaded->scope.revision = static_cast<std::uint64_t>(rows.number(i, 2));
      loaded->last_update_time
        = rows.number(i, 2) < 0 ? timestamp::min() : rows.time(i, 3);
      break;
    case part_state: {
      auto data = decode_value(rows.text(i, 5));
      if (!data)
        return unreadable(describe(owner), data.error());
      loaded->scope.keys.set(rows.text(i, 4), *std::move(data));
      break;
    }
    case part_tail:
      tail.emplace_back(rows.number(i, 1), i);
      break;
    case part_event: {
      auto said = read_postgres_event(rows, i, 3);
      if (!said)
        return unreadable(describe(owner), said.error());
      loaded->events.push_back(*std::move(said));
      break;
    }
    case part_id:
      loaded->id_hashes.push_back(
        static_cast<std::uint32_t>(rows.number(i, 2)));
      break;
    case part_span:
      span = i;
      break;
    default:
      break;
    }
  }
  if (!loaded)
    return loaded;
  std::ranges::sort(tail);
  auto reached = static_cast<std::int64_t>(loaded->scope.revision);
  for (const auto& [revision, row] : tail) {
    if (revision != reached + 1)
      return gap(owner, reached, revision);
    reached = revision;
    if (auto replayed
        = replay_delta(loaded->scope, rows.text(row, 5), owner.where());
        !replayed)
      return unreadable(describe(owner), replayed.error());
    loaded->scope.revision = static_cast<std::uint64_t>(revision);
    loaded->last_update_time
      = std::max(loaded->last_update_time, rows.time(row, 3));
  }
  if (span)
    if (auto whole = judge_span(rows, *span, reached, owner); !whole)
      return whole.error();
  std::ranges::reverse(loaded->events);
  std::ranges::reverse(loaded->id_hashes);
  return loaded;
}

} // namespace

result<std::optional<stored_session>>
load_postgres(postgres_connection& connection,
              postgres_history& history,
              const owner_name& owner,
              const load_options& options) {
  const auto rows
    = owner.where() == scope::session
        ? history.read(connection,
                       load_session,
                       names_of(owner)
                         .add_limit(options.events_max)
                         .add_limit(options.ids_max),
                       describe(owner))
        : history.read(connection,
                       load_owner,
                       postgres_parameters().add(owner.app).add(owner.user),
                       describe(owner));
  if (!rows)
    return rows.error();
  return read_scope(*rows, owner);
}

namespace {

// The state of a session at an earlier revision, computed page by page. Changes
// up to a revision never change, so the pages need not be read at one moment.
class earlier_replay {
public:
  earlier_replay(const owner_name& owner, std::int64_t goal)
    : owner_(owner),
      goal_(goal) {}

  std::int64_t first() const noexcept { return reached_ + 1; }

  std::int64_t last() const noexcept {
    return std::min(goal_, reached_ + rows_at_once);
  }

  bool is_done() const noexcept { return reached_ == goal_; }

  bool is_of(std::int64_t scope_id) const noexcept {
    return scope_ == scope_id;
  }

  stored_session take() { return std::move(state_); }

  // Returns false if the session does not exist, or is another one now.
  result<bool> add(const postgres_rows& rows) {
    if (rows.size() == 0 || (scope_ && *scope_ != rows.number(0, 1)))
      return false;
    scope_ = rows.number(0, 1);
    if (rows.number(0, 0) < goal_)
      return detail::no_revision({owner_.app, owner_.user, owner_.session},
                                 static_cast<std::uint64_t>(goal_),
                                 static_cast<std::uint64_t>(rows.number(0, 0)));
    const auto end = last();
    for (int i = 1; i < rows.size(); ++i) {
      if (rows.number(i, 0) != reached_ + 1)
        return gap(owner_, reached_, rows.number(i, 0));
      if (auto replayed
          = replay_delta(state_.scope, rows.text(i, 2), scope::session);
          !replayed)
        return unreadable(describe(owner_), replayed.error());
      ++reached_;
      state_.last_update_time
        = reached_ == 0 ? rows.time(i, 1)
                        : std::max(state_.last_update_time, rows.time(i, 1));
    }
    if (reached_ != end)
      return gap(owner_, reached_, end + 1);
    state_.scope.revision = static_cast<std::uint64_t>(reached_);
    return true;
  }

private:
  static constexpr std::int64_t rows_at_once = 8'192;

  const owner_name& owner_; // Outlives the replay.
  const std::int64_t goal_;
  std::int64_t reached_ = -1;
  std::optional<std::int64_t> scope_;
  stored_session state_;
};

} // namespace

result<std::optional<stored_session>>
load_postgres_at(postgres_connection& connection,
                 postgres_history& history,
                 const session_key& key,
                 std::uint64_t revision,
                 std::size_t events_max) {
  const owner_name owner{key.app, key.user, key.id};
  const auto goal = static_cast<std::int64_t>(std::min<std::uint64_t>(
    revision, std::numeric_limits<std::int64_t>::max()));
  earlier_replay replay(owner, goal);
  while (!replay.is_done()) {
    const auto rows
      = history.read(connection,
                     load_changes,
                     names_of(owner).add(replay.first()).add(replay.last()),
                     describe(owner));
    if (!rows)
      return rows.error();
    const auto is_there = replay.add(*rows);
    if (!is_there)
      return is_there.error();
    if (!*is_there)
      return std::nullopt;
  }
  auto past = replay.take();
  const auto rows
    = history.read(connection,
                   load_events_before,
                   names_of(owner).add(goal).add_limit(events_max),
                   describe(owner));
  if (!rows)
    return rows.error();
  if (rows->size() == 0 || !replay.is_of(rows->number(0, 0)))
    return std::nullopt;
  for (int i = rows->size() - 1; i > 0; --i) {
    auto said = read_postgres_event(*rows, i, 1);
    if (!said)
      return unreadable(describe(owner), said.error());
    past.events.push_back(*std::move(said));
  }
  return past;
}

result<std::vector<event_ptr>>
load_postgres_events(postgres_connection& connection,
                     postgres_history& history,
                     const owner_name& owner,
                     std::uint64_t first,
                     std::uint64_t last) {
  constexpr std::uint64_t last_max = std::numeric_limits<std::int64_t>::max();
  const auto from = static_cast<std::int64_t>(std::min(first, last_max));
  const auto to = static_cast<std::int64_t>(std::min(last, last_max));
  const auto rows = history.read(
    connection, load_range, names_of(owner).add(from).add(to), describe(owner));
  if (!rows)
    return rows.error();
  std::vector<event_ptr> loaded;
  if (rows->size() == 0)
    return loaded;
  loaded.reserve(static_cast<std::size_t>(rows->size()));
  const auto newest = rows->number(0, 0);
  auto reached = from - 1;
  for (int i = 1; i < rows->size(); ++i) {
    const auto revision = rows->number(i, 0);
    if (revision != reached + 1)
      return gap(owner, reached, revision);
    reached = revision;
    if (rows->is_null(i, 5))
      continue;
    auto said = read_postgres_event(*rows, i, 1);
    if (!said)
      return unreadable(describe(owner), said.error());
    loaded.push_back(*std::move(said));
  }
  if (const auto expected = std::min(newest, to); reached < expected)
    return error(errc::corrupt,
                 fmt::format("{}: its log ends at revision {} instead of {}",
                             describe(owner),
                             reached,
                             expected));
  return loaded;
}

result<std::vector<event_ptr>>
find_postgres_events(postgres_connection& connection,
                     postgres_history& history,
                     const owner_name& owner,
                     std::span<const std::string> ids) {
  std::vector<std::int64_t> hashes;
  std::vector<std::string> stored;
  for (const auto& id : ids) {
    hashes.push_back(id_hash(id));
    if (auto appended = append_postgres_id(stored.emplace_back(), id);
        !appended)
      return appended.error();
  }
  const std::vector<std::string_view> texts(stored.begin(), stored.end());
  const auto rows = history.read(connection,
                                 find_ids,
                                 names_of(owner).add(hashes).add(texts),
                                 describe(owner));
  if (!rows)
    return rows.error();
  // Older programs could store an event twice; the newest one is returned.
  std::vector<event_ptr> found(ids.size());
  for (int i = 0; i < rows->size(); ++i) {
    auto said = read_postgres_event(*rows, i, 2);
    if (!said)
      return unreadable(describe(owner), said.error());
    found[static_cast<std::size_t>(rows->number(i, 0) - 1)] = *std::move(said);
  }
  return found;
}

} // namespace troupe
