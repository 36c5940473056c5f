#include "troupe/cli/adk/target.hpp"

#include "troupe/cli/adk/event_form.hpp"
#include "troupe/stores/open_store.hpp"
#include "troupe/stores/sqlite/database.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <system_error>
#include <utility>

namespace troupe::cli {

namespace {

// As google-adk 2.13.0 makes the tables. It adds no table or index to these.
constexpr auto schema = R"(
CREATE TABLE adk_internal_metadata (
	"key" VARCHAR(128) NOT NULL, 
	value VARCHAR(256) NOT NULL, 
	PRIMARY KEY ("key")
);
INSERT INTO adk_internal_metadata VALUES('schema_version', '1');
CREATE TABLE app_states (
	app_name VARCHAR(128) NOT NULL, 
	state TEXT NOT NULL, 
	update_time DATETIME NOT NULL, 
	PRIMARY KEY (app_name)
);
CREATE TABLE user_states (
	app_name VARCHAR(128) NOT NULL, 
	user_id VARCHAR(128) NOT NULL, 
	state TEXT NOT NULL, 
	update_time DATETIME NOT NULL, 
	PRIMARY KEY (app_name, user_id)
);
CREATE TABLE sessions (
	app_name VARCHAR(128) NOT NULL, 
	user_id VARCHAR(128) NOT NULL, 
	id VARCHAR(128) NOT NULL, 
	state TEXT NOT NULL, 
	create_time DATETIME NOT NULL, 
	update_time DATETIME NOT NULL, 
	PRIMARY KEY (app_name, user_id, id)
);
CREATE TABLE events (
	id VARCHAR(128) NOT NULL, 
	app_name VARCHAR(128) NOT NULL, 
	user_id VARCHAR(128) NOT NULL, 
	session_id VARCHAR(128) NOT NULL, 
	invocation_id VARCHAR(256) NOT NULL, 
	timestamp DATETIME NOT NULL, 
	event_data TEXT, 
	PRIMARY KEY (id, app_name, user_id, session_id), 
	FOREIGN KEY(app_name, user_id, session_id) REFERENCES sessions (app_name, user_id, id) ON DELETE CASCADE
);
CREATE INDEX idx_events_app_user_session_ts_id ON events (app_name, user_id, session_id, timestamp DESC, id DESC);
)";

constexpr std::size_t users_per_page = 1'000;

error file_error(std::string_view attempt, const std::string& path, int cause) {
  return {
    cause == EEXIST ? errc::already_exists : errc::store_failed,
    fmt::format(
      "{} {}: {}", attempt, path, std::generic_category().message(cause))};
}

// UTC, as SQLAlchemy writes it.
std::string to_column(timestamp time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}.{:06}",
                     static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()),
                     static_cast<unsigned>(date.day()),
                     clock.hours().count(),
                     clock.minutes().count(),
                     clock.seconds().count(),
                     clock.subseconds().count());
}

// The keys of the session alone. ADK keeps those of user and app elsewhere.
json own_keys(const session& shown) {
  auto own = json::object();
  for (const auto& [key, held] : shown.state().all().items())
    if (split_key(key).where == scope::session)
      own[key] = held;
  return own;
}

std::string_view view(const std::string& text) {
  return text;
}

} // namespace

