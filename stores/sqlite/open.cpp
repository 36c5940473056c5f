#include "troupe/stores/sqlite/open.hpp"

#include "troupe/stores/sqlite/check.hpp"
#include "troupe/stores/sqlite/checkpointer.hpp"
#include "troupe/stores/sqlite/reader.hpp"
#include "troupe/stores/sqlite/schema.hpp"
#include "troupe/stores/sqlite/settings.hpp"
#include "troupe/stores/sqlite/writer.hpp"
#include "troupe/stores/turns/file.hpp"
#include "troupe/stores/turns/write_turns.hpp"

#include <fmt/format.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <shared_mutex>
#include <utility>

namespace troupe {

namespace {

// Invariant: an acknowledged commit is in the file that the path names, or the
// store reports a lost history.
//
// Every use of a connection holds `connections_` shared. `leave_history` holds
// it alone and closes all connections, so afterwards no thread reads from or
// writes to a lost file. Owners learn of the loss by the next commit, whose
// changes are all refused, and by `take_lost_history`.

constexpr std::size_t readers_max = 6;

// Maximum number of attempts of a load. A load is repeated if no program used
// the file when it was opened, and one has changed it since.
constexpr int tries_max = 5;

// Connections for loads: opened on demand and kept for later loads.
class reader_pool {
public:
  explicit reader_pool(sqlite_shared& shared) : shared_(shared) {}

  template <class Load>
  auto use(const Load& load) {
    for (int tries = 1;; ++tries) {
      auto reader = take();
      try {
        auto loaded = load(*reader);
        const bool is_one_state = !reader->database().has_come_into_use();
        if (reader->database().keeps_writers_out() || !is_one_state)
          reader.reset();
        give_back(std::move(reader));
        if (is_one_state)
          return loaded;
      } catch (const sqlite_history_lost&) {
        give_back(nullptr);
        throw;
      } catch (...) {
        // A new connection may succeed. `check_file` comes first: an
        // overwritten file can read as a damaged one, and the loss is the
        // true cause.
        give_back(nullptr);
        reader->check_file();
        if (!reader->database().has_come_into_use())
          throw;
      }
      if (tries == tries_max)
        throw error(errc::store_failed,
                    fmt::format("{} changes while it is read: another program "
                                "uses it",
                                shared_.settings.file.string()));
    }
  }

  /// Requires that no reader is in use.
  void clear() {
    const std::lock_guard guard(mutex_);
    idle_.clear();
  }

private:
  std::unique_ptr<sqlite_reader> take() {
    {
      std::unique_lock lock(mutex_);
      returned_.wait(lock, [this] { return used_ < readers_max; });
      ++used_;
      while (!idle_.empty()) {
        auto reader = std::move(idle_.back());
        idle_.pop_back();
        if (!reader->database().has_come_into_use())
          return reader;
      }
    }
    try {
      return std::make_unique<sqlite_reader>(shared_);
    } catch (...) {
      give_back(nullptr);
      throw;
    }
  }

  void give_back(std::unique_ptr<sqlite_reader> reader) {
    {
      const std::lock_guard guard(mutex_);
      --used_;
      if (reader)
        idle_.push_back(std::move(reader));
    }
    returned_.notify_one();
  }

  sqlite_shared& shared_; // The store's, which outlives this.
  std::mutex mutex_;
  std::condition_variable returned_;
  std::vector<std::unique_ptr<sqlite_reader>> idle_;
  std::size_t used_ = 0;
};

// The processes that use one file are on one machine. Null if the store takes
// no turns.
std::unique_ptr<turn_line> make_line(const sqlite_settings& settings) {
  if (!settings.takes_turns)
    return nullptr;
  auto path = settings.file;
  path += "-turns";
  return std::make_unique<turn_file>(std::move(path));
}

class sqlite_store : public store {
public:
  explicit sqlite_store(sqlite_settings settings)
    : shared_{std::move(settings), {}, {}, false, {}, {}, {}},
      readers_(shared_),
      turns_(make_line(shared_.settings), {}, [this] { follow(); }) {}

