#include "append_order.hpp"

#include "dependency_graph.hpp"
#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace troupe::testing {

namespace {

// The transaction that appended a token, and the key of the list.
struct origin {
  std::size_t transaction;
  std::uint32_t key;
  bool is_last; // True for the last append of its transaction to this key.
};

class inspection {
public:
  inspection(const std::vector<list_transaction>& history,
             const order_rules& rules)
    : history_(history),
      rules_(rules) {}

  order_verdict run() {
    note_appends();
    note_orders();
    for (std::size_t index = 0; index < history_.size(); ++index)
      look_at(index);
    look_for_losses();
    look_at_producers();
    look_for_cycles();
    return std::move(found_);
  }

private:
  // -- findings ----

  void note(const std::string& kind, const std::string& words) {
    if (++found_.counts[kind] == 1)
      found_.findings.push_back(kind + ": " + words);
  }

  std::string key_text(std::uint32_t key) const {
    return key < rules_.key_names.size() ? "'" + rules_.key_names[key] + "'"
                                         : fmt::format("key {}", key);
  }

  std::string text(std::size_t index) const {
    const auto& shown = history_[index];
    std::string words;
    for (const auto& each : shown.appends)
      words += fmt::format(", append {} to {}", each.what, key_text(each.key));
    std::size_t told = 0;
    for (const auto& each : shown.reads)
      if (++told <= 3)
        words += fmt::format(", read {} of {}{}",
                             each.list.size(),
                             key_text(each.key),
                             each.list.empty()
                               ? std::string()
                               : fmt::format(" up to {}", each.list.back()));
    if (told > 3)
      words += fmt::format(", and {} more reads", told - 3);
    return fmt::format(
      "T{} by process {} [{}, {}]{}{}",
      index,
      shown.process,
      shown.asked,
      shown.came_to == fate::unknown ? "?" : std::to_string(shown.answered),
      shown.came_to == fate::refused ? ", refused" : "",
      words);
  }

  // -- lists ----

  void note_appends() {
    for (std::size_t index = 0; index < history_.size(); ++index) {
      const auto& appends = history_[index].appends;
      for (std::size_t at = 0; at < appends.size(); ++at) {
        const auto& each = appends[at];
        ++found_.appends;
        const bool is_last = std::none_of(
          appends.begin() + static_cast<std::ptrdiff_t>(at) + 1,
          appends.end(),
          [&each](const auto& later) { return later.key == each.key; });
        if (!origins_.emplace(each.what, origin{index, each.key, is_last})
               .second)
          note("bad history",
               fmt::format("token {} was sent twice", each.what));
      }
    }
  }

  // The longest list read of each key gives the order of its appends.
  void note_orders() {
    for (std::size_t index = 0; index < history_.size(); ++index)
      for (const auto& each : history_[index].reads) {
        auto& [longest, reader] = orders_[each.key];
        if (longest == nullptr || each.list.size() > longest->size()) {
          longest = &each.list;
          reader = index;
        }
      }
    for (const auto& [key, order] : orders_) {
      std::unordered_set<token> seen;
      for (std::size_t place = 0; place < order.longest->size(); ++place) {
        const auto what = (*order.longest)[place];
        if (!seen.insert(what).second)
          note("duplicate",
               fmt::format("{} holds {} twice: {}",
                           key_text(key),
                           what,
                           text(order.reader)));
        places_.emplace(what, place);
      }
    }
  }

  void look_at(std::size_t index) {
    const auto& looked = history_[index];
    for (const auto& each : looked.reads) {
      ++found_.reads;
      // The common prefix with the longest list was checked at that list.
      const bool is_known = look_at_prefix(index, each)
                            && orders_.at(each.key).longest != &each.list;
      for (auto place
           = is_known && !each.list.empty() ? each.list.size() - 1 : 0;
           place < each.list.size();
           ++place)
        look_at_token(index, each, place);
    }
    if (looked.came_to != fate::done)
      return;
    for (const auto& each : looked.appends) {
      const auto found = places_.find(each.what);
      if (each.place != 0 && found != places_.end()
          && found->second + 1 != each.place)
        note("other place",
             fmt::format("{} was told that {} is number {} of {}, others read "
                         "it as number {}",
                         text(index),
                         each.what,
                         each.place,
                         key_text(each.key),
                         found->second + 1));
    }
  }

