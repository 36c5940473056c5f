#include "troupe/contexts/lanes/basis_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace troupe {

namespace {

error conflict_of(const write_basis& based) {
  return {errc::conflict,
          fmt::format("'{}' has changed since it was read, and a set would "
                      "overwrite that change unseen; write it with "
                      "update(key, fn) or an operation such as add, or read "
                      "it again",
                      join_key(based.where, based.name))};
}

// A plugin may have replaced the changes of the event.
bool writes_plainly(const delta& changes, const write_basis& based) {
  return std::ranges::any_of(
    changes.share(based.where), [&based](const operation& done) {
      return !is_typed(done) && done.name == based.name;
    });
}

// Values are shared, so an unchanged one is the same object in most cases.
bool is_unchanged(const write_basis& based, const state_map& now) {
  const auto* const found = now.find(based.name);
  return found != nullptr ? *found == *based.owned : based.owned->is_null();
}

} // namespace

basis_check::basis_check(std::vector<write_basis> bases, bool refuses)
  : bases_(std::move(bases)),
    refuses_(refuses) {
  for (const auto& each : bases_)
    if (each.is_lost)
      losses_.push_back({each.where, each.name});
}

result<void> basis_check::check_turn() const {
  const auto lost = std::ranges::find(bases_, true, &write_basis::is_lost);
  return refuses_ && lost != bases_.end() ? conflict_of(*lost) : result<void>();
}

bool basis_check::may_refuse(scope where) const noexcept {
  return refuses_
         && std::ranges::find(bases_, where, &write_basis::where)
              != bases_.end();
}

result<void>
basis_check::compare(scope where, const delta& changes, const state_map& now) {
  for (const auto& each : bases_) {
    if (each.where != where || !each.owned || !writes_plainly(changes, each)
        || is_unchanged(each, now))
      continue;
    if (refuses_)
      return conflict_of(each);
    losses_.push_back({where, each.name, {}, where != scope::temp});
  }
  return {};
}

void basis_check::take_back() {
  std::erase_if(losses_, [](const loss& each) { return each.by_owner; });
}

} // namespace troupe
