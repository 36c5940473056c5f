#include "troupe/stores/postgres/connection.hpp"

#include "troupe/stores/postgres/address.hpp"
#include "troupe/stores/postgres/conninfo.hpp"

#include <fmt/format.h>
#include <libpq-fe.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <new>
#include <system_error>
#include <utility>

namespace troupe {

// Invariants: `queued_` has one entry per message in the pipeline, so each
// answer finds its statement. No wait exceeds `deadline_`. After any failure
// the connection is unusable: later answers could no longer be assigned, and a
// transaction may be open.

namespace {

using clock = std::chrono::steady_clock;

// Settings that detect a hung or vanished server. Settings of the URL override
// them.
constexpr std::array<std::pair<const char*, const char*>, 7> defaults = {{
  {"connect_timeout", "5"},
  {"keepalives", "1"},
  {"keepalives_idle", "10"},
  {"keepalives_interval", "5"},
  {"keepalives_count", "3"},
  {"tcp_user_timeout", "30000"},
  {"fallback_application_name", "troupe"},
}};

using connection_setting = std::pair<std::string, std::string>;
using connection_settings = std::vector<connection_setting>;

// Returns `connect_timeout`, which applies to each host; one day if it is not
// set.
std::chrono::seconds connect_limit(PGconn* connection) {
  int seconds = 0;
  const conninfo options(PQconninfo(connection));
  for (const auto* option = options.get(); option && option->keyword;
       ++option) {
    const std::string_view text = option->val ? option->val : "";
    if (std::string_view(option->keyword) == "connect_timeout")
      std::from_chars(text.data(), text.data() + text.size(), seconds);
  }
  return seconds > 0 ? std::chrono::seconds(std::max(seconds, 2))
                     : std::chrono::seconds(std::chrono::hours(24));
}

std::vector<std::string> split_list(std::string_view text) {
  std::vector<std::string> parts;
  for (;;) {
    const auto comma = text.find(',');
    parts.emplace_back(text.substr(0, comma));
    if (comma == std::string_view::npos)
      return parts;
    text.remove_prefix(comma + 1);
  }
}

bool is_listed(std::string_view name) {
  return name == "host" || name == "hostaddr" || name == "port";
}

// Returns the settings for each host of a list. libpq tries the next host only
// if one refuses; a host that does not answer would use up the whole time
// limit.
std::vector<connection_settings>
one_host_each(const connection_settings& settings) {
  std::size_t hosts = 1;
  for (const auto& [name, text] : settings)
    if (is_listed(name))
      hosts = std::max(hosts, split_list(text).size());
  std::vector<connection_settings> each(hosts, settings);
  for (std::size_t index = 0; index < hosts; ++index)
    for (auto& [name, text] : each[index]) {
      if (!is_listed(name))
        continue;
      const auto parts = split_list(text);
      // A single port applies to all hosts. libpq refuses other lists of a
      // wrong length.
      if (parts.size() == hosts)
        text = parts[index];
    }
  return each;
}

PGconn* start_connecting(const connection_settings& settings) {
  std::vector<const char*> names;
  std::vector<const char*> values;
  for (const auto& [name, text] : settings) {
    names.push_back(name.c_str());
    values.push_back(text.c_str());
  }
  names.push_back(nullptr);
  values.push_back(nullptr);
  return PQconnectStartParams(names.data(), values.data(), 0);
}

// Adds hosts from the environment or a service file, if the URL names none.
// libpq reports them once it has started to connect.
void add_unnamed_hosts(connection_settings& settings) {
  if (std::ranges::any_of(settings, [](const auto& setting) {
        return setting.first == "host" || setting.first == "hostaddr";
      }))
    return;
  const std::unique_ptr<PGconn, decltype(&PQfinish)> started(
    start_connecting(settings), PQfinish);
  const conninfo options(PQconninfo(started.get()));
  for (const auto* option = options.get(); option && option->keyword; ++option)
    if (option->val && *option->val && is_listed(option->keyword))
      settings.emplace_back(option->keyword, option->val);
}

enum class connected : std::uint8_t { yes, no, too_late };

// Does the work of `PQconnectdb`, which cannot be used: until it is connected
// it writes the server's notices to stderr.
connected finish_connecting(PGconn* connection, std::chrono::seconds limit) {
  const auto deadline = clock::now() + limit;
  auto next = PGRES_POLLING_WRITING;
  while (next != PGRES_POLLING_OK) {
    if (next == PGRES_POLLING_FAILED)
      return connected::no;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      deadline - clock::now());
    if (left.count() <= 0)
      return connected::too_late;
    pollfd watched{
      PQsocket(connection),
      static_cast<short>(next == PGRES_POLLING_READING ? POLLIN : POLLOUT),
      0};
    const auto ready = ::poll(&watched, 1, static_cast<int>(left.count()) + 1);
    if (ready < 0 && errno != EINTR)
      return connected::no;
    if (ready > 0)
      next = PQconnectPoll(connection);
  }
  return connected::yes;
}

std::string one_line(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' '))
    text.pop_back();
  std::ranges::replace(text, '\n', ' ');
  return text;
}

