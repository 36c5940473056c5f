#include "troupe/stores/memories/in_sqlite.hpp"

#include "troupe/stores/memories/form.hpp"
#include "troupe/stores/memories/sqlite_search.hpp"
#include "troupe/stores/memory_words.hpp"
#include "troupe/stores/sqlite/database.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

namespace troupe {

// Invariants: each row of `memories` has a row of the same number in
// `memory_words`, changed in the same transaction. The file has a rollback
// journal, so a committed change is in the file itself: a removal overwrites
// the bytes (`secure_delete`), and no log keeps them.

namespace {

// "trpm".
constexpr std::int64_t memory_application_id = 0x7472706d;
constexpr std::int64_t memory_layout = 1;

// The words of a memory are made by `memory_words`. One more word names the
// user (`@17`), so that a search reads the rows of one user. The tokenizer only
// splits at blanks: the words have ASCII letters and digits, which it keeps,
// and other characters, which it takes for letters. Neither positions nor sizes
// are needed to find a word.
constexpr std::string_view memory_tables = R"sql(
CREATE TABLE users(
  id INTEGER PRIMARY KEY,
  app TEXT NOT NULL,
  user TEXT NOT NULL,
  UNIQUE(app, user)
);
CREATE TABLE memories(
  id INTEGER PRIMARY KEY,
  user INTEGER NOT NULL,
  session TEXT NOT NULL,
  event TEXT NOT NULL,
  time INTEGER NOT NULL,
  body TEXT NOT NULL,
  UNIQUE(user, session, event)
);
CREATE VIRTUAL TABLE memory_words USING fts5(
  words,
  tokenize="ascii tokenchars '@'",
  detail=none,
  columnsize=0
);
)sql";

// Creates the file before SQLite does, which would let everybody read it.
void make_private_file(const std::filesystem::path& file) {
  if (::mknod(file.c_str(), S_IFREG | S_IRUSR | S_IWUSR, 0) != 0
      && errno != EEXIST)
    throw error(errc::store_failed,
                fmt::format("make {}: {}",
                            file.string(),
                            std::generic_category().message(errno)));
}

// Returns true if the tables are there.
bool has_memory_tables(const sqlite_database& database,
                       const std::filesystem::path& file) {
  const auto owner = database.number("PRAGMA application_id");
  const auto layout = database.number("PRAGMA user_version");
  if (owner == 0 && layout == 0
      && database.number("SELECT count(*) FROM sqlite_schema") == 0)
    return false;
  if (owner != memory_application_id)
    throw error(errc::corrupt,
                fmt::format("open {}: not a file of memories; name another "
                            "file, which is made if it is missing",
                            file.string()));
  if (layout != memory_layout)
    throw error(errc::corrupt,
                fmt::format("open {}: made by a newer troupe (layout {}, this "
                            "one knows {})",
                            file.string(),
                            layout,
                            memory_layout));
  return true;
}

sqlite_database open_memory_file(const std::filesystem::path& file) {
  make_private_file(file);
  sqlite_settings settings;
  settings.file = file;
  sqlite_database database(settings, sqlite_role::writer);
  database.execute("PRAGMA secure_delete=ON");
  // Checks before it changes the mode: the file of a session store, which was
  // named by mistake, keeps its write-ahead log.
  bool is_made = false;
  if (!database.retry_while_locked([&] {
        const sqlite_transaction reading(database,
                                         sqlite_transaction::kind::read);
        is_made = has_memory_tables(database, file);
      }))
    throw database.failure("open");
  // In the mode DELETE a power failure may bring a journal back, which would
  // undo a commit.
  if (!database.retry_while_locked(
        [&] { database.execute("PRAGMA journal_mode=TRUNCATE"); }))
    throw database.failure("open");
  if (is_made)
    return database;
  // Another process may be making the tables, too.
  sqlite_transaction writing(database, sqlite_transaction::kind::write);
  if (!has_memory_tables(database, file)) {
    database.execute(std::string(memory_tables));
    database.execute(
      fmt::format("PRAGMA application_id={}", memory_application_id));
    database.execute(fmt::format("PRAGMA user_version={}", memory_layout));
    writing.commit();
  }
  return database;
}

// The condition on a row of `memories`, whose parameters are app, user and
// session, as far as the owner has them.
std::string rows_of(const owner_name& of) {
  return fmt::format("user IN (SELECT id FROM users WHERE app=?1{}){}",
                     of.user.empty() ? "" : " AND user=?2",
                     of.session.empty() ? "" : " AND session=?3");
}

// An open file. Its functions throw failures of SQLite. Used by one thread at a
// time.
class memory_file {
public:
  using ids = std::vector<std::string>;