  bool look_at_prefix(std::size_t index, const list_transaction::read& seen) {
    const auto& order = orders_.at(seen.key);
    const auto [own, other] = std::ranges::mismatch(seen.list, *order.longest);
    if (own == seen.list.end())
      return true;
    note("incompatible orders",
         fmt::format("number {} of {} is {} in {}, and {} in {}",
                     own - seen.list.begin() + 1,
                     key_text(seen.key),
                     *own,
                     text(index),
                     *other,
                     text(order.reader)));
    return false;
  }

  void look_at_token(std::size_t index,
                     const list_transaction::read& seen,
                     std::size_t place) {
    const auto what = seen.list[place];
    const bool is_end = place + 1 == seen.list.size();
    const auto from = origins_.find(what);
    if (from == origins_.end() || from->second.key != seen.key)
      return note("ghost",
                  fmt::format("{} was never appended to {}, but it is in {}",
                              what,
                              key_text(seen.key),
                              text(index)));
    const auto by = from->second.transaction;
    if (history_[by].came_to == fate::refused)
      note("aborted read (G1a)",
           fmt::format(
             "{} is in {}, but was refused: {}", what, text(index), text(by)));
    if (is_end && !from->second.is_last && by != index)
      note("intermediate read (G1b)",
           fmt::format("{} sees a part of {}", text(index), text(by)));
    if (history_[by].asked > history_[index].answered
        && history_[index].came_to == fate::done)
      note("read of the future",
           fmt::format("{} sees an append that was sent later: {}",
                       text(index),
                       text(by)));
  }

  // Reports acknowledged appends that a later reader does not see.
  void look_for_losses() {
    std::unordered_map<std::uint32_t, std::size_t> last_readers;
    for (std::size_t index = 0; index < history_.size(); ++index)
      for (const auto& each : history_[index].reads) {
        auto& last = last_readers.emplace(each.key, index).first->second;
        if (history_[index].asked > history_[last].asked)
          last = index;
      }
    for (std::size_t index = 0; index < history_.size(); ++index) {
      if (history_[index].came_to != fate::done)
        continue;
      for (const auto& each : history_[index].appends) {
        const auto last = last_readers.find(each.key);
        if (!places_.contains(each.what) && last != last_readers.end()
            && history_[last->second].asked > history_[index].answered)
          note("lost",
               fmt::format("{} was acknowledged, but {} does not see it",
                           text(index),
                           text(last->second)));
      }
    }
  }

  // Reports appends of one process on one channel whose order in the list
  // differs from the order of the calls.
  void look_at_producers() {
    std::map<std::tuple<std::size_t, std::size_t, std::uint32_t>,
             std::vector<std::pair<std::uint64_t, std::size_t>>>
      sent; // The time of the call, and the place in the list.
    for (std::size_t index = 0; index < history_.size(); ++index)
      for (const auto& each : history_[index].appends)
        if (const auto found = places_.find(each.what); found != places_.end())
          sent[{history_[index].process, history_[index].channel, each.key}]
            .emplace_back(history_[index].asked, found->second);
    for (auto& [who, places] : sent) {
      std::ranges::stable_sort(
        places, {}, [](const auto& each) { return each.first; });
      const auto wrong = std::ranges::adjacent_find(
        places, [](const auto& one, const auto& next) {
          return one.second > next.second;
        });
      if (wrong == places.end())
        continue;
      const auto key = std::get<2>(who);
      const auto& list = *orders_.at(key).longest;
      const auto by = [&](const auto& sent_at) {
        return text(origins_.at(list[sent_at->second]).transaction);
      };
      note("reordered",
           fmt::format(
             "in {} an append that was sent later stands first: {}, before {}",
             key_text(key),
             by(std::next(wrong)),
             by(wrong)));
    }
  }

  // -- order of transactions ----

  void look_for_cycles() {
    dependency_graph graph(history_.size());
    for (const auto& [key, order] : orders_) {
      const auto& list = *order.longest;
      for (std::size_t place = 1; place < list.size(); ++place)
        connect(graph,
                writer(list[place - 1]),
                writer(list[place]),
                dependency::ww,
                key);
    }
    for (std::size_t index = 0; index < history_.size(); ++index)
      for (const auto& each : history_[index].reads) {
        const auto& list = *orders_.at(each.key).longest;
        if (!each.list.empty())
          connect(
            graph, writer(each.list.back()), index, dependency::wr, each.key);
        if (each.list.size() < list.size())
          connect(graph,
                  index,
                  writer(list[each.list.size()]),
                  dependency::rw,
                  each.key);
      }
    add_time(graph);
    for (const auto kind :
         {dependency::ww, dependency::wr, dependency::rw, dependency::time})
      found_.edges[std::string(to_string(kind))] = graph.count(kind);
    for (const auto& cycle : graph.cycles())
      note(name_of(cycle), cycle_text(cycle));
  }