void ignore_notice(void* /*unused*/, const PGresult* /*unused*/) {}

} // namespace

std::string without_secret(std::string text, std::string_view secret) {
  if (secret.empty())
    return text;
  for (auto at = text.find(secret); at != std::string::npos;
       at = text.find(secret, at + 3))
    text.replace(at, secret.size(), "***");
  return text;
}

// -- opening ----

void postgres_connection::closer::operator()(
  PGconn* connection) const noexcept {
  PQfinish(connection);
}

result<std::unique_ptr<postgres_connection>>
postgres_connection::open(const std::string& url, server wanted) {
  // Checks first, because libpq's error about a bad URL quotes it with the
  // password.
  if (const auto flaw = postgres_address_flaw(url); !flaw.empty())
    return error(errc::invalid_argument, "the store's URL " + flaw);
  const conninfo options(PQconninfoParse(url.c_str(), nullptr));
  if (!options)
    throw std::bad_alloc();
  std::vector<std::string> secrets;
  connection_settings settings(defaults.begin(), defaults.end());
  settings.emplace_back("target_session_attrs",
                        wanted == server::primary ? "read-write" : "any");
  for (const auto* option = options.get(); option->keyword; ++option) {
    if (!option->val)
      continue;
    settings.emplace_back(option->keyword, option->val);
    const std::string_view keyword = option->keyword;
    if (keyword == "password" || keyword == "sslpassword")
      secrets.emplace_back(option->val);
  }
  settings.emplace_back("client_encoding", "UTF8");
  add_unnamed_hosts(settings);
  std::string reasons;
  for (const auto& host : one_host_each(settings)) {
    auto opened = connect(host, secrets);
    if (opened)
      return opened;
    reasons += (reasons.empty() ? "" : "; ") + opened.error().message();
  }
  return error(errc::store_failed,
               fmt::format("connect to the store's database: {}", reasons));
}

result<std::unique_ptr<postgres_connection>>
postgres_connection::connect(const connection_settings& settings,
                             const std::vector<std::string>& secrets) {
  std::unique_ptr<postgres_connection> opened(
    new postgres_connection(start_connecting(settings), secrets));
  auto* const connection = opened->connection_.get();
  const auto refuse = [&](std::string_view why) {
    return error(errc::store_failed, opened->shown(std::string(why)));
  };
  if (PQstatus(connection) == CONNECTION_BAD)
    return refuse(PQerrorMessage(connection));
  PQsetNoticeReceiver(connection, ignore_notice, nullptr);
  const auto limit = connect_limit(connection);
  switch (finish_connecting(connection, limit)) {
  case connected::yes:
    break;
  case connected::no:
    return refuse(PQerrorMessage(connection));
  case connected::too_late:
    return refuse(fmt::format("no answer within {} s", limit.count()));
  }
  // A blocking call of libpq would ignore the deadline.
  if (PQsetnonblocking(connection, 1) != 0)
    return refuse(PQerrorMessage(connection));
  return opened;
}

