// Checks that the answers of concurrent calls on one key are linearizable: the
// calls can be ordered so that each takes effect between its question and its
// answer, and one caller making them in that order gets the same answers.
//
// The search is Wing and Gong's with Lowe's pruning: a set of calls that have
// taken effect, with the state that they led to, is tried once. Linearizability
// is local, so each key is checked by itself.

#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_set>
#include <utility>
#include <vector>

namespace troupe::testing {

/// Time of the answer of a call with unknown outcome. It may take effect at any
/// time after it was asked, or never.
inline constexpr std::uint64_t never
  = std::numeric_limits<std::uint64_t>::max();

/// One call on one key. Times are of any clock that all callers share.
template <class Operation>
struct timed_call {
  Operation what;
  std::uint64_t asked = 0;
  std::uint64_t answered = never;
  std::size_t process = 0;
};

enum class search_outcome : std::uint8_t {
  linearizable,
  broken,
  undecided, ///< The search reached its limit of steps.
};

struct linearizability_verdict {
  search_outcome outcome = search_outcome::linearizable;
  std::uint64_t steps = 0;
  /// Describes the violation; empty if there is none.
  std::string finding;
};

/// Searches an order of the calls on one key.
///
/// `Spec` is the sequential model. It has a `state` that is comparable and
/// starts default-constructed, an `operation`, and static functions: `bool
/// step(state&, const operation&, bool answered)` returns whether the operation
/// can have its answer in this state, and applies it; `bool only_looks(const
/// operation&)` is true if it never changes the state; `std::size_t hash(const
/// state&)`; and `std::string text(…)` of operations and states.
template <class Spec>
class linearization {
public:
  using call = timed_call<typename Spec::operation>;

  explicit linearization(std::vector<call> history, bool explains = false)
    : calls_(std::move(history)),
      explains_(explains) {
    // Calls without an answer come last, so that the calls that have taken
    // effect can form a prefix.
    std::ranges::stable_sort(calls_, [](const call& one, const call& other) {
      return std::pair(one.answered == never, one.asked)
             < std::pair(other.answered == never, other.asked);
    });
    known_ = static_cast<std::size_t>(
      std::ranges::find(calls_, never, &call::answered) - calls_.begin());
    line_up();
  }

  search_outcome search(std::uint64_t steps_max) {
    std::vector<node> way{choices()};
    while (left_ > 0) {
      if (advance(way.back())) {
        way.push_back(choices());
        continue;
      }
      if (steps_ > steps_max)
        return search_outcome::undecided;
      // No call fits here; an earlier choice was wrong.
      if (explains_ && taken_.size() > longest_.size())
        note_longest();
      way.pop_back();
      if (way.empty())
        return search_outcome::broken;
      give_back();
    }
    return search_outcome::linearizable;
  }

  std::uint64_t steps() const noexcept { return steps_; }

  /// Shows the longest order found, and the calls that do not fit after it.
  std::string explain() const {
    std::string words;
    const auto shown = std::min<std::size_t>(longest_.size(), 6);
    if (shown < longest_.size())
      words += fmt::format("  … {} calls before\n", longest_.size() - shown);
    for (auto at = longest_.size() - shown; at < longest_.size(); ++at)
      words += "  " + text(calls_[longest_[at]]) + '\n';
    words += fmt::format("  then it is {}, and none of these fits:\n",
                         Spec::text(longest_state_));
    auto due = never;
    for (std::size_t index = 0; index < known_; ++index)
      if (!std::ranges::count(longest_, index))
        due = std::min(due, calls_[index].answered);
    for (std::size_t index = 0; index < calls_.size(); ++index)
      if (calls_[index].asked < due && !std::ranges::count(longest_, index))
        words += "  " + text(calls_[index]) + '\n';
    return words;
  }

  static std::string text(const call& shown) {
    return fmt::format("caller {} [{}, {}]: {}",
                       shown.process,
                       shown.asked,
                       shown.answered == never ? std::string("never answered")
                                               : std::to_string(shown.answered),
                       Spec::text(shown.what));
  }

private:
  // Entries of the list: the question and the answer of each call, by time.
  static constexpr std::size_t head = 0;

  // The calls that may be next, and the number of them already tried.
  struct node {
    std::vector<std::uint32_t> choices;
    std::size_t tried = 0;
  };

  // A call that has taken effect, and the state of the search before it.
  struct taken {
    std::size_t index;
    typename Spec::state state;
    std::size_t prefix;
    std::vector<std::uint32_t> others;
  };

  // A state of the search that was already tried. The calls that have taken
  // effect are all those before `prefix`, and `others`.
  struct tried {
    std::size_t prefix;
    std::vector<std::uint32_t> others;
    typename Spec::state state;

    friend bool operator==(const tried&, const tried&) = default;
  };