  std::optional<std::size_t> writer(token what) const {
    const auto found = origins_.find(what);
    return found == origins_.end() ? std::nullopt
                                   : std::optional(found->second.transaction);
  }

  static void connect(dependency_graph& graph,
                      std::optional<std::size_t> before,
                      std::optional<std::size_t> behind,
                      dependency kind,
                      std::uint32_t key) {
    if (before && behind && *before != *behind)
      graph.connect(*before, *behind, kind, key);
  }

  // Adds one node per moment, linked in order of time. A transaction comes
  // before the moment of its answer; the last moment before its question comes
  // before it.
  void add_time(dependency_graph& graph) {
    if (rules_.time == time_order::none)
      return;

    struct moment {
      std::uint64_t time;
      bool is_answer;
      std::size_t transaction;
    };

    std::map<std::size_t, std::vector<moment>> lines;
    for (std::size_t index = 0; index < history_.size(); ++index) {
      const auto& each = history_[index];
      if (each.came_to == fate::refused)
        continue;
      auto& line = lines[rules_.time == time_order::process   ? each.process
                         : rules_.time == time_order::channel ? each.channel
                                                              : 0];
      line.push_back({each.asked, false, index});
      if (each.came_to == fate::done)
        line.push_back({each.answered, true, index});
    }
    for (auto& [whose, line] : lines) {
      std::ranges::sort(line, [](const moment& one, const moment& other) {
        return std::pair(one.time, one.is_answer)
               < std::pair(other.time, other.is_answer);
      });
      std::optional<std::size_t> last;
      for (const auto& each : line) {
        if (!each.is_answer) {
          if (last)
            graph.connect(*last, each.transaction, dependency::time, 0);
          continue;
        }
        const auto now = graph.add_node();
        if (last)
          graph.connect(*last, now, dependency::time, 0);
        graph.connect(each.transaction, now, dependency::time, 0);
        last = now;
      }
    }
  }

  // The name of an anomaly (Adya): the number of anti-dependencies in it
  // decides.
  static std::string name_of(const std::vector<dependency_graph::edge>& cycle) {
    const auto count = [&cycle](dependency kind) {
      return std::ranges::count(cycle, kind, &dependency_graph::edge::kind);
    };
    std::string name = count(dependency::rw) == 1  ? "G-single"
                       : count(dependency::rw) > 1 ? "G2"
                       : count(dependency::wr) > 0 ? "G1c"
                                                   : "G0";
    return count(dependency::time) > 0 ? name + " with time" : name;
  }

  std::string cycle_text(std::vector<dependency_graph::edge> cycle) const {
    // The cycle starts with a transaction, not with a node for a moment.
    const auto first = std::ranges::find_if(cycle, [this](const auto& each) {
      return each.before < history_.size();
    });
    std::rotate(cycle.begin(), first, cycle.end());
    std::string words;
    for (const auto& each : cycle) {
      if (each.before < history_.size())
        words += "\n  " + text(each.before);
      switch (each.kind) {
      case dependency::ww:
        words += fmt::format("\n    whose append to {} precedes that of",
                             key_text(each.key));
        break;
      case dependency::wr:
        words += fmt::format("\n    whose append to {} is read by",
                             key_text(each.key));
        break;
      case dependency::rw:
        words += fmt::format("\n    which reads {} without the append of",
                             key_text(each.key));
        break;
      case dependency::time:
        if (each.before < history_.size())
          words += "\n    which was answered before the question of";
        break;
      }
    }
    return words + fmt::format("\n  T{}", cycle.front().before);
  }

  struct version_order {
    const std::vector<token>* longest = nullptr;
    std::size_t reader = 0;
  };

  const std::vector<list_transaction>& history_;
  const order_rules& rules_;
  order_verdict found_;
  std::unordered_map<token, origin> origins_;
  std::map<std::uint32_t, version_order> orders_;
  std::unordered_map<token, std::size_t> places_;
};

} // namespace

std::string to_string(const order_verdict& found) {
  std::string words;
  for (const auto& each : found.findings)
    words += each + '\n';
  for (const auto& [kind, count] : found.counts)
    words += fmt::format("{} x {}\n", count, kind);
  return words;
}

order_verdict check_append_order(const std::vector<list_transaction>& history,
                                 const order_rules& rules) {
  return inspection(history, rules).run();
}

} // namespace troupe::testing