  // Inspects the file and, if it exists, reads the rows that are not folded.
  void open() {
    if (inspect_sqlite_file(shared_.settings) == sqlite_contents::none) {
      // There are no rows yet. Every row that appears later and is not from
      // this store comes from another process.
      shared_.is_filled = true;
      return;
    }
    if (is_read_only()) {
      expect_newest_layout(shared_.settings);
      readers_.use([](sqlite_reader& reader) {
        reader.fill_tail();
        return true;
      });
      is_there_ = true;
      return;
    }
    is_there_ = true;
    writer_ = std::make_unique<sqlite_writer>(shared_);
  }

  result<commit_outcome>
  commit(std::span<const store_change> changes) override {
    if (changes.empty())
      return commit_outcome();
    if (is_read_only())
      return error(errc::store_failed,
                   "commit: the store was opened read-only");
    turns_.begin_commit(changes);
    auto written = writing<commit_outcome>(
      "commit",
      [this, changes] {
        count_again();
        // A load has found the loss, and the owners do not know yet. Writing
        // would mix both histories.
        if (has_lost_)
          return commit_outcome{owners_of(changes)};
        auto& used = writer();
        // A running checkpoint of this store counts as a reader, so the limit
        // would refuse the commit without a reason.
        if (log_bound_.is_reached() && checkpointer_)
          checkpointer_->wait();
        used.make_room(log_bound_);
        auto outcome = used.commit(changes);
        tidy_up();
        return outcome;
      },
      // Nothing is written, and all owners of the changes count as moved.
      [changes] { return commit_outcome{owners_of(changes)}; });
    if (written)
      turns_.end_commit(changes, *written);
    else
      turns_.end_failed();
    return written;
  }

  result<std::vector<moved_owner>> changed_elsewhere() override {
    using moved = std::vector<moved_owner>;
    turns_.begin_look();
    auto found = writing<moved>(
      "read",
      [this] {
        count_again();
        return is_there() && !is_read_only() ? writer().changed_elsewhere()
                                             : moved();
      },
      [] { return moved(); });
    if (found)
      turns_.end_look(*found);
    else
      turns_.end_failed();
    return found;
  }

  std::optional<lost_history> take_lost_history() override {
    // Checks the flag first: the lock would make each commit wait for loads.
    if (!has_lost_.exchange(false))
      return std::nullopt;
    if (has_appeared_.exchange(false))
      return lost_history{
        0,
        fmt::format("{}: a file has appeared in place of the one that was "
                    "lost. The store continues with its content",
                    shared_.settings.file.string())};
    const auto lost = [this] {
      const std::shared_lock using_file(connections_);
      return lost_;
    }();
    const auto missing = count_lost_commits();
    is_uncounted_ = !missing;
    return lost_history{
      missing.value_or(shared_.marks.own_count()),
      fmt::format(
        "{}: {}; {}. The store continues with the content of the file",
        shared_.settings.file.string(),
        lost->what(),
        missing
          ? fmt::format("{} commit{} of this process {} lost",
                        *missing,
                        *missing == 1 ? "" : "s",
                        *missing == 1 ? "is" : "are")
          : "the number of lost commits is reported once it can be opened")};
  }

  result<std::optional<stored_scope>>
  load_scope(const owner_name& owner) override {
    return loading<std::optional<stored_scope>>(
      to_string(owner),
      [&owner](sqlite_reader& reader) { return reader.load_scope(owner); });
  }

  result<std::optional<stored_session>>
  load_session(const session_key& key, const load_options& options) override {
    return loading<std::optional<stored_session>>(
      to_string(key), [&key, &options](sqlite_reader& reader) {
        return reader.load_session(key, options);
      });
  }

  result<std::optional<stored_session>>
  load_session_at(const session_key& key,
                  std::uint64_t revision,
                  std::size_t events_max) override {
    return loading<std::optional<stored_session>>(
      to_string(key), [&key, revision, events_max](sqlite_reader& reader) {
        return reader.load_session_at(key, revision, events_max);
      });
  }

  result<std::optional<earlier_shared_state>>
  load_shared_state_at(const session_key& key,
                       std::uint64_t revision) override {
    return loading<std::optional<earlier_shared_state>>(
      "user and app of " + to_string(key),
      [&key, revision](sqlite_reader& reader) {
        return reader.load_shared_state_at(key, revision);
      });
  }