// -- failures ----

std::string postgres_connection::shown(std::string text) const {
  text = one_line(std::move(text));
  for (const auto& secret : secrets_)
    text = without_secret(std::move(text), secret);
  return text;
}

error postgres_connection::failure(std::string_view attempted,
                                   const PGresult* answer) {
  const auto* state = PQresultErrorField(answer, PG_DIAG_SQLSTATE);
  const std::string_view sqlstate = state ? state : "";
  // The codes of "data corrupted" and "index corrupted".
  const auto code = sqlstate == "XX001" || sqlstate == "XX002"
                      ? errc::corrupt
                      : errc::store_failed;
  // A transaction may be open, and later statements of the pipeline are not
  // prepared although `prepared_` says so. A new connection solves both.
  usable_ = false;
  return {
    code,
    fmt::format("{}: {}", attempted, shown(PQresultErrorMessage(answer)))};
}

error postgres_connection::broken(std::string_view attempted,
                                  std::string_view why) {
  usable_ = false;
  const std::string words
    = why.empty() ? PQerrorMessage(connection_.get()) : std::string(why);
  return {errc::store_failed, fmt::format("{}: {}", attempted, shown(words))};
}

// -- sending and receiving ----

void postgres_connection::queue(const postgres_statement& statement,
                                const postgres_parameters& parameters) {
  auto* const connection = connection_.get();
  if (PQpipelineStatus(connection) == PQ_PIPELINE_OFF)
    queue_failed_ |= PQenterPipelineMode(connection) == 0;
  if (prepared_.insert(statement.name).second) {
    queue_failed_
      |= PQsendPrepare(connection, statement.name, statement.text, 0, nullptr)
         == 0;
    queued_.push_back(false);
  }
  const auto count = parameters.values_.size();
  std::vector<const char*> values(count);
  std::vector<int> sizes(count);
  const std::vector<int> binary(count, 1);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = parameters.values_[i].data();
    sizes[i] = static_cast<int>(parameters.values_[i].size());
  }
  queue_failed_ |= PQsendQueryPrepared(connection,
                                       statement.name,
                                       static_cast<int>(count),
                                       values.data(),
                                       sizes.data(),
                                       binary.data(),
                                       0)
                   == 0;
  queued_.push_back(true);
}

result<void> postgres_connection::wait(std::string_view attempted,
                                       bool for_writing) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
    deadline_ - clock::now());
  if (left.count() <= 0)
    return broken(attempted, "the server does not answer");
  pollfd watched{PQsocket(connection_.get()), POLLIN, 0};
  // Input is always read: a server whose answers are not taken stops reading.
  if (for_writing)
    watched.events |= POLLOUT;
  if (::poll(&watched, 1, static_cast<int>(left.count()) + 1) < 0
      && errno != EINTR)
    return broken(attempted, std::generic_category().message(errno));
  if ((watched.revents & (POLLIN | POLLERR | POLLHUP)) != 0
      && PQconsumeInput(connection_.get()) == 0)
    return broken(attempted);
  return {};
}

result<void> postgres_connection::send(std::string_view attempted) {
  for (;;) {
    const auto left = PQflush(connection_.get());
    if (left < 0)
      return broken(attempted);
    if (left == 0)
      return {};
    if (auto waited = wait(attempted, true); !waited)
      return waited;
  }
}

result<PGresult*> postgres_connection::next_answer(std::string_view attempted) {
  while (PQisBusy(connection_.get()) != 0)
    if (auto waited = wait(attempted, false); !waited)
      return waited.error();
  return PQgetResult(connection_.get());
}