  struct tried_hash {
    std::size_t operator()(const tried& one) const noexcept {
      auto mixed = Spec::hash(one.state) ^ (one.prefix * 0x9e3779b97f4a7c15U);
      for (const auto each : one.others)
        mixed = (mixed ^ each) * 0x100000001b3U;
      return mixed;
    }
  };

  void line_up() {
    struct entry {
      std::uint64_t time;
      bool is_answer;
      std::size_t index;
    };

    std::vector<entry> entries;
    for (std::size_t index = 0; index < calls_.size(); ++index) {
      entries.push_back({calls_[index].asked, false, index});
      if (index < known_)
        entries.push_back({calls_[index].answered, true, index});
    }
    // Questions come before answers of the same time: such calls may overlap.
    std::ranges::sort(entries, [](const entry& one, const entry& other) {
      return std::tuple(one.time, one.is_answer, one.index)
             < std::tuple(other.time, other.is_answer, other.index);
    });
    const auto size = entries.size() + 2;
    next_.resize(size);
    before_.resize(size);
    owner_.resize(size);
    is_answer_.resize(size);
    call_at_.resize(calls_.size());
    answer_at_.resize(calls_.size());
    for (std::size_t at = 0; at < size; ++at) {
      next_[at] = at + 1;
      before_[at] = at == 0 ? 0 : at - 1;
    }
    for (std::size_t at = 1; at + 1 < size; ++at) {
      const auto& each = entries[at - 1];
      owner_[at] = each.index;
      is_answer_[at] = each.is_answer;
      (each.is_answer ? answer_at_ : call_at_)[each.index] = at;
    }
    left_ = known_;
  }

  std::size_t end() const { return next_.size() - 1; }

  // Collects the calls that were asked before the first answer that is due. A
  // call that only reads and fits the current state is taken at once, alone.
  // The others are tried in the order of their answers, which is most often the
  // order of their effects.
  node choices() const {
    node made;
    for (auto at = next_[head]; at < end() && !is_answer_[at]; at = next_[at]) {
      const auto index = owner_[at];
      const auto& what = calls_[index].what;
      if (auto same = state_; Spec::only_looks(what)) {
        if (index < known_ && Spec::step(same, what, true)) {
          made.choices = {static_cast<std::uint32_t>(index)};
          return made;
        }
        continue;
      }
      made.choices.push_back(static_cast<std::uint32_t>(index));
    }
    std::ranges::stable_sort(made.choices, {}, [this](std::uint32_t index) {
      return calls_[index].answered;
    });
    return made;
  }

  bool advance(node& from) {
    while (from.tried < from.choices.size()) {
      const auto index = from.choices[from.tried++];
      auto after = state_;
      ++steps_;
      // A call without an answer that changes nothing can be left out.
      if (Spec::step(after, calls_[index].what, index < known_)
          && (index < known_ || after != state_)
          && take(index, std::move(after))) {
        lift(index);
        return true;
      }
    }
    return false;
  }

  void cut(std::size_t at) {
    next_[before_[at]] = next_[at];
    before_[next_[at]] = before_[at];
  }

  void put_back(std::size_t at) {
    next_[before_[at]] = at;
    before_[next_[at]] = at;
  }

  void lift(std::size_t index) {
    cut(call_at_[index]);
    if (index < known_) {
      cut(answer_at_[index]);
      --left_;
    }
  }

  void give_back() {
    auto last = std::move(taken_.back());
    taken_.pop_back();
    if (last.index < known_) {
      put_back(answer_at_[last.index]);
      ++left_;
    }
    put_back(call_at_[last.index]);
    state_ = std::move(last.state);
    prefix_ = last.prefix;
    others_ = std::move(last.others);
  }

  // Applies the call, unless the search has been in the resulting state.
  bool take(std::size_t index, typename Spec::state after) {
    auto prefix = prefix_;
    auto others = others_;
    const auto own = static_cast<std::uint32_t>(index);
    others.insert(std::ranges::upper_bound(others, own), own);
    auto joined = others.begin();
    for (; joined != others.end() && *joined == prefix && prefix < known_;
         ++joined)
      ++prefix;
    others.erase(others.begin(), joined);
    if (!tried_.insert({prefix, others, after}).second)
      return false;
    taken_.push_back({index,
                      std::exchange(state_, std::move(after)),
                      std::exchange(prefix_, prefix),
                      std::exchange(others_, std::move(others))});
    return true;
  }

  void note_longest() {
    longest_.clear();
    for (const auto& each : taken_)
      longest_.push_back(each.index);
    longest_state_ = state_;
  }