  result<std::vector<event_ptr>> load_events(const session_key& key,
                                             std::uint64_t first,
                                             std::uint64_t last) override {
    return loading<std::vector<event_ptr>>(
      "events of " + to_string(key), [&key, first, last](auto& reader) {
        return reader.load_events(key, first, last);
      });
  }

  result<std::vector<event_ptr>>
  find_events(const session_key& key,
              std::span<const std::string> ids) override {
    auto found = loading<std::vector<event_ptr>>(
      "events of " + to_string(key),
      [&key, ids](auto& reader) { return reader.find_events(key, ids); });
    if (found)
      found->resize(ids.size()); // No file yet: null for each id.
    return found;
  }

  bool can_fork() const noexcept override { return true; }

  bool can_trim() const noexcept override { return true; }

  result<std::vector<session_row>> list(const row_query& query) override {
    return loading<std::vector<session_row>>(
      "the sessions of " + query.app,
      [&query](auto& reader) { return reader.list(query); });
  }

  result<std::vector<session_row>>
  list_by_name(const name_query& query) override {
    return loading<std::vector<session_row>>(
      "the sessions of " + query.app,
      [&query](auto& reader) { return reader.list_by_name(query); });
  }

  result<std::vector<std::string>>
  list_users(const user_query& query) override {
    return loading<std::vector<std::string>>(
      "the users of " + query.app,
      [&query](auto& reader) { return reader.list_users(query); });
  }

  result<std::vector<std::string>> list_apps(const app_query& query) override {
    return loading<std::vector<std::string>>(
      "the apps", [&query](auto& reader) { return reader.list_apps(query); });
  }

  bool can_list_runs() const noexcept override { return true; }

  result<std::vector<open_run>> list_runs(const run_query& query) override {
    return loading<std::vector<open_run>>(
      "the open runs",
      [&query](auto& reader) { return reader.list_runs(query); });
  }

  result<void> renew_holder(const std::string& id) override {
    return write_holder("renew the holder of runs",
                        [&id](sqlite_writer& used) { used.renew_holder(id); });
  }

  result<void> remove_holder(const std::string& id) override {
    return write_holder("remove the holder of runs",
                        [&id](sqlite_writer& used) { used.remove_holder(id); });
  }

  result<std::vector<std::string>>
  check(const std::function<void(double done)>& on_progress) override {
    return loading<std::vector<std::string>>(
      "everything", [&on_progress](auto& reader) {
        return check_sqlite_store(reader, on_progress);
      });
  }

  result<void> close() override {
    readers_.clear();
    checkpointer_.reset();
    if (!writer_)
      return {};
    auto finished = guarded<bool>("close", [this] {
      try {
        writer_->finish();
      } catch (const sqlite_history_lost& lost) {
        throw error(
          errc::store_failed,
          fmt::format("{}: {}", shared_.settings.file.string(), lost.what()));
      }
      return true;
    });
    writer_.reset();
    return finished ? result<void>() : finished.error();
  }

private:
  // Turns exceptions into results, except a lost history. No other function
  // does that.
  template <class T, class Act>
  result<T> guarded(std::string_view attempt, const Act& act) const {
    try {
      return act();
    } catch (const sqlite_history_lost&) {
      throw;
    } catch (const error& failure) {
      return error(failure.code(),
                   fmt::format("{}: {}", attempt, failure.message()));
    } catch (const std::bad_alloc&) {
      return error(errc::store_failed,
                   fmt::format("{}: out of memory", attempt));
    } catch (const std::exception& failure) {
      return error(errc::store_failed,
                   fmt::format("{}: {}", attempt, failure.what()));
    }
  }

  // Runs `act` for the thread that commits. Returns `instead()` if the file has
  // lost its history.
  template <class T, class Act, class Instead>
  result<T>
  writing(std::string_view attempt, const Act& act, const Instead& instead) {
    const auto epoch = epoch_.load();
    try {
      const std::shared_lock using_file(connections_);
      auto done = guarded<T>(attempt, act);
      // The content of the file is unknown after a failure. The next writer
      // opens the file again and reads it.
      if (!done)
        drop_writer();
      return done;
    } catch (const sqlite_history_lost& lost) {
      leave_history(lost, epoch);
      return instead();
    }
  }

