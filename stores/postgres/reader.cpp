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
//   scope | id        | revision | updated |
//   state |           |          |         | key | value |
//   known | row       |
//   tail  | revision  | row      | time    |     | delta |
//   event | revision  |          | time    | id  | delta | body
//   id    | revision  | hash     |
//   span  | rows      | first    | last    |
//   past  | scope     | revision |
//   first | revision  |
// `rows` is the number of log rows of the session from revision `first` on,
// `last` its last revision. `first` is the first loaded revision, or that of
// the creation if the session has fewer events than may be loaded. Of a fork,
// these are its own rows; `past` leads to those of its parent. `known` comes in
// place of the state: the tail begins behind the row that the load has named.
enum load_part : std::int64_t {
  part_scope,
  part_state,
  part_tail,
  part_event,
  part_id,
  part_span,
  part_past,
  part_first,
  part_known
};

// Rules for trimmed sessions. Rows up to the first revision may be there or
// not, so no statement depends on them. A load that reads them in more than one
// statement looks in the end whether the first revision is still the same: a
// trim may have taken the event from a row that was not read yet.

// The scope that is loaded.
#define TROUPE_ME(SESSION)                                                     \
  "WITH me AS MATERIALIZED ("                                                  \
  "  SELECT id, revision, updated, past, past_revision,"                       \
  "         coalesce((SELECT f.revision FROM first_states AS f"                \
  "           WHERE f.scope = scopes.id), 0) AS first FROM scopes"             \
  "    WHERE app = $1::text AND usr = $2::text AND session = " SESSION ")"

// Its first rows: the scope and its state.
#define TROUPE_SCOPE                                                           \
  " SELECT 0 AS part, id AS n1, revision AS n2, updated AS n3,"                \
  "        NULL::text AS t1, NULL::text AS t2, NULL::text AS t3"               \
  "   FROM me"                                                                 \
  " UNION ALL"

#define TROUPE_SCOPE_AND_STATE                                                 \
  TROUPE_SCOPE                                                                 \
  " SELECT 1, 0, 0, 0, key, value, NULL"                                       \
  "   FROM state WHERE scope = (SELECT id FROM me)"                            \
  " UNION ALL"

// $3 is the id of the scope that the caller knows up to row $4, or 0. Rows that
// are folded may have been deleted, so the row counts only if it is not.
constexpr postgres_statement load_owner = {"load_owner", TROUPE_ME("''") R"(,
known AS MATERIALIZED (
  SELECT $4::bigint AS row FROM me, folded
    WHERE me.id = $3::bigint AND $4::bigint >= folded.id)
)" TROUPE_SCOPE R"(
SELECT 1, 0, 0, 0, key, value, NULL
  FROM state WHERE scope = (SELECT id FROM me) 
    AND NOT EXISTS (SELECT FROM known)
UNION ALL
SELECT 8, row, 0, 0, NULL, NULL, NULL FROM known
UNION ALL
SELECT 2, CASE WHEN $2::text <> '' THEN user_revision ELSE app_revision END,
       id, time, NULL, delta, NULL
  FROM change_log
  WHERE id > coalesce((SELECT row FROM known), (SELECT id FROM folded))
    AND CASE WHEN $2::text <> '' THEN usr ELSE app END = (SELECT id FROM me)
)"};

