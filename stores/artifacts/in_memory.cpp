#include "troupe/stores/artifacts/in_memory.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <numeric>
#include <shared_mutex>
#include <utility>

namespace troupe {

namespace {

// All versions of one artifact, by number. Shared pointers let a load copy the
// part after it has released the lock.
using kept_versions = std::vector<std::shared_ptr<const part>>;

class memory_artifacts final : public artifact_store {
public:
  using artifact_store::artifact_store;

protected:
  result<std::int64_t> do_save(const artifact_key& key,
                               const part& content) override {
    auto kept = std::make_shared<const part>(content);
    const std::unique_lock lock(mutex_);
    auto& versions = owners_[key.owner][key.name];
    versions.push_back(std::move(kept));
    return static_cast<std::int64_t>(versions.size()) - 1;
  }

  result<std::optional<part>>
  do_load(const artifact_key& key,
          std::optional<std::int64_t> version) override {
    const auto found = find(key, version);
    if (found == nullptr)
      return std::nullopt;
    return *found;
  }

  result<std::vector<std::string>> do_list(const owner_name& owner) override {
    const std::shared_lock lock(mutex_);
    std::vector<std::string> names;
    if (const auto found = owners_.find(owner); found != owners_.end())
      for (const auto& [name, versions] : found->second)
        names.push_back(name);
    return names;
  }

  result<std::vector<std::int64_t>>
  do_versions(const artifact_key& key) override {
    const std::shared_lock lock(mutex_);
    const auto* versions = versions_of(key);
    std::vector<std::int64_t> numbers(versions == nullptr ? 0
                                                          : versions->size());
    std::iota(numbers.begin(), numbers.end(), 0);
    return numbers;
  }

  result<void> do_copy(const artifact_key& from,
                       const artifact_key& to,
                       std::size_t count) override {
    const std::unique_lock lock(mutex_);
    if (versions_of(to) != nullptr)
      return exists_already(to);
    const auto* versions = versions_of(from);
    if (versions == nullptr || count == 0)
      return {};
    kept_versions copied(
      versions->begin(),
      versions->begin()
        + static_cast<std::ptrdiff_t>(std::min(count, versions->size())));
    owners_[to.owner][to.name] = std::move(copied);
    return {};
  }

  result<bool> do_remove(const artifact_key& key) override {
    const std::unique_lock lock(mutex_);
    const auto owner = owners_.find(key.owner);
    if (owner == owners_.end() || owner->second.erase(key.name) == 0)
      return false;
    if (owner->second.empty())
      owners_.erase(owner);
    return true;
  }

  result<void> do_remove_owner(const owner_name& owner) override {
    const std::unique_lock lock(mutex_);
    // The users of an app and the sessions of a user follow it in the order of
    // names.
    auto next = owners_.lower_bound(owner);
    while (next != owners_.end() && is_within(next->first, owner))
      next = owners_.erase(next);
    return {};
  }

private:
  static bool is_within(const owner_name& inner, const owner_name& owner) {
    return inner.app == owner.app
           && (owner.user.empty() || inner.user == owner.user)
           && (owner.session.empty() || inner.session == owner.session);
  }

  const kept_versions* versions_of(const artifact_key& key) const {
    const auto owner = owners_.find(key.owner);
    if (owner == owners_.end())
      return nullptr;
    const auto found = owner->second.find(key.name);
    return found == owner->second.end() ? nullptr : &found->second;
  }

  std::shared_ptr<const part> find(const artifact_key& key,
                                   std::optional<std::int64_t> version) const {
    const std::shared_lock lock(mutex_);
    const auto* versions = versions_of(key);
    if (versions == nullptr)
      return nullptr;
    if (!version)
      return versions->back();
    // A negative number becomes larger than any size.
    const auto index = static_cast<std::uint64_t>(*version);
    return index < versions->size() ? (*versions)[index] : nullptr;
  }

  mutable std::shared_mutex mutex_;
  std::map<owner_name, std::map<std::string, kept_versions>> owners_;
};

} // namespace

std::unique_ptr<artifact_store>
make_memory_artifacts(const artifact_options& options) {
  return std::make_unique<memory_artifacts>(options);
}

} // namespace troupe
