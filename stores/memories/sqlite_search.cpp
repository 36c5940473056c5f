#include "troupe/stores/memories/sqlite_search.hpp"

#include "troupe/stores/memories/form.hpp"
#include "troupe/stores/memory_words.hpp"
#include "troupe/stores/sqlite/database.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace troupe {

namespace {

// Connections that are kept for later searches; as many as a runtime has
// threads for files and memories.
constexpr std::size_t idle_max = 4;

sqlite_database open_for_searches(const std::filesystem::path& file) {
  sqlite_settings settings;
  settings.file = file;
  sqlite_database database(settings, sqlite_role::reader);
  // The default of 2 MiB is less than the index of one user may be.
  database.execute("PRAGMA cache_size=-16384");
  return database;
}

} // namespace

// One search at a time. Failures are thrown.
class sqlite_memory_search::connection {
public:
  explicit connection(const std::filesystem::path& file)
    : database_(open_for_searches(file)),
      find_user_(
        database_.prepare("SELECT id FROM users WHERE app=?1 AND user=?2")),
      count_(database_.prepare("SELECT count(*) FROM memories WHERE user=?1")),
      find_word_(database_.prepare(
        "SELECT rowid FROM memory_words WHERE memory_words MATCH ?1")),
      time_(database_.prepare("SELECT time FROM memories WHERE id=?1")),
      load_(database_.prepare(
        "SELECT session, event, time, body FROM memories WHERE id=?1")) {}

  std::vector<memory_entry> find(const owner_name& user,
                                 const std::vector<std::string>& words,
                                 std::size_t limit) {
    const sqlite_transaction reading(database_, sqlite_transaction::kind::read);
    const auto number = known_user(user);
    if (!number)
      return {};
    return load(best_rows(scores_of(*number, words), limit));
  }

private:
  using row_scores = std::unordered_map<std::int64_t, std::int64_t>;

  std::optional<std::int64_t> known_user(const owner_name& of) {
    auto rows
      = find_user_.rows(std::string_view(of.app), std::string_view(of.user));
    return rows.next() ? std::optional(rows.integer(0)) : std::nullopt;
  }

  // The score of each memory of the user that has one of the words.
  row_scores scores_of(std::int64_t user,
                       const std::vector<std::string>& words) {
    std::uint64_t all = 0;
    {
      auto rows = count_.rows(user);
      rows.next();
      all = static_cast<std::uint64_t>(rows.integer(0));
    }
    row_scores scores;
    std::vector<std::int64_t> with_word;
    for (const auto& word : words) {
      with_word.clear();
      // Words have no quotes, so they need no escape.
      const auto wanted = fmt::format(R"("@{}" "{}")", user, word);
      auto rows = find_word_.rows(std::string_view(wanted));
      while (rows.next())
        with_word.push_back(rows.integer(0));
      for (const auto row : with_word)
        scores[row] += word_weight(all, with_word.size());
    }
    return scores;
  }

  // The best rows, the best first.
  std::vector<std::int64_t> best_rows(const row_scores& scores,
                                      std::size_t limit) {
    const auto count = std::min(limit, scores.size());
    if (count == 0)
      return {};
    std::vector<std::int64_t> values;
    values.reserve(scores.size());
    for (const auto& [row, score] : scores)
      values.push_back(score);
    const auto last = values.begin() + static_cast<std::ptrdiff_t>(count) - 1;
    std::ranges::nth_element(values, last, std::greater<>());
    // Only these need their time.
    std::vector<std::tuple<std::int64_t, std::int64_t, std::int64_t>> places;
    for (const auto& [row, score] : scores)
      if (score >= *last)
        places.emplace_back(score, time_of(row), row);
    std::ranges::sort(places, std::greater<>());
    places.resize(count);
    std::vector<std::int64_t> best;
    best.reserve(places.size());
    for (const auto& each : places)
      best.push_back(std::get<2>(each));
    return best;
  }

  std::int64_t time_of(std::int64_t row) {
    auto rows = time_.rows(row);
    if (!rows.next())
      throw without_memory(row);
    return rows.integer(0);
  }

  std::vector<memory_entry> load(const std::vector<std::int64_t>& numbers) {
    std::vector<memory_entry> found;
    for (const auto number : numbers) {
      auto rows = load_.rows(number);
      if (!rows.next())
        throw without_memory(number);
      auto& added = found.emplace_back();
      added.session = rows.text(0);
      added.id = rows.text(1);
      added.timestamp
        = troupe::timestamp(std::chrono::microseconds(rows.integer(2)));
      if (auto read = read_memory_body(added, rows.text(3)); !read)
        throw read.error();
    }
    return found;
  }

  error without_memory(std::int64_t row) const {
    return {errc::corrupt,
            fmt::format("use {}: row {} of memory_words has no memory",
                        sqlite3_db_filename(database_.connection(), "main"),
                        row)};
  }

  sqlite_database database_;
  sqlite_statement find_user_;
  sqlite_statement count_;
  sqlite_statement find_word_;
  sqlite_statement time_;
  sqlite_statement load_;
};

sqlite_memory_search::sqlite_memory_search(const std::filesystem::path& file)
  : file_(real_path(file)) {}

sqlite_memory_search::~sqlite_memory_search() = default;

result<std::vector<memory_entry>>
sqlite_memory_search::find(const owner_name& user,
                           const std::vector<std::string>& words,
                           std::size_t limit) {
  try {
    auto used = take();
    auto found = used->find(user, words, limit);
    give_back(std::move(used)); // Not after a failure.
    return found;
  } catch (const error& failure) {
    return failure;
  }
}

std::unique_ptr<sqlite_memory_search::connection> sqlite_memory_search::take() {
  {
    const std::lock_guard guard(mutex_);
    if (!idle_.empty()) {
      auto taken = std::move(idle_.back());
      idle_.pop_back();
      return taken;
    }
  }
  return std::make_unique<connection>(file_);
}

void sqlite_memory_search::give_back(std::unique_ptr<connection> used) {
  const std::lock_guard guard(mutex_);
  if (idle_.size() < idle_max)
    idle_.push_back(std::move(used));
}

} // namespace troupe