  explicit memory_file(const std::filesystem::path& file)
    : database_(open_memory_file(file)),
      find_user_(
        database_.prepare("SELECT id FROM users WHERE app=?1 AND user=?2")),
      add_user_(
        database_.prepare("INSERT INTO users(app, user) VALUES(?1, ?2)")),
      add_entry_(database_.prepare(
        "INSERT INTO memories(user, session, event, time, body) "
        "VALUES(?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING")),
      add_words_(database_.prepare("INSERT INTO memory_words(rowid, words) "
                                   "VALUES(last_insert_rowid(), ?1)")) {}

  ids add(const owner_name& of,
          const std::vector<memory_entry>& entries,
          bool replaces_earlier) {
    sqlite_transaction writing(database_, sqlite_transaction::kind::write);
    const bool removed = replaces_earlier && remove_rows(rows_of(of), of) > 0;
    ids added;
    if (!entries.empty()) {
      const auto user = make_user(of);
      for (const auto& each : entries)
        if (insert(user, each))
          added.push_back(each.id);
    }
    if (removed) {
      remove_empty_users();
      overwrite_words();
    }
    writing.commit();
    return added;
  }

  std::size_t remove(const owner_name& of, const ids& removed) {
    const auto rows = rows_of(of)
                      + (of.session.empty() ? " AND session='' AND event=?3"
                                            : " AND event=?4");
    sqlite_transaction writing(database_, sqlite_transaction::kind::write);
    std::int64_t count = 0;
    for (const auto& id : removed)
      count += remove_rows(rows, of, id);
    if (count > 0) {
      remove_empty_users();
      overwrite_words();
    }
    writing.commit();
    return static_cast<std::size_t>(count);
  }

  bool remove_all(const owner_name& of) {
    sqlite_transaction writing(database_, sqlite_transaction::kind::write);
    const bool found = remove_rows(rows_of(of), of) > 0;
    remove_empty_users();
    // Also without a row: a troupe that did not overwrite the words of
    // replaced memories may have left some.
    if (found || of.session.empty())
      overwrite_words();
    writing.commit();
    return found;
  }

private:
  std::optional<std::int64_t> known_user(const owner_name& of) {
    auto rows
      = find_user_.rows(std::string_view(of.app), std::string_view(of.user));
    return rows.next() ? std::optional(rows.integer(0)) : std::nullopt;
  }

  std::int64_t make_user(const owner_name& of) {
    if (const auto known = known_user(of))
      return *known;
    add_user_.run(std::string_view(of.app), std::string_view(of.user));
    return sqlite3_last_insert_rowid(database_.connection());
  }

  // Returns false if the memory is there already.
  bool insert(std::int64_t user, const memory_entry& entry) {
    const auto body = memory_body(entry);
    const auto added
      = add_entry_.run(user,
                       std::string_view(entry.session),
                       std::string_view(entry.id),
                       std::int64_t{entry.timestamp.time_since_epoch().count()},
                       std::string_view(body));
    if (added == 0)
      return false;
    const auto words = fmt::format(
      "@{} {}", user, fmt::join(memory_words(memory_text(entry.content)), " "));
    add_words_.run(std::string_view(words));
    return true;
  }

  // Deletes the rows within a transaction; returns how many there were.
  template <class... More>
  std::int64_t remove_rows(const std::string& rows,
                           const owner_name& of,
                           const More&... more) {
    const auto run = [&](const std::string& sql) {
      auto statement = database_.prepare(sql);
      const std::string_view app = of.app;
      const std::string_view user = of.user;
      const std::string_view session = of.session;
      if (of.user.empty())
        return statement.run(app);
      if (of.session.empty())
        return statement.run(app, user, std::string_view(more)...);
      return statement.run(app, user, session, std::string_view(more)...);
    };
    run(fmt::format("DELETE FROM memory_words WHERE rowid IN "
                    "(SELECT id FROM memories WHERE {})",
                    rows));
    return run(fmt::format("DELETE FROM memories WHERE {}", rows));
  }