constexpr postgres_statement load_session
  = {"load_session", TROUPE_ME("$3::text") R"(,
said AS MATERIALIZED (
  SELECT session_revision, time, event, delta, body
    FROM change_log
    WHERE session = (SELECT id FROM me) AND event_hash IS NOT NULL
      AND session_revision > (SELECT greatest(first, $6::bigint) FROM me)
    ORDER BY session_revision DESC LIMIT $4::bigint),
ids AS MATERIALIZED (
  SELECT session_revision, event_hash
    FROM change_log
    WHERE session = (SELECT id FROM me) AND event_hash IS NOT NULL
      AND session_revision > (SELECT greatest(first, $6::bigint) FROM me)
    ORDER BY session_revision DESC LIMIT $5::bigint),
reach AS MATERIALIZED (
  SELECT CASE WHEN (SELECT count(*) FROM said) < $4::bigint
                OR (SELECT count(*) FROM ids) < $5::bigint
              THEN (SELECT CASE WHEN greatest(first, $6::bigint) > 0
                                THEN greatest(first, $6::bigint) + 1
                                ELSE 0 END
                      FROM me)
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
UNION ALL
SELECT 6, past, past_revision, 0, NULL, NULL, NULL
  FROM me WHERE past IS NOT NULL
UNION ALL
SELECT 7, first, 0, 0, NULL, NULL, NULL FROM me WHERE first > 0
)"};

// Returns the newest revision, the past, the id and the first revision, then
// every row of the range.
constexpr postgres_statement load_range
  = {"load_range", TROUPE_ME("$3::text") R"(
SELECT greatest(revision,
                (SELECT session_revision FROM change_log WHERE session = me.id
                   ORDER BY session_revision DESC LIMIT 1)) AS revision,
       NULL::bigint AS time, NULL::text AS event, NULL::text AS delta,
       NULL::text AS body, NULL::integer AS event_hash, past, past_revision,
       id, first
  FROM me
UNION ALL
(SELECT session_revision, time, event, delta, body, event_hash,
        NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint
  FROM change_log
  WHERE session = (SELECT id FROM me)
    AND session_revision BETWEEN $4::bigint AND $5::bigint
  ORDER BY session_revision))"};

// A session by its names.
constexpr postgres_statement find_session
  = {"find_session", TROUPE_ME("$3::text") R"(
SELECT id, past, past_revision,
       greatest(revision,
                (SELECT session_revision FROM change_log WHERE session = me.id
                   ORDER BY session_revision DESC LIMIT 1)),
       first
  FROM me)"};

#undef TROUPE_ME
#undef TROUPE_SCOPE_AND_STATE

// The same by its id, also without names.
constexpr postgres_statement find_scope = {"find_scope", R"(
SELECT id, past, past_revision,
       greatest(revision,
                (SELECT session_revision FROM change_log WHERE session = s.id
                   ORDER BY session_revision DESC LIMIT 1)),
       0::bigint
  FROM scopes AS s WHERE id = $1::bigint)"};

// The first revision of a session.
constexpr postgres_statement find_first = {"find_first", R"(
SELECT coalesce((SELECT f.revision FROM first_states AS f
                   WHERE f.scope = s.id), 0)
  FROM scopes AS s WHERE s.id = $1::bigint AND s.app <> '')"};

// The keys of a session at its first revision, and the newest time up to there.
constexpr postgres_statement load_first
  = {"load_first",
     "SELECT updated, delta FROM first_states"
     " WHERE scope = $1::bigint AND revision = $2::bigint"};

// Returns every row of the range; those from revision $4 on with their events.
constexpr postgres_statement load_rows = {"load_rows", R"(
SELECT session_revision, event_hash,
       CASE WHEN session_revision >= $4::bigint THEN time END,
       CASE WHEN session_revision >= $4::bigint THEN event END,
       CASE WHEN session_revision >= $4::bigint THEN delta END,
       CASE WHEN session_revision >= $4::bigint THEN body END
  FROM change_log
  WHERE session = $1::bigint
    AND session_revision BETWEEN $2::bigint AND $3::bigint
  ORDER BY session_revision)"};

// Returns every change of the range.
constexpr postgres_statement load_changes = {"load_changes", R"(
SELECT session_revision, time, delta
  FROM change_log
  WHERE session = $1::bigint
    AND session_revision BETWEEN $2::bigint AND $3::bigint
  ORDER BY session_revision)"};

// Probes the index of ids once per id, behind the first revision of session $5.
//  OFFSET stops the planner from joining
// the other way round, which would read the whole session.
constexpr postgres_statement find_ids = {"find_ids", R"(
SELECT n.place, l.session_revision, l.time, l.event, l.delta, l.body
  FROM unnest($3::bigint[], $4::text[]) WITH ORDINALITY
    AS n(event_hash, event, place)
  CROSS JOIN LATERAL (
    SELECT * FROM change_log AS c
      WHERE c.session = $1::bigint AND c.session_revision <= $2::bigint
        AND c.session_revision > coalesce((SELECT f.revision
              FROM first_states AS f WHERE f.scope = $5::bigint), 0)
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

// The folded revision of a scope. A session whose creation at revision N is not
// folded yet has -1 - N; then the revision before the creation.
std::int64_t revision_of(std::int64_t stored) {
  return stored < 0 ? -stored - 2 : stored;
}

error gap(const owner_name& owner, std::int64_t from, std::int64_t to) {
  return {
    errc::corrupt,
    fmt::format(
      "{}: its log goes from revision {} to {}", describe(owner), from, to)};
}

// A scope that has events of a session: those behind its creation, up to number
// `last`.
struct event_part {
  std::int64_t scope = 0;
  std::int64_t last = 0;
};

struct loaded_scope {
  stored_session session;
  std::optional<event_part> past; // Of a fork.
  // Of a user or an app: it goes on from the known state. Number and last row
  // of the changes that are not folded, or not known.
  bool is_known = false;
  std::size_t changes = 0;
  std::int64_t last_row = 0;
};

// Checks that the log has one row per revision of the session, from its
// creation up to the last. Rows up to revision `kept_from` of a trimmed session
// may be missing.
result<void> judge_span(const postgres_rows& rows,
                        int row,
                        std::int64_t created,
                        std::int64_t kept_from,
                        std::int64_t revision,
                        const owner_name& owner) {
  const auto count = rows.number(row, 1);
  const auto first = std::max(rows.number(row, 2), created);
  const auto newest = rows.is_null(row, 3) ? -1 : rows.number(row, 3);
  const auto last = kept_from > 0 ? std::max(newest, kept_from) : newest;
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

// `known` is the state that the statement may go on from.
result<std::optional<loaded_scope>> read_scope(const postgres_rows& rows,
                                               const owner_name& owner,
                                               const hot_states::state* known
                                               = nullptr) {
  std::optional<loaded_scope> found;
  stored_session* loaded = nullptr;
  std::vector<std::pair<std::int64_t, int>> tail;
  std::optional<int> span;
  std::int64_t reached = 0;
  // Lowest revision so far of each part, whose rows come newest first.
  std::array<std::int64_t, part_first + 1> above{};
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
      loaded = &found.emplace().session;
      loaded->incarnation = static_cast<std::uint64_t>(rows.number(i, 1));
      reached = revision_of(rows.number(i, 2));
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
    case part_past:
      found->past = event_part{rows.number(i, 1), rows.number(i, 2)};
      break;
    case part_first:
      loaded->first_revision = static_cast<std::uint64_t>(rows.number(i, 1));
      break;
    case part_known:
      found->is_known = true;
      break;
    default:
      break;
    }
  }
  if (loaded == nullptr)
    return found;
  if (found->is_known) {
    loaded->scope.keys = known->keys;
    reached = known->revision;
    found->last_row = known->row;
  }
  std::ranges::sort(tail);
  found->changes = tail.size();
  loaded->scope.revision = static_cast<std::uint64_t>(reached);
  for (const auto& [revision, row] : tail) {
    if (revision != reached + 1)
      return gap(owner, reached, revision);
    reached = revision;
    if (auto replayed
        = replay_delta(loaded->scope, rows.text(row, 5), owner.where());
        !replayed)
      return unreadable(describe(owner), replayed.error());
    loaded->scope.revision = static_cast<std::uint64_t>(revision);
    found->last_row = rows.number(row, 2);
    loaded->last_update_time
      = std::max(loaded->last_update_time, rows.time(row, 3));
  }
  if (span)
    if (auto whole
        = judge_span(rows,
                     *span,
                     found->past ? found->past->last : 0,
                     static_cast<std::int64_t>(loaded->first_revision),
                     reached,
                     owner);
        !whole)
      return whole.error();
  std::ranges::reverse(loaded->events);
  std::ranges::reverse(loaded->id_hashes);
  return found;
}

// -- the past of forks --------------------------------------------------------

// Rows that one statement reads.
constexpr std::int64_t past_rows_at_once = 8'192;

// A fork may be removed between two statements, and its past with it, or a
// session may be trimmed. Then all is read again.
constexpr int tries_max = 3;

error missing_past(const owner_name& owner) {
  return {errc::corrupt,
          fmt::format("{}: its past is missing, or not all of it is there",
                      describe(owner))};
}

// A scope of a session, and the past that it goes on from.
struct found_scope {
  std::int64_t id = 0;
  std::int64_t newest = 0;
  std::optional<event_part> past;
  std::int64_t kept_from = 0; // Of a session that is found by its names.

  std::int64_t created() const noexcept { return past ? past->last : 0; }
};

result<std::optional<found_scope>>
find_one(postgres_connection& connection,
         postgres_history& history,
         const postgres_statement& statement,
         const postgres_parameters& parameters,
         const owner_name& owner) {
  const auto rows
    = history.read(connection, statement, parameters, describe(owner));
  if (!rows)
    return rows.error();
  if (rows->size() == 0)
    return std::nullopt;
  found_scope found{
    rows->number(0, 0), rows->number(0, 3), std::nullopt, rows->number(0, 4)};
  if (!rows->is_null(0, 1))
    found.past = event_part{rows->number(0, 1), rows->number(0, 2)};
  return found;
}

// Returns true if the session is still there, and its first revision is the
// same as when the load began.
result<bool> is_unchanged(postgres_connection& connection,
                          postgres_history& history,
                          std::int64_t session,
                          std::int64_t kept_from,
                          const owner_name& owner) {
  const auto rows = history.read(connection,
                                 find_first,
                                 postgres_parameters().add(session),
                                 describe(owner));
  if (!rows)
    return rows.error();
  return rows->size() > 0 && rows->number(0, 0) == kept_from;
}

// Reads the events of a session from the newest back, scope by scope, down to
// the one behind its first revision.
class past_reader {
public:
  past_reader(postgres_connection& connection,
              postgres_history& history,
              const owner_name& owner,
              std::int64_t kept_from)
    : connection_(connection),
      history_(history),
      owner_(owner),
      kept_from_(kept_from) {}

  // Goes to the newest event that is in `part`, or to the end.
  void go_to(const std::optional<event_part>& part) {
    part_ = part;
    scope_.reset();
  }

  // Returns true if all events are read.
  bool is_done() const noexcept { return !part_ || part_->last <= kept_from_; }

  // Finds the scope that has the next events. Returns false if it is missing.
  result<bool> find() {
    while (!is_done()) {
      auto found = find_one(connection_,
                            history_,
                            find_scope,
                            postgres_parameters().add(part_->scope),
                            owner_);
      if (!found)
        return found.error();
      if (!*found)
        return false;
      scope_ = *found;
      // A fork that is kept for its own past alone may have no rows.
      if (part_->last > scope_->created())
        return scope_->newest >= part_->last;
      part_ = scope_->past ? std::optional(event_part{
                scope_->past->scope, std::min(part_->last, scope_->past->last)})
                           : std::nullopt;
    }
    return true;
  }

  // Number of the newest event that is not read, and of the oldest one in the
  // same scope that the session keeps.
  std::int64_t last() const noexcept { return part_->last; }

  std::int64_t first() const noexcept {
    return std::max(scope_->created(), kept_from_) + 1;
  }

  const found_scope& scope() const noexcept { return *scope_; }

  // Reads the events from number `first` to `last()`, and leaves out the bodies
  // of those before `whole`. Adds them newest first. Returns false if rows are
  // missing.
  result<bool> read(std::int64_t first,
                    std::int64_t whole,
                    std::vector<event_ptr>& events,
                    std::vector<std::uint32_t>& hashes) {
    const auto rows = history_.read(connection_,
                                    load_rows,
                                    postgres_parameters()
                                      .add(part_->scope)
                                      .add(first)
                                      .add(part_->last)
                                      .add(whole),
                                    describe(owner_));
    if (!rows)
      return rows.error();
    if (rows->size() != part_->last - first + 1)
      return false;
    for (int i = rows->size() - 1; i >= 0; --i) {
      const auto number = rows->number(i, 0);
      if (number != first + i)
        return false;
      if (rows->is_null(i, 1))
        continue;
      hashes.push_back(static_cast<std::uint32_t>(rows->number(i, 1)));
      if (number < whole)
        continue;
      auto said = read_postgres_event(*rows, i, 2);
      if (!said)
        return unreadable(describe(owner_), said.error());
      events.push_back(*std::move(said));
    }
    part_->last = first - 1;
    return true;
  }

private:
  postgres_connection& connection_;
  postgres_history& history_;
  const owner_name& owner_;
  const std::int64_t kept_from_;
  std::optional<event_part> part_;
  std::optional<found_scope> scope_;
};

// Adds the newest events of a past, and their ids, before those of the session.
// Returns false if not all are there.
result<bool> add_past(past_reader& reader,
                      const load_options& options,
                      stored_session& loaded) {
  std::vector<event_ptr> events;
  std::vector<std::uint32_t> hashes;
  const auto missing = [](std::size_t most, std::size_t kept) {
    return static_cast<std::int64_t>(
      std::min<std::size_t>(most > kept ? most - kept : 0, past_rows_at_once));
  };
  for (;;) {
    const auto wanted_events
      = missing(options.events_max, loaded.events.size() + events.size());
    const auto wanted = std::max(
      wanted_events,
      missing(options.ids_max, loaded.id_hashes.size() + hashes.size()));
    if (wanted == 0)
      break;
    auto is_there = reader.find();
    if (!is_there || !*is_there)
      return is_there;
    if (reader.is_done())
      break;
    // Rows without an event are possible, so ids alone are read only once all
    // wanted events are there.
    const auto last = reader.last();
    const auto rows = wanted_events > 0 ? wanted_events : wanted;
    is_there = reader.read(std::max(reader.first(), last - rows + 1),
                           last - wanted_events + 1,
                           events,
                           hashes);
    if (!is_there || !*is_there)
      return is_there;
  }
  const auto put_before =
    [](auto& target, auto& newest_first, std::size_t most) {
      newest_first.resize(
        std::min(newest_first.size(), most - std::min(most, target.size())));
      target.insert(target.begin(), newest_first.rbegin(), newest_first.rend());
    };
  put_before(loaded.events, events, options.events_max);
  put_before(loaded.id_hashes, hashes, options.ids_max);
  return true;
}

} // namespace

namespace {

// Loads a user or an app. Begins with the known state if the log still has all
// later changes.
result<std::optional<loaded_scope>>
load_owner_from(postgres_connection& connection,
                postgres_history& history,
                const owner_name& owner,
                const hot_states::state* known) {
  const auto rows = history.read(connection,
                                 load_owner,
                                 postgres_parameters()
                                   .add(owner.app)
                                   .add(owner.user)
                                   .add(known != nullptr ? known->id : 0)
                                   .add(known != nullptr ? known->row : 0),
                                 describe(owner));
  if (!rows)
    return rows.error();
  return read_scope(*rows, owner, known);
}

} // namespace

result<std::optional<stored_scope>>
load_postgres_scope(postgres_connection& connection,
                    postgres_history& history,
                    hot_states& hot,
                    const owner_name& owner) {
  const auto epoch = hot.epoch();
  const auto known = hot.find(owner);
  const auto load = [&](const hot_states::state* from) {
    return load_owner_from(connection, history, owner, from);
  };
  auto loaded = load(known ? &*known : nullptr);
  // The known state may be of a history that the store has lost.
  if (!loaded && known)
    loaded = load(nullptr);
  if (!loaded)
    return loaded.error();
  if (!*loaded)
    return std::nullopt;
  const auto& found = **loaded;
  auto& scope = (*loaded)->session.scope;
  if (found.changes > 0
      && (found.is_known || found.changes >= hot_states::changes_min))
    hot.keep(owner,
             {static_cast<std::int64_t>(found.session.incarnation),
              static_cast<std::int64_t>(scope.revision),
              found.last_row,
              scope.keys},
             epoch);
  return std::move(scope);
}

result<std::optional<stored_session>>
load_postgres_session(postgres_connection& connection,
                      postgres_history& history,
                      const owner_name& owner,
                      const load_options& options) {
  // One less than the largest number, since the statement adds 1.
  const auto after = static_cast<std::int64_t>(std::min<std::uint64_t>(
    options.after, std::numeric_limits<std::int64_t>::max() - 1));
  for (int tries = 1; tries <= tries_max; ++tries) {
    const auto rows = history.read(connection,
                                   load_session,
                                   names_of(owner)
                                     .add_limit(options.events_max)
                                     .add_limit(options.ids_max)
                                     .add(after),
                                   describe(owner));
    if (!rows)
      return rows.error();
    auto loaded = read_scope(*rows, owner);
    if (!loaded)
      return loaded.error();
    if (!*loaded)
      return std::nullopt;
    auto& session = (*loaded)->session;
    const auto kept_from = static_cast<std::int64_t>(session.first_revision);
    const auto behind = std::max(kept_from, after);
    if (!(*loaded)->past || (*loaded)->past->last <= behind)
      return std::move(session);
    past_reader past(connection, history, owner, behind);
    past.go_to((*loaded)->past);
    auto is_whole = add_past(past, options, session);
    if (is_whole && *is_whole)
      is_whole = is_unchanged(connection,
                              history,
                              static_cast<std::int64_t>(session.incarnation),
                              kept_from,
                              owner);
    if (!is_whole)
      return is_whole.error();
    if (*is_whole)
      return std::move(session);
  }
  return missing_past(owner);
}

namespace {

// Loads the keys of a trimmed session at its first revision, and the newest
// time up to there. Returns false if it was trimmed meanwhile.
result<bool> start_at_first(postgres_connection& connection,
                            postgres_history& history,
                            const owner_name& owner,
                            const found_scope& own,
                            stored_session& state) {
  const auto rows
    = history.read(connection,
                   load_first,
                   postgres_parameters().add(own.id).add(own.kept_from),
                   describe(owner));
  if (!rows)
    return rows.error();
  if (rows->size() == 0)
    return false;
  if (auto replayed
      = replay_delta(state.scope, rows->text(0, 1), scope::session);
      !replayed)
    return unreadable(describe(owner), replayed.error());
  state.last_update_time = rows->time(0, 0);
  return true;
}

// Replays the log of a scope from its creation to revision `goal`, page by
// page. If the first revision of a trimmed session is in the same scope, the
// replay begins there. Changes up to a revision never change while the session
// keeps them, so the pages need not be read at one moment. Returns false if
// rows are missing.
result<bool> replay(postgres_connection& connection,
                    postgres_history& history,
                    const owner_name& owner,
                    const found_scope& own,
                    const found_scope& from,
                    std::int64_t goal,
                    stored_session& state) {
  state.last_update_time = timestamp::min();
  auto reached = from.created() - 1;
  if (own.kept_from > reached && own.kept_from > 0) {
    auto is_there = start_at_first(connection, history, owner, own, state);
    if (!is_there || !*is_there)
      return is_there;
    reached = own.kept_from;
  }
  while (reached < goal) {
    const auto last = std::min(goal, reached + past_rows_at_once);
    const auto rows = history.read(
      connection,
      load_changes,
      postgres_parameters().add(from.id).add(reached + 1).add(last),
      describe(owner));
    if (!rows)
      return rows.error();
    if (rows->size() != last - reached)
      return false;
    for (int i = 0; i < rows->size(); ++i) {
      if (rows->number(i, 0) != ++reached)
        return false;
      if (auto replayed
          = replay_delta(state.scope, rows->text(i, 2), scope::session);
          !replayed)
        return unreadable(describe(owner), replayed.error());
      state.last_update_time
        = std::max(state.last_update_time, rows->time(i, 1));
    }
  }
  state.scope.revision = static_cast<std::uint64_t>(goal);
  return true;
}

// Finds the scope with the creation from which `goal` is replayed: the session
// itself, or one of its past. Nothing if one is missing.
result<std::optional<found_scope>>
find_creation(postgres_connection& connection,
              postgres_history& history,
              const owner_name& owner,
              found_scope from,
              std::int64_t goal) {
  while (goal < from.created()) {
    auto past = find_one(connection,
                         history,
                         find_scope,
                         postgres_parameters().add(from.past->scope),
                         owner);
    if (!past || !*past)
      return past;
    from = **past;
  }
  return from;
}

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
  for (int tries = 1; tries <= tries_max; ++tries) {
    const auto own
      = find_one(connection, history, find_session, names_of(owner), owner);
    if (!own)
      return own.error();
    if (!*own)
      return std::nullopt;
    if ((*own)->newest < goal)
      return detail::no_revision(
        key, revision, static_cast<std::uint64_t>((*own)->newest));
    const auto kept_from = (*own)->kept_from;
    if (goal < kept_from)
      return detail::trimmed_revision(
        key, revision, static_cast<std::uint64_t>(kept_from));
    const auto from = find_creation(connection, history, owner, **own, goal);
    if (!from)
      return from.error();
    stored_session past;
    past.first_revision = static_cast<std::uint64_t>(kept_from);
    auto is_there
      = *from ? replay(connection, history, owner, **own, **from, goal, past)
              : result<bool>(false);
    if (is_there && *is_there) {
      past_reader reader(connection, history, owner, kept_from);
      reader.go_to(event_part{(*own)->id, goal});
      is_there
        = add_past(reader, {.events_max = events_max, .ids_max = 0}, past);
    }
    if (is_there && *is_there)
      is_there
        = is_unchanged(connection, history, (*own)->id, kept_from, owner);
    if (!is_there)
      return is_there.error();
    past.id_hashes.clear();
    if (*is_there)
      return past;
  }
  return error(errc::corrupt,
               fmt::format("{}: its log has not all revisions up to {}",
                           describe(owner),
                           goal));
}

namespace {

// Adds the events of a past before `loaded`, from number `first` on. Returns
// false if not all are there.
result<bool> add_range(past_reader& past,
                       std::int64_t first,
                       std::vector<event_ptr>& loaded) {
  std::vector<event_ptr> events;
  std::vector<std::uint32_t> hashes;
  for (;;) {
    auto is_there = past.find();
    if (!is_there || !*is_there)
      return is_there;
    if (past.is_done() || past.last() < first)
      break;
    const auto from
      = std::max({past.first(), first, past.last() - past_rows_at_once + 1});
    is_there = past.read(from, from, events, hashes);
    if (!is_there || !*is_there)
      return is_there;
  }
  loaded.insert(loaded.begin(), events.rbegin(), events.rend());
  return true;
}

// The events of the session's own scope in the range, and the scope. Nothing if
// the session does not exist. Fails with `errc::gone` if the range begins
// before the oldest event that is kept.
result<std::optional<found_scope>>
load_own_events(postgres_connection& connection,
                postgres_history& history,
                const owner_name& owner,
                std::int64_t from,
                std::int64_t to,
                std::vector<event_ptr>& loaded) {
  const auto rows = history.read(
    connection, load_range, names_of(owner).add(from).add(to), describe(owner));
  if (!rows)
    return rows.error();
  if (rows->size() == 0)
    return std::nullopt;
  loaded.reserve(static_cast<std::size_t>(rows->size()));
  const auto newest = rows->number(0, 0);
  found_scope own{rows->number(0, 8), newest, std::nullopt, rows->number(0, 9)};
  if (own.kept_from > 0 && from <= own.kept_from)
    return detail::trimmed_event({owner.app, owner.user, owner.session},
                                 static_cast<std::uint64_t>(from),
                                 static_cast<std::uint64_t>(own.kept_from));
  if (!rows->is_null(0, 6))
    own.past = event_part{rows->number(0, 6), rows->number(0, 7)};
  const auto first = own.past ? std::max(from, own.past->last) : from;
  auto reached = first - 1;
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
  if (const auto expected = std::min(newest, to);
      reached < expected && expected >= first)
    return error(errc::corrupt,
                 fmt::format("{}: its log ends at revision {} instead of {}",
                             describe(owner),
                             reached,
                             expected));
  return own;
}

} // namespace

result<std::vector<event_ptr>>
load_postgres_events(postgres_connection& connection,
                     postgres_history& history,
                     const owner_name& owner,
                     std::uint64_t first,
                     std::uint64_t last) {
  constexpr std::uint64_t last_max = std::numeric_limits<std::int64_t>::max();
  const auto from = static_cast<std::int64_t>(std::min(first, last_max));
  const auto to = static_cast<std::int64_t>(std::min(last, last_max));
  for (int tries = 1; tries <= tries_max; ++tries) {
    std::vector<event_ptr> loaded;
    auto own = load_own_events(connection, history, owner, from, to, loaded);
    if (!own)
      return own.error();
    if (!*own || !(*own)->past || from > (*own)->past->last || from > to)
      return loaded;
    past_reader reader(connection, history, owner, (*own)->kept_from);
    reader.go_to(
      event_part{(*own)->past->scope, std::min((*own)->past->last, to)});
    auto is_whole = add_range(reader, from, loaded);
    if (is_whole && *is_whole)
      is_whole = is_unchanged(
        connection, history, (*own)->id, (*own)->kept_from, owner);
    if (!is_whole)
      return is_whole.error();
    if (*is_whole)
      return loaded;
  }
  return missing_past(owner);
}

namespace {

// Finds events of a session in one scope, up to number `last`.
result<void> find_in_scope(postgres_connection& connection,
                           postgres_history& history,
                           const owner_name& owner,
                           std::int64_t session,
                           const event_part& part,
                           std::span<const std::string> ids,
                           std::vector<event_ptr>& found) {
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
                                 postgres_parameters()
                                   .add(part.scope)
                                   .add(part.last)
                                   .add(hashes)
                                   .add(texts)
                                   .add(session),
                                 describe(owner));
  if (!rows)
    return rows.error();
  // Older programs could store an event twice; the newest one is returned.
  for (int i = 0; i < rows->size(); ++i) {
    auto said = read_postgres_event(*rows, i, 2);
    if (!said)
      return unreadable(describe(owner), said.error());
    found[static_cast<std::size_t>(rows->number(i, 0) - 1)] = *std::move(said);
  }
  return {};
}

} // namespace