// The file and its statements. Throws `error`.
class adk_target::file {
public:
  explicit file(std::string path)
    : path_(std::move(path)),
      part_(fmt::format("{}.{}.part", path_, ::getpid())) {
    struct stat found {};

    if (::lstat(path_.c_str(), &found) == 0)
      throw file_error("create", path_, EEXIST);
    const int descriptor = ::open(
      part_.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (descriptor < 0)
      throw file_error("create", part_, errno);
    ::close(descriptor);
    is_there_ = true;
    try {
      open_part();
    } catch (...) {
      // The destructor does not run for an object that was not made.
      ::unlink(part_.c_str());
      throw;
    }
  }

  file(const file&) = delete;
  file& operator=(const file&) = delete;

  ~file() {
    close();
    if (is_there_)
      ::unlink(part_.c_str());
  }

  void write_session(const session_key& key,
                     const json& state,
                     timestamp created,
                     timestamp updated) {
    const auto text = to_text(state);
    const auto create_time = to_column(created);
    const auto update_time = to_column(updated);
    session_.run(view(key.app),
                 view(key.user),
                 view(key.id),
                 view(text),
                 view(create_time),
                 view(update_time));
    // ADK refuses appends without these rows. `finish` replaces them, unless
    // the user is removed meanwhile.
    write_app(key.app, "{}", false);
    write_user(key.app, key.user, "{}", false);
  }

  std::size_t
  write_event(const session_key& key, const event& said, timestamp time) {
    const auto text = to_text(to_stored_form(said));
    const auto column = to_column(time);
    event_.run(view(said.id),
               view(key.app),
               view(key.user),
               view(key.id),
               view(said.invocation_id),
               view(column),
               view(text));
    return text.size();
  }

  void
  write_app(const std::string& app, const std::string& state, bool replaces) {
    (replaces ? app_ : first_app_).run(view(app), view(state), view(now_));
  }

  void write_user(const std::string& app,
                  const std::string& user,
                  const std::string& state,
                  bool replaces) {
    (replaces ? user_ : first_user_)
      .run(view(app), view(user), view(state), view(now_));
  }

  void put_in_place() {
    execute("COMMIT");
    close();
    // Unlike a rename, a link replaces no file that has come meanwhile.
    if (::link(part_.c_str(), path_.c_str()) != 0)
      throw file_error("create", path_, errno);
    is_there_ = false;
    ::unlink(part_.c_str());
  }

private:
  struct close_connection {
    void operator()(sqlite3* opened) const { sqlite3_close_v2(opened); }
  };

  void open_part() {
    sqlite3* opened = nullptr;
    const auto name = part_.front() == '/' ? part_ : "./" + part_;
    const int code
      = sqlite3_open_v2(name.c_str(),
                        &opened,
                        SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX,
                        nullptr);
    connection_.reset(opened);
    if (code != SQLITE_OK)
      throw sqlite_failure(opened, "open");
    // A file that is not complete is removed, so no journal is needed.
    execute("PRAGMA journal_mode=OFF");
    execute("BEGIN");
    execute(schema);
    session_ = prepare("INSERT INTO sessions VALUES(?, ?, ?, ?, ?, ?)");
    event_ = prepare("INSERT INTO events VALUES(?, ?, ?, ?, ?, ?, ?)");
    app_ = prepare("INSERT OR REPLACE INTO app_states VALUES(?, ?, ?)");
    first_app_ = prepare("INSERT OR IGNORE INTO app_states VALUES(?, ?, ?)");
    user_ = prepare("INSERT OR REPLACE INTO user_states VALUES(?, ?, ?, ?)");
    first_user_
      = prepare("INSERT OR IGNORE INTO user_states VALUES(?, ?, ?, ?)");
  }

  sqlite_statement prepare(std::string_view sql) const {
    return {connection_.get(), sql};
  }

  void execute(const char* sql) const {
    if (sqlite3_exec(connection_.get(), sql, nullptr, nullptr, nullptr)
        != SQLITE_OK)
      throw sqlite_failure(connection_.get(), "write to");
  }

  void close() {
    for (auto* each :
         {&session_, &event_, &app_, &first_app_, &user_, &first_user_})
      *each = sqlite_statement();
    connection_.reset();
  }

  const std::string path_;
  const std::string part_;
  const std::string now_
    = to_column(std::chrono::floor<std::chrono::microseconds>(
      std::chrono::system_clock::now()));
  bool is_there_ = false; // `part_` exists.
  std::unique_ptr<sqlite3, close_connection> connection_;
  sqlite_statement session_;
  sqlite_statement event_;
  sqlite_statement app_;
  sqlite_statement first_app_;
  sqlite_statement user_;
  sqlite_statement first_user_;
};

namespace {

// Turns the exceptions of `file` into results.
template <class Act>
result<void> guarded(const Act& act) {
  try {
    act();
    return {};
  } catch (const error& failure) {
    return failure;
  }
}

} // namespace

adk_target::adk_target(std::unique_ptr<file> written, std::stop_token stop)
  : file_(std::move(written)),
    stop_(std::move(stop)) {}

adk_target::~adk_target() = default;

result<std::unique_ptr<adk_target>> adk_target::open(std::string_view address,
                                                     std::stop_token stop) {
  const auto read = read_store_address(address);
  if (!read)
    return read.error();
  if (read->kind != store_kind::sqlite)
    return error(errc::invalid_argument,
                 "sessions are exported to a new file, sqlite:PATH");
  try {
    return std::unique_ptr<adk_target>(
      new adk_target(std::make_unique<file>(read->location), std::move(stop)));
  } catch (const error& failure) {
    return failure;
  }
}

result<void> adk_target::begin(const session& shown) {
  if (stop_.stop_requested())
    return error(errc::cancelled, "interrupted");
  key_ = shown.key();
  state_ = own_keys(shown);
  update_time_ = shown.last_update_time();
  newest_.reset();
  oldest_ = update_time_;
  return {};
}

result<std::size_t> adk_target::add(const std::vector<event_ptr>& events) {
  if (stop_.stop_requested())
    return error(errc::cancelled, "interrupted");
  std::size_t bytes = 0;
  auto written = guarded([this, &events, &bytes] {
    for (const auto& said : events) {
      // ADK orders by the column. The time in the JSON stays as it is.
      newest_ = newest_ ? std::max(said->timestamp,
                                   *newest_ + std::chrono::microseconds(1))
                        : said->timestamp;
      oldest_ = std::min(oldest_, said->timestamp);
      bytes += file_->write_event(key_, *said, *newest_);
      ++event_count_;
    }
  });
  if (!written)
    return written.error();
  return bytes;
}

result<void> adk_target::end() {
  ++session_count_;
  return guarded(
    [this] { file_->write_session(key_, state_, oldest_, update_time_); });
}

result<void> adk_target::finish(session_service& sessions,
                                const export_choice& chosen) {
  const auto app = check_id(chosen.app, "app");
  if (!app)
    return app.error();
  const auto keys = sessions.app_state(*app).get();
  if (!keys)
    return keys.error();
  auto written = guarded([&] { file_->write_app(*app, to_text(*keys), true); });
  if (written)
    written = chosen.user ? write_user(sessions, *app, *chosen.user)
                          : write_all_users(sessions, *app);
  return written ? guarded([this] { file_->put_in_place(); }) : written;
}

result<void> adk_target::write_user(session_service& sessions,
                                    const std::string& app,
                                    const std::string& user) {
  const auto name = check_id(user, "user");
  if (!name)
    return name.error();
  const auto keys = sessions.user_state(app, *name).get();
  if (!keys)
    return keys.error();
  return guarded([&] { file_->write_user(app, *name, to_text(*keys), true); });
}

result<void> adk_target::write_all_users(session_service& sessions,
                                         const std::string& app) {
  user_list_request rows(app, users_per_page);
  do {
    const auto page = sessions.list_users(rows).get();
    if (!page)
      return page.error();
    for (const auto& user : page->names)
      if (auto written = write_user(sessions, app, user); !written)
        return written;
    rows.cursor = page->next_cursor;
  } while (!rows.cursor.empty());
  return {};
}

} // namespace troupe::cli