result<std::vector<postgres_rows>>
postgres_connection::run(std::string_view attempted,
                         std::chrono::milliseconds limit) {
  deadline_ = clock::now() + limit;
  const auto queued = std::exchange(queued_, {});
  if (queued.empty() && !queue_failed_)
    return std::vector<postgres_rows>();
  if (queue_failed_ || PQpipelineSync(connection_.get()) == 0)
    return broken(attempted);
  if (auto sent = send(attempted); !sent)
    return sent.error();
  std::vector<postgres_rows> answers;
  std::optional<error> first_failure;
  for (const bool is_for_caller : queued) {
    for (;;) {
      auto answer = next_answer(attempted);
      if (!answer)
        return answer.error();
      if (!*answer)
        break; // The end of this statement's answers.
      postgres_rows rows(*answer);
      switch (PQresultStatus(*answer)) {
      case PGRES_TUPLES_OK:
      case PGRES_COMMAND_OK:
        if (is_for_caller)
          answers.push_back(std::move(rows));
        break;
      case PGRES_PIPELINE_ABORTED:
        break;
      default:
        if (!first_failure)
          first_failure = failure(attempted, *answer);
        break;
      }
    }
    if (PQstatus(connection_.get()) != CONNECTION_OK)
      return first_failure ? *first_failure : broken(attempted);
  }
  // The answer to the synchronisation itself.
  auto synced = next_answer(attempted);
  if (!synced)
    return first_failure ? *first_failure : synced.error();
  const postgres_rows end(*synced);
  if (PQresultStatus(*synced) != PGRES_PIPELINE_SYNC)
    return first_failure ? *first_failure : broken(attempted);
  if (first_failure)
    return *first_failure;
  return answers;
}

// -- without a pipeline ----

result<void> postgres_connection::start(std::string_view attempted,
                                        const std::string& statements,
                                        std::chrono::milliseconds limit) {
  deadline_ = clock::now() + limit;
  auto* const connection = connection_.get();
  if (PQpipelineStatus(connection) != PQ_PIPELINE_OFF
      && PQexitPipelineMode(connection) == 0)
    return broken(attempted);
  if (PQsendQuery(connection, statements.c_str()) == 0)
    return broken(attempted);
  return send(attempted);
}

result<void> postgres_connection::take_all(std::string_view attempted) {
  std::optional<error> first_failure;
  for (;;) {
    auto answer = next_answer(attempted);
    if (!answer)
      return first_failure ? *first_failure : answer.error();
    if (!*answer)
      break;
    const postgres_rows ended(*answer);
    const auto status = PQresultStatus(*answer);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK
        && !first_failure)
      first_failure = failure(attempted, *answer);
    if (status == PGRES_COPY_IN)
      return broken(attempted, "the server expects more data");
  }
  if (first_failure)
    return *first_failure;
  if (PQstatus(connection_.get()) != CONNECTION_OK)
    return broken(attempted);
  return {};
}

result<void> postgres_connection::execute(std::string_view attempted,
                                          const std::string& statements,
                                          std::chrono::milliseconds limit) {
  if (auto started = start(attempted, statements, limit); !started)
    return started;
  return take_all(attempted);
}

result<void> postgres_connection::start_copy(std::string_view attempted,
                                             const std::string& statement,
                                             std::chrono::milliseconds limit) {
  if (auto started = start(attempted, statement, limit); !started)
    return started;
  auto answer = next_answer(attempted);
  if (!answer)
    return answer.error();
  const postgres_rows begun(*answer);
  if (PQresultStatus(*answer) == PGRES_COPY_IN)
    return {};
  return failure(attempted, *answer);
}

result<void> postgres_connection::copy(std::string_view attempted,
                                       std::string_view data) {
  for (;;) {
    const auto taken = PQputCopyData(
      connection_.get(), data.data(), static_cast<int>(data.size()));
    // 0 means that the buffer of libpq is full.
    if (taken > 0)
      return send(attempted);
    if (taken < 0)
      return broken(attempted);
    if (auto waited = wait(attempted, true); !waited)
      return waited;
  }
}

result<void> postgres_connection::end_copy(std::string_view attempted,
                                           const char* reason) {
  for (;;) {
    const auto taken = PQputCopyEnd(connection_.get(), reason);
    if (taken > 0)
      break;
    if (taken < 0)
      return broken(attempted);
    if (auto waited = wait(attempted, true); !waited)
      return waited;
  }
  if (auto sent = send(attempted); !sent)
    return sent;
  return take_all(attempted);
}

} // namespace troupe