  std::vector<call> calls_;
  const bool explains_;
  std::size_t known_ = 0; // Number of calls with an answer; they come first.
  std::size_t left_ = 0;  // Number of those that have not taken effect yet.
  std::vector<std::size_t> next_;
  std::vector<std::size_t> before_;
  std::vector<std::size_t> owner_;
  std::vector<bool> is_answer_;
  std::vector<std::size_t> call_at_;
  std::vector<std::size_t> answer_at_;
  typename Spec::state state_{};
  std::vector<taken> taken_;
  std::size_t prefix_ = 0;
  std::vector<std::uint32_t> others_;
  std::unordered_set<tried, tried_hash> tried_;
  std::vector<std::size_t> longest_;
  typename Spec::state longest_state_{};
  std::uint64_t steps_ = 0;
};

/// Checks the calls on `key`. A finding names the shortest beginning of the
/// history that no order explains. For such a history a search may take any
/// number of steps, so it is given up after `steps_max`.
template <class Spec>
linearizability_verdict check_linearizability(
  std::string_view key,
  const std::vector<timed_call<typename Spec::operation>>& history,
  std::uint64_t steps_max = 500'000) {
  using search = linearization<Spec>;
  search whole(history);
  linearizability_verdict verdict;
  verdict.outcome = whole.search(steps_max);
  verdict.steps = whole.steps();
  if (verdict.outcome == search_outcome::undecided)
    verdict.finding = fmt::format("key '{}': {} calls, given up after {} steps",
                                  key,
                                  history.size(),
                                  steps_max);
  if (verdict.outcome != search_outcome::broken)
    return verdict;

  // The history as known at a moment: later answers are not given yet.
  const auto until = [&history](std::uint64_t moment) {
    std::vector<typename search::call> known;
    for (auto each : history)
      if (each.asked <= moment) {
        if (each.answered > moment)
          each.answered = never;
        known.push_back(std::move(each));
      }
    return known;
  };
  std::vector<std::uint64_t> answers;
  for (const auto& each : history)
    if (each.answered != never)
      answers.push_back(each.answered);
  std::ranges::sort(answers);
  const auto first = *std::ranges::partition_point(
    answers, [&](std::uint64_t moment) {
      return search(until(moment)).search(steps_max) != search_outcome::broken;
    });
  const auto shortest = until(first);
  search last(shortest, true);
  static_cast<void>(last.search(steps_max));
  verdict.finding
    = fmt::format(
        "key '{}': its first {} of {} calls cannot have been "
        "answered so in any order; the call that breaks it is\n  {}\n",
        key,
        shortest.size(),
        history.size(),
        search::text(
          *std::ranges::find(shortest, first, &search::call::answered)))
      + "The longest order that fits ends in\n" + last.explain();
  return verdict;
}

// -- sequential models ----

/// A number or nothing, under `set`, `erase`, `add`, `cas` and reads.
struct register_spec {
  enum class kind : std::uint8_t { read, set, erase, add, compare_and_set };

  using state = std::optional<std::int64_t>;

  struct operation {
    kind what = kind::read;
    state operand = {};   ///< Empty for a `compare_and_set` that erases.
    state expected = {};  ///< Used by `compare_and_set` alone.
    bool refused = false; ///< Answer of `compare_and_set`.
    /// Answer: the value afterwards. Unknown for a refused call.
    state seen = {};
  };

  static bool step(state& held, const operation& done, bool answered);
  static bool only_looks(const operation& done) noexcept;
  static std::size_t hash(const state& held) noexcept;
  static std::string text(const state& held);
  static std::string text(const operation& done);
};

/// A session that is created and removed, and counts its events.
struct lifetime_spec {
  enum class kind : std::uint8_t { create, remove, append, get };

  struct state {
    bool exists = false;
    std::uint64_t revision = 0;

    friend bool operator==(const state&, const state&) = default;
  };

  struct operation {
    kind what = kind::get;
    /// Answer: true if it was created, removed, appended to, or found.
    bool done = false;
    std::uint64_t seen = 0; ///< The revision that `get` returned.
  };

  static bool step(state& held, const operation& done, bool answered);
  static bool only_looks(const operation& done) noexcept;
  static std::size_t hash(const state& held) noexcept;
  static std::string text(const state& held);
  static std::string text(const operation& done);
};

/// A list that grows by one element at a time. Lists are compared by length and
/// a digest of the elements.
struct list_spec {
  struct state {
    std::size_t length = 0;
    std::uint64_t digest = 0;

    friend bool operator==(const state&, const state&) = default;
  };

  struct operation {
    std::optional<std::uint64_t> appended = {}; ///< Empty for a read.
    /// Answer: the list afterwards, if the answer has it.
    std::optional<state> seen = {};
  };

  static void append(state& held, std::uint64_t element) noexcept;
  static bool step(state& held, const operation& done, bool answered);
  static bool only_looks(const operation& done) noexcept;
  static std::size_t hash(const state& held) noexcept;
  static std::string text(const state& held);
  static std::string text(const operation& done);
};

} // namespace troupe::testing