// Events of a past are found only if the session is still there afterwards, and
// was not trimmed meanwhile. Otherwise all is read again.
result<std::vector<event_ptr>>
find_postgres_events(postgres_connection& connection,
                     postgres_history& history,
                     const owner_name& owner,
                     std::span<const std::string> ids) {
  for (int tries = 1; tries <= tries_max; ++tries) {
    std::vector<event_ptr> found(ids.size());
    const auto own
      = find_one(connection, history, find_session, names_of(owner), owner);
    if (!own)
      return own.error();
    if (!*own)
      return found;
    auto last = std::numeric_limits<std::int64_t>::max();
    auto is_there = result<bool>(true);
    auto scope = **own;
    for (;;) {
      if (auto searched = find_in_scope(connection,
                                        history,
                                        owner,
                                        (*own)->id,
                                        {scope.id, last},
                                        ids,
                                        found);
          !searched)
        return searched.error();
      if (!scope.past || std::ranges::none_of(found, [](const auto& said) {
            return !said;
          }))
        break;
      last = std::min(last, scope.past->last);
      if (last <= (*own)->kept_from)
        break;
      const auto past = find_one(connection,
                                 history,
                                 find_scope,
                                 postgres_parameters().add(scope.past->scope),
                                 owner);
      if (!past)
        return past.error();
      is_there = past->has_value();
      if (!*is_there)
        break;
      scope = **past;
    }
    if (*is_there && scope.id != (*own)->id)
      is_there = is_unchanged(
        connection, history, (*own)->id, (*own)->kept_from, owner);
    if (!is_there)
      return is_there.error();
    if (*is_there)
      return found;
  }
  return missing_past(owner);
}

} // namespace troupe
