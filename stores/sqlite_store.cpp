#include "troupe/stores/sqlite_store.hpp"

#include "troupe/stores/sqlite_check.hpp"
#include "troupe/stores/sqlite_checkpointer.hpp"
#include "troupe/stores/sqlite_reader.hpp"
#include "troupe/stores/sqlite_schema.hpp"
#include "troupe/stores/sqlite_settings.hpp"
#include "troupe/stores/sqlite_writer.hpp"

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

constexpr std::size_t readers_max = 6;

// Connections for loads: opened on demand, kept for the next.
class reader_pool {
public:
  explicit reader_pool(sqlite_shared& shared) : shared_(shared) {}

  template <class Load>
  auto use(const Load& load) {
    auto reader = take();
    try {
      auto loaded = load(*reader);
      give_back(std::move(reader));
      return loaded;
    } catch (...) {
      // The next one opens the file anew, in case that helps.
      give_back(nullptr);
      throw;
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
      if (!idle_.empty()) {
        auto reader = std::move(idle_.back());
        idle_.pop_back();
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

class sqlite_store : public store {
public:
  explicit sqlite_store(sqlite_settings settings)
    : shared_{std::move(settings), {}, {}, false, {}},
      readers_(shared_) {}

  // Looks at the file, and reads what is not folded, if there is one.
  void open() {
    if (inspect_sqlite_file(shared_.settings) == sqlite_contents::none) {
      // There is nothing: all that comes and is not ours is others'.
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
                   "commit: the store was opened for reading alone");
    return writing<commit_outcome>(
      "commit",
      [this, changes] {
        count_again();
        // A load has found it lost, and nobody has been told yet.
        if (has_lost_)
          return commit_outcome{owners_of(changes)};
        auto& used = writer();
        used.make_room(log_bound_);
        auto outcome = used.commit(changes);
        tidy_up();
        return outcome;
      },
      // Nothing of it is in the file, and none of the owners is what it was.
      [changes] { return commit_outcome{owners_of(changes)}; });
  }

  result<std::vector<moved_owner>> changed_elsewhere() override {
    using moved = std::vector<moved_owner>;
    return writing<moved>(
      "read",
      [this] {
        count_again();
        return is_there() && !is_read_only() ? writer().changed_elsewhere()
                                             : moved();
      },
      [] { return moved(); });
  }

  std::optional<lost_history> take_lost_history() override {
    // Without the flag each commit would wait for the loads.
    if (!has_lost_.exchange(false))
      return std::nullopt;
    const auto lost = [this] {
      const std::shared_lock using_file(connections_);
      return lost_;
    }();
    const auto missing = count_lost_commits();
    is_uncounted_ = !missing;
    return lost_history{
      missing.value_or(shared_.marks.own_count()),
      fmt::format("{}: {}; {}. What the file holds counts from here on",
                  shared_.settings.file.string(),
                  lost->what(),
                  missing
                    ? fmt::format("{} commit{} of this process {} lost",
                                  *missing,
                                  *missing == 1 ? "" : "s",
                                  *missing == 1 ? "is" : "are")
                    : "how many commits are lost shows when it can be opened")};
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
      found->resize(ids.size()); // There is no file yet.
    return found;
  }

  result<std::vector<session_row>> list(const row_query& query) override {
    return loading<std::vector<session_row>>(
      "the sessions of " + query.app,
      [&query](auto& reader) { return reader.list(query); });
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
  // The one place where exceptions become results, but for a lost history.
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

  // `instead` is the outcome when the file has lost its history.
  template <class T, class Act, class Instead>
  result<T>
  writing(std::string_view attempt, const Act& act, const Instead& instead) {
    const auto epoch = epoch_.load();
    try {
      const std::shared_lock using_file(connections_);
      auto done = guarded<T>(attempt, act);
      // After a failure nobody knows what the file holds: the next writer opens
      // it again and reads what is there.
      if (!done)
        writer_.reset();
      return done;
    } catch (const sqlite_history_lost& lost) {
      leave_history(lost, epoch);
      return instead();
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

  // Closes all connections and forgets what was read: the next call opens what
  // is under the path then. `take_lost_history` tells the owners.
  void leave_history(const sqlite_history_lost& lost, std::uint64_t epoch) {
    const std::unique_lock alone(connections_);
    if (epoch != epoch_)
      return; // Another call was first.
    ++epoch_;
    lost_ = lost;
    has_lost_ = true;
    if (lost.why() != sqlite_history_lost::cause::went_back)
      foreign_log_ = lost.log();
    checkpointer_.reset();
    readers_.clear();
    writer_.reset();
    shared_.tail.reset(0);
    shared_.is_filled = false;
    shared_.foreign = foreign_changes();
    shared_.marks.forget_newest();
    is_there_ = false;
  }

  // The log of a file that was replaced must not be applied to the one in its
  // place. Requires `connections_`.
  void expect_own_log() const {
    if (!foreign_log_)
      return;
    std::error_code failed;
    const auto& file = shared_.settings.file;
    if (salt_of_log_beside(file) == foreign_log_
        && std::filesystem::file_size(file, failed) > 0 && !failed)
      throw error(
        errc::store_failed,
        fmt::format("{0} was replaced or overwritten while it was in use, and "
                    "{0}-wal belongs to the file before: stop all programs "
                    "that use it, delete {0}-wal and {0}-shm, and put the copy "
                    "in place again",
                    file.string()));
  }

  // Unset if the file does not open.
  std::optional<std::size_t> count_lost_commits() {
    const std::shared_lock using_file(connections_);
    auto count = guarded<std::size_t>("count lost commits", [this] {
      if (is_there())
        return writer().forget_lost_commits();
      // As at the first opening.
      shared_.is_filled = true;
      return shared_.marks.forget_missing([](const auto&) { return false; });
    });
    if (!count)
      writer_.reset();
    return count ? std::optional(*count) : std::nullopt;
  }

  // Once the file opens again after a loss: what others have written to it
  // meanwhile is not known, so that every owner has to load once more.
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

  // Whether there is a file by now, made by this process or another.
  bool is_there() {
    if (!is_there_)
      expect_own_log();
    if (!is_there_
        && inspect_sqlite_file(shared_.settings) == sqlite_contents::ours) {
      bring_forward(shared_.settings);
      is_there_ = true;
    }
    return is_there_;
  }

  sqlite_writer& writer() {
    if (!writer_) {
      expect_own_log();
      writer_ = std::make_unique<sqlite_writer>(shared_);
      is_there_ = true;
    }
    return *writer_;
  }

  // The commit has succeeded by now, so a failure here is none of it; if it
  // lasts, the next one fails.
  void tidy_up() {
    try {
      log_bound_.note(writer_->log_frames());
      if (!checkpointer_)
        checkpointer_ = std::make_unique<sqlite_checkpointer>(shared_.settings);
      if (checkpointer_->note(writer_->log_frames()))
        writer_->checkpoint();
    } catch (const std::exception&) {
      writer_.reset();
    }
  }

  sqlite_shared shared_;
  // Held by all that uses a connection; alone, to close all of them.
  std::shared_mutex connections_;
  std::atomic<std::uint64_t> epoch_ = 0; // Counts lost histories.
  std::atomic<bool> has_lost_ = false;
  std::optional<sqlite_history_lost> lost_; // The last one.
  // It was told without a number. Of the thread that commits.
  bool is_uncounted_ = false;
  std::optional<sqlite_log_salt> foreign_log_;
  std::atomic<bool> is_there_ = false;
  reader_pool readers_;
  // Of the thread that commits.
  std::unique_ptr<sqlite_writer> writer_;
  sqlite_log_bound log_bound_{shared_.settings};
  std::unique_ptr<sqlite_checkpointer> checkpointer_;
};

} // namespace

namespace detail {

result<std::unique_ptr<store>> open_sqlite_store(sqlite_settings settings) {
  try {
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