  // Reads the commits of other processes while this one waits for its turn, so
  // that its turn need not begin with that. A failure is not reported here: it
  // drops the writer, and a lasting one fails the call that waits. The owners
  // learn of a loss by that call, as of one that a load finds.
  void follow() {
    static_cast<void>(writing<bool>(
      "read",
      [this] {
        if (writer_)
          writer_->follow();
        return true;
      },
      [] { return true; }));
  }

  // A file that does not exist has no holders. A lost file has other ones, and
  // the owners learn of the loss by the next commit.
  template <class Write>
  result<void> write_holder(std::string_view attempt, const Write& write) {
    if (is_read_only())
      return error(errc::store_failed,
                   fmt::format("{}: the store was opened read-only", attempt));
    auto written = writing<bool>(
      attempt,
      [this, &write] {
        if (is_there()) {
          write(writer());
          tidy_up();
        }
        return true;
      },
      [] { return true; });
    return written ? result<void>() : written.error();
  }

  // Closes the writer. The check comes first, because an overwritten file can
  // read as a damaged one.
  void drop_writer() {
    const auto dropped = std::move(writer_);
    try {
      if (dropped)
        dropped->check_file();
    } catch (const error&) {
      // The earlier failure is reported.
    }
  }

  template <class T, class Load>
  result<T> loading(const std::string& what, const Load& load) {
    for (bool again = false;; again = true) {
      const auto epoch = epoch_.load();
      try {
        const std::shared_lock using_file(connections_);
        return guarded<T>("load " + what, [this, &load] {
          return is_there() ? readers_.use(load) : T();
        });
      } catch (const sqlite_history_lost& lost) {
        if (is_read_only() || again)
          return error(errc::store_failed,
                       fmt::format("load {}: {}", what, lost.what()));
        leave_history(lost, epoch);
      }
    }
  }

  // Closes all connections and forgets the content of the file. The next
  // call opens the file that the path names then. `take_lost_history`
  // informs the owners.
  //
  // `epoch` counts losses. Several threads may find the same loss; only the
  // first may forget, or the next would drop a file that was opened since.
  void leave_history(const sqlite_history_lost& lost, std::uint64_t epoch) {
    const std::unique_lock alone(connections_);
    if (epoch != epoch_)
      return; // Another call has handled this loss.
    ++epoch_;
    lost_ = lost;
    has_lost_ = true;
    has_appeared_ = false;
    if (lost.why() != sqlite_history_lost::cause::went_back)
      foreign_logs_.insert(lost.logs().begin(), lost.logs().end());
    checkpointer_.reset();
    readers_.clear();
    writer_.reset();
    shared_.tail.reset(0);
    shared_.hot.clear();
    shared_.is_filled = false;
    shared_.foreign = foreign_changes();
    shared_.marks.forget_newest();
    shared_.file.forget();
    is_there_ = false;
  }

  // Refuses to open if the write-ahead log beside the file is that
  // of a replaced file: SQLite would apply it to the new file.
  // Requires `connections_`.
  void expect_own_log() const {
    if (foreign_logs_.empty())
      return;
    std::error_code failed;
    const auto& file = shared_.settings.file;
    const auto beside = salt_of_log_beside(file);
    if (beside && foreign_logs_.contains(*beside)
        && std::filesystem::file_size(file, failed) > 0 && !failed)
      throw error(
        errc::store_failed,
        fmt::format("{0} was replaced or overwritten while it was in use, and "
                    "{0}-wal belongs to the file before: stop all programs "
                    "that use it, delete {0}-wal and {0}-shm, and put the copy "
                    "in place again",
                    file.string()));
  }

  // Returns nothing if the file does not open or is lost again.
  std::optional<std::size_t> count_lost_commits() {
    const auto epoch = epoch_.load();
    try {
      const std::shared_lock using_file(connections_);
      auto count = guarded<std::size_t>("count lost commits", [this] {
        if (is_there())
          return writer().forget_lost_commits();
        was_missing_ = true;
        // Same state as after the first opening of a missing file.
        shared_.is_filled = true;
        return shared_.marks.forget_missing([](const auto&) { return false; });
      });
      if (!count)
        drop_writer();
      return count ? std::optional(*count) : std::nullopt;
    } catch (const sqlite_history_lost& lost) {
      leave_history(lost, epoch);
      return std::nullopt;
    }
  }

