#include "troupe/core/support/compensation.hpp"

#include "troupe/core/rewind.hpp"
#include "troupe/core/support/scope_state.hpp"

#include <boost/multiprecision/cpp_int.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <set>
#include <utility>

namespace troupe {

namespace {

error cannot_go_back(const std::string& key, std::string_view why) {
  return {errc::conflict,
          fmt::format("the operations on '{}' cannot be undone: {}; rewind "
                      "without compensate, and write the key anew if it should "
                      "go back, too",
                      key,
                      why)};
}

result<value> evaluate_on(const std::string& key,
                          operation_kind kind,
                          const value& current,
                          value operand) {
  const auto parts = split_key(key);
  const operation done{
    parts.where, kind, std::string(parts.name), std::move(operand), {}};
  return evaluate(done,
                  current.is_null() ? nullptr : &current,
                  {std::numeric_limits<std::size_t>::max(),
                   std::numeric_limits<std::size_t>::max()});
}

// -- numbers ------------------------------------------------------------------

// The sum of added numbers. Exact for integers.
class number_sum {
public:
  void add(const json& number) {
    if (number.is_number_float())
      part_ += number.get<double>();
    else if (number.is_number_unsigned())
      whole_ += number.get<std::uint64_t>();
    else
      whole_ += number.get<std::int64_t>();
  }

  bool is_zero() const { return whole_ == 0 && part_ == 0; }

  // The number that undoes the sum; unset if it does not fit in 64 bits.
  std::optional<json> negated() const {
    if (part_ != 0)
      return json(-(whole_.convert_to<double>() + part_));
    const wide_integer opposite = -whole_;
    if (opposite < std::numeric_limits<std::int64_t>::min()
        || opposite > std::numeric_limits<std::uint64_t>::max())
      return std::nullopt;
    if (opposite > std::numeric_limits<std::int64_t>::max())
      return json(static_cast<std::uint64_t>(opposite));
    return json(static_cast<std::int64_t>(opposite));
  }

private:
  using wide_integer = boost::multiprecision::int128_t;

  wide_integer whole_ = 0;
  double part_ = 0;
};

// -- elements of lists --------------------------------------------------------

// The elements that operations have added to a list, less those that they have
// taken out.
class element_sum {
public:
  struct record {
    json operand = json::array();
    json former = json::array();
  };

  // The operations come newest first, so their elements are counted from the
  // last one on.
  void add(const applied_operation& done) {
    count(done.operand, done.kind, 1);
    count(done.former, done.kind, -1);
  }

  bool is_zero() const {
    return std::ranges::all_of(elements_, [](const element& each) {
      return each.appended == 0 && each.united == 0;
    });
  }

  // Takes the added elements out of `list`, the last equal ones, and adds those
  // at its end that were taken out. Unset if an element is missing.
  std::optional<json> undo_in(json list) {
    auto left = take_out(std::move(list));
    if (!left)
      return left;
    for (auto each = elements_.rbegin(); each != elements_.rend(); ++each)
      for (; each->appended < 0; ++each->appended) {
        left->push_back(each->data);
        appends_.operand.push_back(each->data);
      }
    return left;
  }

  // The elements to be added to a set after `undo_in`.
  json united_again() const {
    auto list = json::array();
    for (auto each = elements_.rbegin(); each != elements_.rend(); ++each)
      if (each->united < 0)
        list.push_back(each->data);
    return list;
  }

  record& appends() { return appends_; }

  record& unions() { return unions_; }

private:
  struct element {
    json data;
    std::int64_t appended = 0;
    std::int64_t united = 0;
  };

  void count(const value& list, operation_kind kind, int sign) {
    if (list.is_null())
      return;
    for (auto next = list->rbegin(); next != list->rend(); ++next) {
      const auto [place, is_new]
        = places_.try_emplace(to_text(*next), elements_.size());
      if (is_new)
        elements_.push_back({*next});
      auto& counted = elements_[place->second];
      (kind == operation_kind::append ? counted.appended : counted.united)
        += sign;
    }
  }

  std::optional<json> take_out(json list) {
    std::int64_t missing = 0;
    for (auto& each : elements_) {
      // A set has an element once, also if it was added twice because another
      // session had taken it out.
      each.united = std::clamp<std::int64_t>(each.united, -1, 1);
      missing += std::max<std::int64_t>(each.appended, 0)
                 + std::max<std::int64_t>(each.united, 0);
    }
    if (missing == 0)
      return list;
    auto left = json::array();
    for (auto next = list.rbegin(); next != list.rend(); ++next)
      if (auto* const into = owed_to(*next)) {
        into->push_back(std::move(*next));
        --missing;
      } else {
        left.push_back(std::move(*next));
      }
    for (auto* const turned : {&left, &appends_.former, &unions_.former})
      std::reverse(turned->begin(), turned->end());
    return missing == 0 ? std::optional(std::move(left)) : std::nullopt;
  }