  void remove_empty_users() {
    database_
      .prepare("DELETE FROM users WHERE id NOT IN (SELECT user FROM memories)")
      .run();
  }

  // FTS5 keeps the words of deleted rows until it merges its segments.
  void overwrite_words() {
    database_.execute(
      "INSERT INTO memory_words(memory_words) VALUES('optimize')");
  }

  sqlite_database database_;
  sqlite_statement find_user_;
  sqlite_statement add_user_;
  sqlite_statement add_entry_;
  sqlite_statement add_words_;
};

// The first memory that is added makes a missing file. So a search in a file
// whose name is wrong leaves no file behind, as with a store.
class sqlite_memories final : public memory_service {
public:
  explicit sqlite_memories(std::filesystem::path file)
    : file_(std::move(file)) {
    if (is_there()) {
      open_file();
      return;
    }
    std::error_code unused;
    const auto folder = file_.parent_path();
    if (!folder.empty() && !std::filesystem::is_directory(folder, unused))
      throw error(errc::store_failed,
                  fmt::format("open {}: there is no folder {}",
                              file_.string(),
                              folder.string()));
  }

protected:
  result<std::vector<std::string>>
  do_add(const owner_name& of,
         const std::vector<memory_entry>& entries,
         earlier before) override {
    using ids = std::vector<std::string>;
    return attempt<ids>(
      entries.empty() ? missing_file::stays : missing_file::made,
      [&](memory_file& on) -> result<ids> {
        return on.add(of, entries, before == earlier::replaced);
      });
  }

  result<std::vector<memory_entry>>
  do_search(const owner_name& user,
            const std::vector<std::string>& words,
            std::size_t limit) override {
    try {
      auto* const searched = open_search();
      return searched != nullptr
               ? searched->find(user, words, limit)
               : result<std::vector<memory_entry>>(std::vector<memory_entry>());
    } catch (const error& failure) {
      return failure;
    }
  }

  result<std::size_t> do_remove(const owner_name& of,
                                const std::vector<std::string>& ids) override {
    return attempt<std::size_t>(missing_file::stays,
                                [&](memory_file& on) -> result<std::size_t> {
                                  return on.remove(of, ids);
                                });
  }

  result<bool> do_remove_all(const owner_name& of) override {
    return attempt<bool>(
      missing_file::stays,
      [&](memory_file& on) -> result<bool> { return on.remove_all(of); });
  }

private:
  enum class missing_file : bool { stays, made };

  bool is_there() const {
    std::error_code unused;
    return std::filesystem::status(file_, unused).type()
           != std::filesystem::file_type::not_found;
  }

  // Returns the searches, which live as long as this; null while there is no
  // file. Waits for an addition only if that opens the file.
  sqlite_memory_search* open_search() {
    const std::lock_guard guard(search_mutex_);
    if (search_)
      return &*search_;
    if (!is_open_) {
      if (!is_there())
        return nullptr;
      const std::lock_guard writing(mutex_);
      open_file();
    }
    return &search_.emplace(file_);
  }

  // Requires `mutex_`.
  void open_file() {
    if (opened_)
      return;
    opened_.emplace(file_);
    is_open_ = true;
  }

  // Returns an empty answer if the file is missing and stays so.
  template <class T, class Work>
  result<T> attempt(missing_file then, const Work& work) {
    const std::lock_guard guard(mutex_);
    try {
      if (!opened_ && then == missing_file::stays && !is_there())
        return T{};
      open_file();
      return work(*opened_);
    } catch (const error& failure) {
      return failure;
    }
  }

  const std::filesystem::path file_;
  std::mutex mutex_; // Guards the next.
  std::optional<memory_file> opened_;
  std::atomic<bool> is_open_{false}; // `opened_` is set.
  std::mutex search_mutex_;          // Guards the next; taken before `mutex_`.
  std::optional<sqlite_memory_search> search_;
};

} // namespace

result<std::unique_ptr<memory_service>>
open_sqlite_memories(const std::filesystem::path& file) {
  try {
    return std::make_unique<sqlite_memories>(file);
  } catch (const error& failure) {
    return failure;
  }
}

} // namespace troupe
