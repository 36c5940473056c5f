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
    : shared_{std::move(settings), {}, {}, false},
      readers_(shared_) {}

  // Looks at the file, and reads what is not folded, if there is one.
  void open() {
    if (inspect_sqlite_file(shared_.settings) == sqlite_contents::none) {
      // There is nothing: all that comes and is not ours is others'.
      shared_.is_filled = true;
      return;
    }
    is_there_ = true;
    writer_ = std::make_unique<sqlite_writer>(shared_);
  }

  result<commit_outcome>
  commit(std::span<const store_change> changes) override {
    if (changes.empty())
      return commit_outcome();
    return writing("commit", [this, changes] {
      auto outcome = writer().commit(changes);
      tidy_up();
      return outcome;
    });
  }

  result<std::vector<moved_owner>> changed_elsewhere() override {
    if (!is_there())
      return std::vector<moved_owner>();
    return writing("read", [this] { return writer().changed_elsewhere(); });
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
      writer_->finish();
      return true;
    });
    writer_.reset();
    return finished ? result<void>() : finished.error();
  }

private:
  // The one place where exceptions become results.
  template <class T, class Act>
  result<T> guarded(std::string_view attempt, const Act& act) const {
    try {
      return act();
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

  template <class Act>
  auto writing(std::string_view attempt, const Act& act)
    -> result<decltype(act())> {
    auto done = guarded<decltype(act())>(attempt, act);
    // After a failure nobody knows what the file holds: the next writer opens
    // it again and reads what is there.
    if (!done)
      writer_.reset();
    return done;
  }

  template <class T, class Load>
  result<T> loading(const std::string& what, const Load& load) {
    return guarded<T>("load " + what, [this, &load] {
      return is_there() ? readers_.use(load) : T();
    });
  }

  // Whether there is a file by now, made by this process or another.
  bool is_there() {
    if (!is_there_
        && inspect_sqlite_file(shared_.settings) == sqlite_contents::ours) {
      bring_forward(shared_.settings);
      is_there_ = true;
    }
    return is_there_;
  }

  sqlite_writer& writer() {
    if (!writer_) {
      writer_ = std::make_unique<sqlite_writer>(shared_);
      is_there_ = true;
    }
    return *writer_;
  }

  // The commit has succeeded by now, so a failure here is none of it; if it
  // lasts, the next one fails.
  void tidy_up() {
    try {
      if (!checkpointer_)
        checkpointer_ = std::make_unique<sqlite_checkpointer>(shared_.settings);
      if (checkpointer_->note(writer_->log_frames()))
        writer_->checkpoint();
    } catch (const std::exception&) {
      writer_.reset();
    }
  }

  sqlite_shared shared_;
  std::atomic<bool> is_there_ = false;
  reader_pool readers_;
  std::unique_ptr<sqlite_writer> writer_; // Of the thread that commits.
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
