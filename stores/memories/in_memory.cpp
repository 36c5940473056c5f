#include "troupe/stores/memories/in_memory.hpp"

#include "troupe/stores/memory_words.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <string>
#include <tuple>
#include <utility>

namespace troupe {

namespace {

class transient_memories final : public memory_service {
protected:
  result<std::vector<std::string>>
  do_add(const owner_name& of,
         const std::vector<memory_entry>& entries,
         earlier before) override {
    std::vector<kept_memory> made;
    made.reserve(entries.size());
    for (const auto& each : entries) {
      auto words = memory_words(memory_text(each.content));
      made.push_back({0,
                      std::make_shared<const memory_entry>(each),
                      {words.begin(), words.end()}});
    }
    const std::unique_lock lock(mutex_);
    if (before == earlier::replaced)
      sessions_.erase(of);
    std::vector<std::string> added;
    if (made.empty())
      return added;
    auto& kept = sessions_[of];
    for (auto& each : made) {
      each.number = ++newest_;
      const auto entry = each.entry;
      if (kept.try_emplace(entry->id, std::move(each)).second)
        added.push_back(entry->id);
    }
    return added;
  }

  result<std::vector<memory_entry>>
  do_search(const owner_name& user,
            const std::vector<std::string>& words,
            std::size_t limit) override {
    auto found = matches(user, words);
    const auto count = std::min(limit, found.size());
    std::partial_sort(found.begin(),
                      found.begin() + static_cast<std::ptrdiff_t>(count),
                      found.end(),
                      [](const match& left, const match& right) {
                        return left.place() > right.place();
                      });
    std::vector<memory_entry> best;
    best.reserve(count);
    for (std::size_t index = 0; index < count; ++index)
      best.push_back(*found[index].entry);
    return best;
  }

  result<std::size_t> do_remove(const owner_name& of,
                                const std::vector<std::string>& ids) override {
    const std::unique_lock lock(mutex_);
    const auto kept = sessions_.find(of);
    if (kept == sessions_.end())
      return std::size_t{0};
    std::size_t count = 0;
    for (const auto& id : ids)
      count += kept->second.erase(id);
    if (kept->second.empty())
      sessions_.erase(kept);
    return count;
  }

  result<bool> do_remove_all(const owner_name& of) override {
    const std::unique_lock lock(mutex_);
    bool found = false;
    auto next = sessions_.lower_bound(of);
    while (next != sessions_.end() && is_within(next->first, of)) {
      next = sessions_.erase(next);
      found = true;
    }
    return found;
  }

private:
  struct kept_memory {
    std::uint64_t number = 0; // Counted up over all memories.
    std::shared_ptr<const memory_entry> entry;
    std::set<std::string, std::less<>> words;
  };

  struct match {
    std::tuple<std::int64_t, timestamp, std::uint64_t> place() const {
      return {score, entry->timestamp, number};
    }

    std::int64_t score = 0;
    std::uint64_t number = 0;
    std::shared_ptr<const memory_entry> entry;
    std::vector<bool> has; // By word of the query.
  };

  static bool is_within(const owner_name& each, const owner_name& of) {
    return each.app == of.app && (of.user.empty() || each.user == of.user)
           && (of.session.empty() || each.session == of.session);
  }

  std::vector<match> matches(const owner_name& user,
                             const std::vector<std::string>& words) {
    std::vector<match> found;
    std::vector<std::uint64_t> counts(words.size());
    std::uint64_t all = 0;
    {
      const std::shared_lock lock(mutex_);
      for (auto next = sessions_.lower_bound(user);
           next != sessions_.end() && is_within(next->first, user);
           ++next)
        for (const auto& [id, kept] : next->second) {
          ++all;
          match made{0, kept.number, kept.entry, {}};
          for (const auto& word : words)
            made.has.push_back(kept.words.contains(word));
          if (std::ranges::find(made.has, true) != made.has.end())
            found.push_back(std::move(made));
        }
    }
    for (std::size_t index = 0; index < words.size(); ++index)
      counts[index] = static_cast<std::uint64_t>(std::ranges::count_if(
        found, [index](const match& each) { return each.has[index]; }));
    for (auto& each : found)
      for (std::size_t index = 0; index < words.size(); ++index)
        if (each.has[index])
          each.score += word_weight(all, counts[index]);
    return found;
  }

  std::shared_mutex mutex_;
  std::uint64_t newest_ = 0;
  // By session, and by user for memories without one; then by id.
  std::map<owner_name, std::map<std::string, kept_memory>> sessions_;
};

} // namespace

std::unique_ptr<memory_service> make_transient_memories() {
  return std::make_unique<transient_memories>();
}

} // namespace troupe
