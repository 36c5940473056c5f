// A connection that keeps reading an old state of a SQLite store.

#include "troupe/stores/sqlite/checkpointer.hpp"
#include "troupe/stores/sqlite/open.hpp"

#include "../outcome.hpp"
#include "temporary_folder.hpp"
#include <boost/test/unit_test.hpp>
#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/types.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::testing;

BOOST_AUTO_TEST_SUITE(sqlite_log_bound, *boost::unit_test::timeout(120))

namespace {

const owner_name session{"press", "ann", "s"};

constexpr std::uint64_t mebibyte = 1U << 20U;

// A reader of another program; it sees the state of the moment when it began.
class stopped_reader {
public:
  explicit stopped_reader(const std::filesystem::path& file) {
    BOOST_REQUIRE(sqlite3_open(file.c_str(), &connection_) == SQLITE_OK);
    execute("BEGIN; SELECT count(*) FROM log");
  }

  stopped_reader(const stopped_reader&) = delete;
  stopped_reader& operator=(const stopped_reader&) = delete;

  ~stopped_reader() { sqlite3_close(connection_); }

private:
  void execute(const char* sql) {
    BOOST_REQUIRE(sqlite3_exec(connection_, sql, nullptr, nullptr, nullptr)
                  == SQLITE_OK);
  }

  sqlite3* connection_ = nullptr;
};

// A store with one session that gets events of 100 KB each.
class filling_store {
public:
  explicit filling_store(
    std::optional<std::uint64_t> log_bytes_max,
    std::function<void()> on_warning = [] {},
    durability kept = durability::none)
    : store_(detail::open_sqlite_store(
               {.file = file(),
                .options = {.durability = kept,
                            .on_warning =
                              [this, on_warning](const auto& warning) {
                                {
                                  const std::lock_guard guard(mutex_);
                                  warnings_.push_back(warning);
                                }
                                on_warning();
                              },
                            .log_bytes_max = log_bytes_max},
                .log_bytes_warned = mebibyte})
               .value()) {
    store_change made;
    made.kind = change_kind::create;
    made.owner = session;
    made.event = make_event(0);
    made.session_revision = 0;
    store_->commit(std::array{made}).value();
  }

  ~filling_store() { static_cast<void>(store_->close()); }

  result<commit_outcome> append() {
    store_change change;
    change.owner = session;
    change.event = make_event(count_ + 1);
    change.session_revision = count_ + 1;
    auto outcome = store_->commit(std::array{change});
    count_ += outcome.has_value();
    return outcome;
  }

  std::uint64_t stored() {
    return store_->load_session({"press", "ann", "s"}, {})
      .value()
      .value()
      .scope.revision;
  }

  std::uint64_t count() const { return count_; }

  std::vector<std::string> warnings() const {
    const std::lock_guard guard(mutex_);
    return warnings_;
  }

  std::filesystem::path file() const { return folder_.path() / "s.db"; }