  // The record of an element that has to be taken out; null if it stays.
  json* owed_to(const json& data) {
    const auto place = places_.find(to_text(data));
    if (place == places_.end())
      return nullptr;
    auto& counted = elements_[place->second];
    if (counted.appended > 0) {
      --counted.appended;
      return &appends_.former;
    }
    if (counted.united > 0) {
      --counted.united;
      return &unions_.former;
    }
    return nullptr;
  }

  std::vector<element> elements_; // In the order of their first count.
  std::map<std::string, std::size_t> places_;
  record appends_;
  record unions_;
};

// -- one key ------------------------------------------------------------------

// Undoes operations on one key, newest first.
class key_undo {
public:
  key_undo(std::string key, value present)
    : key_(std::move(key)),
      present_(present),
      now_(std::move(present)) {}

  // `outcome` is the value after the event of the operation.
  result<void> undo(const applied_operation& done, const value& outcome) {
    switch (done.kind) {
    case operation_kind::add:
      lists_only_ = false;
      if (auto settled = settle_elements(); !settled)
        return settled;
      sum_.add(done.operand.data());
      return {};
    case operation_kind::append:
    case operation_kind::add_to_set:
      adds_only_ = false;
      if (auto settled = settle_sum(); !settled)
        return settled;
      elements_.add(done);
      return {};
    default:
      adds_only_ = lists_only_ = false;
      if (auto settled = settle(); !settled)
        return settled;
      return undo_exactly(done, outcome);
    }
  }

  // Adds the operation that leads from the present value to the earlier one.
  result<void> finish(event& change) {
    if (adds_only_)
      return finish_sum(change);
    if (auto settled = settle(); !settled)
      return settled;
    if (now_ == present_)
      return {};
    if (lists_only_) {
      note(change, operation_kind::append, appended_);
      note(change, operation_kind::add_to_set, united_);
    } else {
      note(change, operation_kind::compare_and_set, value(), present_);
    }
    return change.actions.state_delta.record(
      key_, operation_kind::compare_and_set, now_, present_);
  }

private:
  result<void> finish_sum(event& change) {
    if (sum_.is_zero())
      return {};
    const auto opposite = sum_.negated();
    // The result is computed only for its failures.
    if (auto settled = settle_sum(); !settled)
      return settled;
    note(change, operation_kind::add, *opposite);
    return change.actions.state_delta.record(
      key_, operation_kind::add, *opposite);
  }

  result<void> settle() {
    if (auto settled = settle_sum(); !settled)
      return settled;
    return settle_elements();
  }

  result<void> settle_sum() {
    const auto counted = std::exchange(sum_, number_sum());
    if (counted.is_zero())
      return {};
    const auto opposite = counted.negated();
    if (!opposite)
      return cannot_go_back(key_,
                            "the sum of the added numbers overflows 64 "
                            "bits");
    if (now_.is_null())
      return cannot_go_back(key_, "it was erased since");
    auto result = evaluate_on(key_, operation_kind::add, now_, *opposite);
    if (!result)
      return cannot_go_back(key_, result.error().message());
    now_ = std::move(*result);
    return {};
  }

  result<void> settle_elements() {
    auto counted = std::exchange(elements_, element_sum());
    if (counted.is_zero())
      return {};
    if (!now_.is_null() && !now_->is_array())
      return cannot_go_back(key_, "it is no list any more");
    auto left = counted.undo_in(now_.is_null() ? json::array() : now_.data());
    if (!left)
      return cannot_go_back(
        key_, "an element that this session has added is no longer there");
    const auto size = left->size();
    auto result = evaluate_on(key_,
                              operation_kind::add_to_set,
                              value(std::move(*left)),
                              counted.united_again());
    if (!result)
      return cannot_go_back(key_, result.error().message());
    now_ = std::move(*result);
    for (auto index = size; index < now_->size(); ++index)
      counted.unions().operand.push_back(now_.data()[index]);
    appended_ = std::move(counted.appends());
    united_ = std::move(counted.unions());
    return {};
  }

  result<void> undo_exactly(const applied_operation& done,
                            const value& outcome) {
    if (done.kind == operation_kind::merge)
      return undo_merge(done, outcome);
    if (done.former == outcome)
      return {}; // It changed nothing.
    if (now_ == outcome) {
      now_ = done.former;
      return {};
    }
    return is_exceeded(done.kind, outcome)
             ? result<void>()
             : cannot_go_back(key_, "it was changed since");
  }

  // Returns true if a smaller minimum or a larger maximum came since, so that
  // the operation has no effect any more.
  bool is_exceeded(operation_kind kind, const value& outcome) const {
    if (!now_->is_number() || !outcome->is_number())
      return false;
    if (kind == operation_kind::min)
      return less(now_.data(), outcome.data());
    return kind == operation_kind::max && less(outcome.data(), now_.data());
  }

