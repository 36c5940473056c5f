// Reads a PostgreSQL database of ADK.

#include "troupe/cli/adk/layout.hpp"
#include "troupe/cli/adk/tables.hpp"
#include "troupe/stores/open_store.hpp"
#include "troupe/stores/postgres/connection.hpp"

#include <chrono>
#include <utility>

namespace troupe::cli {

namespace {

// Time in which a statement has to answer.
constexpr std::chrono::minutes answer_limit(5);

// Number of events that are read at once.
constexpr std::size_t events_at_once = 500;

constexpr auto attempt = "read ADK's database";

constexpr postgres_statement select_schema{
  "adk_schema",
  "SELECT c.relname, a.attname, format_type(a.atttypid, NULL) FROM pg_class c "
  "JOIN pg_attribute a ON a.attrelid = c.oid WHERE c.oid IN "
  "(to_regclass('sessions'), to_regclass('events'), to_regclass('app_states'), "
  "to_regclass('user_states'), to_regclass('adk_internal_metadata')) "
  "AND a.attnum > 0 AND NOT a.attisdropped"};
constexpr postgres_statement select_version{
  "adk_version",
  "SELECT value FROM adk_internal_metadata WHERE key = 'schema_version'"};
// Times are UTC without a zone.
constexpr postgres_statement select_sessions{
  "adk_sessions",
  "SELECT app_name, user_id, id, "
  "(extract(epoch FROM update_time) * 1000000)::bigint FROM sessions"};
constexpr postgres_statement select_owners{
  "adk_owners",
  "SELECT app_name, NULL FROM app_states UNION ALL "
  "SELECT app_name, user_id FROM user_states"};
constexpr postgres_statement select_state{
  "adk_state",
  "SELECT state::text FROM sessions WHERE app_name = $1 AND user_id = $2 "
  "AND id = $3"};
constexpr postgres_statement select_app_state{
  "adk_app_state", "SELECT state::text FROM app_states WHERE app_name = $1"};
constexpr postgres_statement select_user_state{
  "adk_user_state",
  "SELECT state::text FROM user_states WHERE app_name = $1 AND user_id = $2"};
constexpr postgres_statement select_events{
  "adk_events",
  "SELECT id, invocation_id, "
  "(extract(epoch FROM \"timestamp\") * 1000000)::bigint, event_data::text, "
  "\"timestamp\"::text FROM events WHERE app_name = $1 AND user_id = $2 "
  "AND session_id = $3 AND (\"timestamp\", id) > ($4::text::timestamp, $5) "
  "ORDER BY \"timestamp\", id LIMIT $6"};

std::string text_at(const postgres_rows& rows, int row, int column) {
  return std::string(rows.text(row, column));
}

class postgres_tables final : public adk_tables {
public:
  explicit postgres_tables(std::unique_ptr<postgres_connection> connection)
    : connection_(std::move(connection)) {}

  // Begins the transaction and finds the layout.
  result<void> begin(std::string_view name) {
    if (auto begun = connection_->execute(
          attempt,
          "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
          answer_limit);
        !begun)
      return begun;
    const auto schema = read_schema();
    if (!schema)
      return schema.error();
    const auto layout = find_layout(*schema, name);
    return layout ? result<void>() : layout.error();
  }

  adk_layout layout() const noexcept override {
    return adk_layout::database_service;
  }

  result<std::vector<adk_session>> sessions() override {
    const auto rows = ask(select_sessions);
    if (!rows)
      return rows.error();
    std::vector<adk_session> found;
    found.reserve(static_cast<std::size_t>(rows->size()));
    for (int row = 0; row < rows->size(); ++row)
      found.push_back({{text_at(*rows, row, 0),
                        text_at(*rows, row, 1),
                        text_at(*rows, row, 2)},
                       rows->time(row, 3)});
    return found;
  }

  result<std::vector<owner>> owners() override {
    const auto rows = ask(select_owners);
    if (!rows)
      return rows.error();
    std::vector<owner> found;
    found.reserve(static_cast<std::size_t>(rows->size()));
    for (int row = 0; row < rows->size(); ++row)
      found.push_back({text_at(*rows, row, 0),
                       rows->is_null(row, 1)
                         ? std::nullopt
                         : std::optional(text_at(*rows, row, 1))});
    return found;
  }

  result<std::string> state_of(const session_key& key) override {
    postgres_parameters names;
    names.add(key.app).add(key.user).add(key.id);
    return first_text(ask(select_state, names));
  }

  result<std::string> state_of(const owner& wanted) override {
    postgres_parameters names;
    names.add(wanted.app);
    if (wanted.user)
      names.add(*wanted.user);
    return first_text(
      ask(wanted.user ? select_user_state : select_app_state, names));
  }

  result<void> read_events(
    const session_key& key,
    const std::function<result<void>(const adk_event&)>& each) override {
    std::string time = "-infinity";
    std::string id;
    for (;;) {
      postgres_parameters place;
      place.add(key.app).add(key.user).add(key.id).add(time).add(id);
      place.add_limit(events_at_once);
      const auto rows = ask(select_events, place);
      if (!rows)
        return rows.error();
      for (int row = 0; row < rows->size(); ++row) {
        id = text_at(*rows, row, 0);
        time = text_at(*rows, row, 4);
        if (auto taken = each({id,
                               text_at(*rows, row, 1),
                               rows->time(row, 2),
                               text_at(*rows, row, 3)});
            !taken)
          return taken;
      }
      if (static_cast<std::size_t>(rows->size()) < events_at_once)
        return {};
    }
  }

private:
  result<postgres_rows> ask(const postgres_statement& statement,
                            const postgres_parameters& parameters = {}) {
    connection_->queue(statement, parameters);
    auto answers = connection_->run(attempt, answer_limit);
    if (!answers)
      return answers.error();
    return std::move(answers->front());
  }

  static result<std::string> first_text(const result<postgres_rows>& rows) {
    if (!rows)
      return rows.error();
    return rows->size() > 0 ? text_at(*rows, 0, 0) : std::string();
  }

  result<adk_schema> read_schema() {
    const auto columns = ask(select_schema);
    if (!columns)
      return columns.error();
    adk_schema found;
    for (int row = 0; row < columns->size(); ++row)
      found.tables[text_at(*columns, row, 0)][text_at(*columns, row, 1)]
        = text_at(*columns, row, 2);
    if (!found.tables.contains(adk_metadata_table))
      return found;
    const auto version = ask(select_version);
    if (!version)
      return version.error();
    if (version->size() > 0)
      found.version = text_at(*version, 0, 0);
    return found;
  }

  std::unique_ptr<postgres_connection> connection_;
};

} // namespace

result<std::unique_ptr<adk_tables>> open_adk_postgres(const std::string& url) {
  auto opened
    = postgres_connection::open(url, postgres_connection::server::any);
  if (!opened)
    return opened.error();
  auto tables = std::make_unique<postgres_tables>(std::move(*opened));
  if (auto begun = tables->begin(without_password(url)); !begun)
    return begun.error();
  return tables;
}

} // namespace troupe::cli