  std::uint64_t log_bytes() const {
    return std::filesystem::file_size(file().string() + "-wal");
  }

private:
  static event_ptr make_event(std::uint64_t number) {
    event said;
    said.id = fmt::format("e{}", number);
    said.timestamp = timestamp(std::chrono::seconds(1'700'000'000));
    said.actions.state_delta
      = delta::from_json({{"k", std::string(100'000, 'x')}}).value();
    return std::make_shared<const event>(std::move(said));
  }

  temporary_folder folder_;
  mutable std::mutex mutex_;
  std::vector<std::string> warnings_;
  std::unique_ptr<store> store_;
  std::uint64_t count_ = 0;
};

filling_store durable_store(std::optional<std::uint64_t> log_bytes_max = {}) {
  return filling_store(
    log_bytes_max, [] {}, durability::durable);
}

// Makes each attempt of SQLite to reserve space fail, as on a full disk: some
// builds allocate it, others write single bytes. No thread may use SQLite while
// it is constructed or destroyed.
class refused_reservations {
public:
  refused_reservations() {
    for (const auto& [name, call] : calls)
      BOOST_REQUIRE(unix_->xSetSystemCall(unix_, name, call) == SQLITE_OK);
  }

  refused_reservations(const refused_reservations&) = delete;
  refused_reservations& operator=(const refused_reservations&) = delete;

  ~refused_reservations() {
    for (const auto& [name, call] : calls)
      unix_->xSetSystemCall(unix_, name, nullptr);
  }

  std::size_t count() const noexcept { return count_; }

private:
  static int allocate(int, off_t, off_t) {
    ++count_;
    return ENOSPC;
  }

  // The index of the log also grows by single bytes.
  static bool is_log(int file) {
    const auto path
      = std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", file));
    return path.string().ends_with("-wal");
  }

  static ssize_t
  write(int file, const void* bytes, std::size_t size, off_t at) {
    if (size != 1 || !is_log(file))
      return ::pwrite(file, bytes, size, at);
    ++count_;
    errno = ENOSPC;
    return -1;
  }

  static inline const std::array<std::pair<const char*, sqlite3_syscall_ptr>, 3>
    calls{{{"fallocate", reinterpret_cast<sqlite3_syscall_ptr>(&allocate)},
           {"pwrite", reinterpret_cast<sqlite3_syscall_ptr>(&write)},
           {"pwrite64", reinterpret_cast<sqlite3_syscall_ptr>(&write)}}};
  static inline std::atomic<std::size_t> count_ = 0;

  sqlite3_vfs* const unix_ = sqlite3_vfs_find(nullptr);
};

} // namespace

BOOST_AUTO_TEST_CASE(the_log_of_a_durable_store_has_space_ahead) {
  auto on = durable_store();
  BOOST_TEST(on.log_bytes() == 2 * mebibyte);
  const stopped_reader reader(on.file()); // The log does not restart.
  for (int count = 0; count < 40; ++count) {
    on.append().value();
    BOOST_TEST(on.log_bytes() % mebibyte == 0U);
    BOOST_TEST(on.log_bytes() >= on.count() * 100'000 + mebibyte / 2);
  }
  BOOST_TEST(on.log_bytes() < 12 * mebibyte);
  BOOST_TEST(on.stored() == 40U);
}

BOOST_AUTO_TEST_CASE(a_log_without_syncs_reserves_nothing) {
  filling_store on({});
  BOOST_TEST(on.log_bytes() < mebibyte);
}

BOOST_AUTO_TEST_CASE(space_is_reserved_within_the_bound) {
  auto on = durable_store(3 * mebibyte);
  BOOST_TEST(on.log_bytes() == 2 * mebibyte);
  for (int count = 0; count < 100; ++count) {
    on.append().value();
    BOOST_TEST_REQUIRE(on.log_bytes() < 4 * mebibyte);
  }
}

BOOST_AUTO_TEST_CASE(a_disk_without_space_ahead_takes_commits) {
  const refused_reservations refused;
  auto on = durable_store();
  for (int count = 0; count < 20; ++count)
    on.append().value();
  BOOST_TEST(refused.count() > 0U);
  BOOST_TEST(on.log_bytes() % mebibyte != 0U);
  BOOST_TEST(on.stored() == 20U);
}

BOOST_AUTO_TEST_CASE(a_log_that_a_reader_holds_back_is_warned_of_once) {
  filling_store on({});
  {
    const stopped_reader reader(on.file());
    // Another thread checks the log beside the commits.
    while (on.warnings().empty() && on.count() < 1'000)
      on.append().value();
    for (int count = 0; count < 100; ++count)
      on.append().value();
  }
  const auto warnings = on.warnings();
  BOOST_TEST_REQUIRE(warnings.size() == 1U);
  BOOST_TEST(warnings[0].find("s.db-wal has grown") != std::string::npos);
  BOOST_TEST(on.stored() == on.count());
}

BOOST_AUTO_TEST_CASE(no_memory_for_a_checkpoint_is_no_end) {
  filling_store on({}, [] { throw std::bad_alloc(); });
  {
    const stopped_reader reader(on.file());
    while (on.warnings().empty() && on.count() < 1'000)
      on.append().value();
  }
  for (int count = 0; count < 100; ++count)
    on.append().value();
  BOOST_TEST(on.stored() == on.count());
}

// A checkpoint still running could be mistaken for a reader of another program.
BOOST_AUTO_TEST_CASE(a_checkpoint_of_the_store_itself_is_waited_for) {
  filling_store on({});
  sqlite_known_file file;
  sqlite_checkpointer checkpointer({.file = on.file()}, file);
  constexpr int many_frames = 1'000'000;
  BOOST_TEST(!checkpointer.note(many_frames));
  checkpointer.wait();
  // The checkpoint is done, so few frames are left to move.
  BOOST_TEST(checkpointer.note(1));
}

BOOST_AUTO_TEST_CASE(a_log_that_nobody_holds_back_is_not_warned_of) {
  filling_store on({});
  for (int count = 0; count < 300; ++count)
    on.append().value();
  BOOST_TEST(on.warnings().empty());
}

BOOST_AUTO_TEST_CASE(a_bounded_log_refuses_commits_until_the_reader_has_gone) {
  constexpr std::uint64_t bound = 4 * mebibyte;
  filling_store on(bound);
  {
    const stopped_reader reader(on.file());
    std::string failure;
    while (failure.empty() && on.count() < 1'000)
      if (const auto appended = on.append(); !appended)
        failure = appended.error().message();
    BOOST_TEST(failure.find("s.db-wal has reached its limit of 4 MiB")
               != std::string::npos);
    BOOST_TEST(code_of(on.append()) == "store_failed");
    BOOST_TEST(on.log_bytes() < bound + mebibyte);
    BOOST_TEST(on.stored() == on.count());
  }
  BOOST_TEST(code_of(on.append()) == "ok");
  for (int count = 0; count < 100; ++count)
    on.append().value();
  BOOST_TEST(on.log_bytes() < bound + mebibyte);
  BOOST_TEST(on.stored() == on.count());
}

BOOST_AUTO_TEST_SUITE_END()