  result<void> undo_merge(const applied_operation& done, const value& outcome) {
    if (done.operand.is_null() && done.former.is_null())
      return {}; // It changed nothing.
    if (!now_->is_object() || !outcome->is_object())
      return cannot_go_back(key_, "it is no object any more");
    auto fields = now_.data();
    const auto is_unchanged = [&](const std::string& name) {
      const auto then = outcome->find(name);
      const auto held = fields.find(name);
      return then == outcome->end()
               ? held == fields.end()
               : held != fields.end() && equal(*held, *then);
    };
    const auto changed = [this](const std::string& name) {
      return cannot_go_back(key_,
                            fmt::format("its '{}' was changed since", name));
    };
    if (!done.operand.is_null())
      for (const auto& each : done.operand.data()) {
        const auto& name = each.get_ref<const std::string&>();
        if (!is_unchanged(name))
          return changed(name);
        fields.erase(name);
      }
    if (!done.former.is_null())
      for (const auto& [name, data] :
           done.former->get_ref<const json::object_t&>()) {
        if (!is_unchanged(name))
          return changed(name);
        fields[name] = data;
      }
    now_ = std::move(fields);
    return {};
  }

  void note(event& change,
            operation_kind kind,
            value operand,
            value former = {}) const {
    const auto parts = split_key(key_);
    change.actions.applied.push_back({kind,
                                      parts.where,
                                      std::string(parts.name),
                                      std::move(operand),
                                      std::move(former)});
  }

  void note(event& change,
            operation_kind kind,
            const element_sum::record& counted) const {
    const auto or_none
      = [](const json& list) { return list.empty() ? value() : value(list); };
    if (!counted.operand.empty() || !counted.former.empty())
      note(change, kind, or_none(counted.operand), or_none(counted.former));
  }

  const std::string key_;
  const value present_;
  value now_;
  number_sum sum_;
  element_sum elements_;
  element_sum::record appended_;
  element_sum::record united_;
  bool adds_only_ = true;
  bool lists_only_ = true;
};

constexpr auto no_revision = std::numeric_limits<std::uint64_t>::max();

// The place of event `number` if it is a rewind with compensation; else
// `no_revision`.
std::uint64_t compensated_to(const event& said, std::uint64_t number) {
  const auto count = taken_back_by(said);
  return count && !said.actions.applied.empty() && *count < number
           ? number - 1 - *count
           : no_revision;
}

std::vector<std::string> as_list(const std::set<std::string>& keys) {
  return {keys.begin(), keys.end()};
}

} // namespace

// A rewind with compensation has undone the operations up to its own place
// already, so they and the rewind are balanced.
wide_changes::wide_changes(event_slice events,
                           std::uint64_t place,
                           std::uint64_t shared)
  : events_(std::move(events)),
    live_(events_.live()) {
  auto balanced_from = no_revision;
  for (auto index = events_.size(); index > 0; --index) {
    const auto number = events_.number(index - 1);
    if (number <= balanced_from)
      balanced_from = no_revision;
    const bool is_own = number > shared;
    if (is_own && balanced_from == no_revision)
      if (const auto back = compensated_to(*events_[index - 1], number);
          back >= place)
        balanced_from = back;
    add(number, is_own, balanced_from != no_revision);
  }
}

void wide_changes::add(std::uint64_t number, bool is_own, bool is_balanced) {
  const auto& said
    = events_[static_cast<std::size_t>(number - events_.number(0))];
  const bool is_live = !live_.hides(number);
  std::map<std::string, std::vector<const applied_operation*>> records;
  for (const auto& done : said->actions.applied)
    records[join_key(done.where, done.name)].push_back(&done);
  for (const auto where : {scope::user, scope::app})
    for (const auto& done : said->actions.state_delta.share(where)) {
      const auto key = join_key(where, done.name);
      auto& changes = keys_[key];
      const auto found = records.find(key);
      const bool is_recorded = found != records.end() && is_own;
      if (is_live && (!is_recorded || changes.is_closed))
        changes.is_kept = true;
      else if (is_live)
        changes.is_live = true;
      if (!is_own || changes.is_closed)
        continue;
      if (!is_recorded)
        changes.is_closed = true;
      else if (!is_balanced)
        changes.steps.push_back({said, found->second});
    }
}

std::vector<std::string> wide_changes::kept_keys() const {
  std::vector<std::string> keys;
  for (const auto& [key, changes] : keys_)
    if (changes.is_kept)
      keys.push_back(key);
  return keys;
}

std::vector<std::string> wide_changes::undone_keys(const event& change) const {
  std::set<std::string> keys;
  for (const auto& [key, changes] : keys_)
    if (changes.is_live)
      keys.insert(key);
  for (const auto& done : change.actions.applied)
    keys.insert(join_key(done.where, done.name));
  for (const auto& key : kept_keys())
    keys.erase(key);
  return as_list(keys);
}

result<void> wide_changes::undo(const readonly_state& now,
                                event& change) const {
  for (const auto& [key, changes] : keys_) {
    key_undo undoing(key, now.find(key).value_or(value()));
    for (const auto& each : changes.steps) {
      const auto parts = split_key(key);
      const auto* const outcome
        = each.said->actions.state_delta.find_last(parts.where, parts.name);
      for (auto next = each.done.rbegin(); next != each.done.rend(); ++next)
        if (auto undone = undoing.undo(**next, outcome->operand); !undone)
          return undone;
    }
    if (auto finished = undoing.finish(change); !finished)
      return finished;
  }
  return {};
}

} // namespace troupe