  // Reports the loss again once the file opens: changes that other processes
  // made meanwhile are unknown, so every owner has to load again.
  void count_again() {
    if (!is_uncounted_)
      return;
    writer();
    is_uncounted_ = false;
    has_lost_ = true;
  }

  static std::vector<owner_name>
  owners_of(std::span<const store_change> changes) {
    std::set<owner_name> owners;
    for (const auto& change : changes) {
      owners.insert(change.owner);
      owners.insert({change.owner.app, change.owner.user});
      owners.insert({change.owner.app});
    }
    return {owners.begin(), owners.end()};
  }

  bool is_read_only() const noexcept {
    return shared_.settings.options.read_only;
  }

  // Returns true if the file exists by now, made by this process or another.
  bool is_there() {
    if (!is_there_)
      expect_own_log();
    if (!is_there_
        && inspect_sqlite_file(shared_.settings) == sqlite_contents::ours) {
      bring_forward(shared_.settings);
      is_there_ = true;
      note_appeared();
    }
    return is_there_;
  }

  // A file that has appeared after a loss may be an older copy. The owners
  // learn of it as of a loss.
  void note_appeared() {
    if (was_missing_.exchange(false)) {
      has_appeared_ = true;
      has_lost_ = true;
    }
  }

  sqlite_writer& writer() {
    if (!writer_) {
      expect_own_log();
      if (was_missing_
          && inspect_sqlite_file(shared_.settings) != sqlite_contents::none)
        note_appeared();
      writer_ = std::make_unique<sqlite_writer>(shared_);
      was_missing_ = false;
      is_there_ = true;
    }
    return *writer_;
  }

  // Runs after the commit has succeeded, so its failures are not reported. A
  // lasting failure makes the next commit fail.
  void tidy_up() {
    try {
      log_bound_.note(writer_->log_frames());
      if (!checkpointer_)
        checkpointer_ = std::make_unique<sqlite_checkpointer>(shared_.settings,
                                                              shared_.file);
      if (checkpointer_->note(writer_->log_frames()))
        writer_->checkpoint();
    } catch (const std::exception&) {
      writer_.reset();
    }
  }

  sqlite_shared shared_;
  // Held shared by every use of a connection, alone to close all of them.
  std::shared_mutex connections_;
  std::atomic<std::uint64_t> epoch_ = 0; // Number of lost histories.
  std::atomic<bool> has_lost_ = false;
  std::optional<sqlite_history_lost> lost_; // The last loss.
  // True if a loss was reported without a number of commits. Used by the thread
  // that commits.
  bool is_uncounted_ = false;
  // Salts of the write-ahead logs of lost files.
  std::set<sqlite_log_salt> foreign_logs_;
  std::atomic<bool> is_there_ = false;
  // The file was missing after a loss.
  std::atomic<bool> was_missing_ = false;
  std::atomic<bool> has_appeared_ = false;
  reader_pool readers_;
  // The following are used by the thread that commits.
  std::unique_ptr<sqlite_writer> writer_;
  sqlite_log_bound log_bound_{shared_.settings};
  std::unique_ptr<sqlite_checkpointer> checkpointer_;
  write_turns turns_;
};

} // namespace

namespace detail {

result<std::unique_ptr<store>> open_sqlite_store(sqlite_settings settings) {
  if (settings.options.log_bytes_max == std::uint64_t{0})
    return error(errc::invalid_argument,
                 "log_bytes_max is 0; leave it unset for no limit");
  try {
    // Connections are opened later too, and the working folder may change.
    if (settings.file.has_filename())
      settings.file = std::filesystem::absolute(settings.file);
    auto made = std::make_unique<sqlite_store>(std::move(settings));
    made->open();
    return made;
  } catch (const error& failure) {
    return failure;
  } catch (const std::exception& failure) {
    return error(errc::store_failed, failure.what());
  }
}

} // namespace detail

result<std::unique_ptr<store>>
open_sqlite_store(const std::filesystem::path& file,
                  const store_options& options) {
  return detail::open_sqlite_store({.file = file, .options = options});
}

} // namespace troupe
