#include "dependency_graph.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <queue>
#include <unordered_map>
#include <unordered_set>

namespace troupe::testing {

namespace {

// Limit of searches for a way back in one strongly connected part. One cycle of
// a part is enough where there are thousands.
constexpr std::size_t tries_max = 500;

} // namespace

std::string_view to_string(dependency kind) noexcept {
  constexpr std::array names = {"ww", "wr", "rw", "time"};
  return names[static_cast<std::size_t>(kind)];
}

void dependency_graph::connect(std::size_t before,
                               std::size_t behind,
                               dependency kind,
                               std::uint32_t key) {
  edges_of_[before].push_back(edges_.size());
  edges_.push_back({before, behind, kind, key});
}

std::size_t dependency_graph::count(dependency kind) const noexcept {
  return static_cast<std::size_t>(
    std::ranges::count(edges_, kind, &edge::kind));
}

std::vector<std::vector<dependency_graph::edge>>
dependency_graph::cycles() const {
  std::vector<std::vector<edge>> all;
  for (const auto& tangle : tangles())
    if (auto found = cycle_in(tangle))
      all.push_back(std::move(*found));
  return all;
}

// Finds the strongly connected parts of more than one node with Tarjan's
// algorithm. The stack is explicit because histories are too long for
// recursion.
std::vector<std::vector<std::size_t>> dependency_graph::tangles() const {
  constexpr auto unseen = std::numeric_limits<std::size_t>::max();

  struct visit {
    std::size_t node;
    std::size_t next_edge;
  };

  std::vector<std::size_t> number(edges_of_.size(), unseen);
  std::vector<std::size_t> lowest(edges_of_.size(), 0);
  std::vector<bool> is_open(edges_of_.size());
  std::vector<std::size_t> open;
  std::vector<visit> visits;
  std::vector<std::vector<std::size_t>> found;
  std::size_t count = 0;
  const auto enter = [&](std::size_t node) {
    number[node] = lowest[node] = count++;
    open.push_back(node);
    is_open[node] = true;
    visits.push_back({node, 0});
  };
  for (std::size_t root = 0; root < edges_of_.size(); ++root) {
    if (number[root] != unseen)
      continue;
    enter(root);
    while (!visits.empty()) {
      const auto node = visits.back().node;
      if (visits.back().next_edge < edges_of_[node].size()) {
        const auto next
          = edges_[edges_of_[node][visits.back().next_edge++]].behind;
        if (number[next] == unseen)
          enter(next);
        else if (is_open[next])
          lowest[node] = std::min(lowest[node], number[next]);
        continue;
      }
      visits.pop_back();
      if (!visits.empty())
        lowest[visits.back().node]
          = std::min(lowest[visits.back().node], lowest[node]);
      if (lowest[node] != number[node])
        continue;
      std::vector<std::size_t> part;
      do {
        part.push_back(open.back());
        is_open[open.back()] = false;
        open.pop_back();
      } while (part.back() != node);
      if (part.size() > 1)
        found.push_back(std::move(part));
    }
  }
  return found;
}

std::optional<std::vector<dependency_graph::edge>>
dependency_graph::cycle_in(const std::vector<std::size_t>& tangle) const {
  const std::unordered_set<std::size_t> inside(tangle.begin(), tangle.end());

  // Finds the shortest way along edges of the allowed kinds, breadth first.
  const auto way = [&](std::size_t from, std::size_t to, auto allows) {
    std::unordered_map<std::size_t, std::size_t> came_by; // Node to edge.
    std::queue<std::size_t> next;
    next.push(from);
    std::vector<edge> path;
    while (!next.empty()) {
      const auto node = next.front();
      next.pop();
      for (const auto index : edges_of_[node]) {
        const auto& each = edges_[index];
        if (!allows(each.kind) || !inside.contains(each.behind)
            || !came_by.emplace(each.behind, index).second)
          continue;
        if (each.behind == to) {
          for (auto at = to; path.empty() || at != from;) {
            path.push_back(edges_[came_by.at(at)]);
            at = path.back().before;
          }
          std::ranges::reverse(path);
          return path;
        }
        next.push(each.behind);
      }
    }
    return path;
  };

  // Searches, from the weakest anomaly to the strongest: a first edge of one
  // kind, and a way back along edges of other kinds.
  struct search {
    dependency first;
    unsigned others; // One bit per allowed kind.
  };

  constexpr auto bit
    = [](dependency kind) { return 1U << static_cast<unsigned>(kind); };
  constexpr auto ww = bit(dependency::ww);
  constexpr auto wr = ww | bit(dependency::wr);
  constexpr auto rw = wr | bit(dependency::rw);
  constexpr auto time = bit(dependency::time);
  for (const auto& [first, others] : {search{dependency::ww, ww},
                                      search{dependency::wr, wr},
                                      search{dependency::rw, wr},
                                      search{dependency::rw, rw},
                                      search{dependency::ww, ww | time},
                                      search{dependency::wr, wr | time},
                                      search{dependency::rw, wr | time},
                                      search{dependency::rw, rw | time}}) {
    std::optional<std::vector<edge>> shortest;
    std::size_t tries = 0;
    for (const auto node : tangle)
      for (const auto index : edges_of_[node]) {
        const auto& start = edges_[index];
        if (start.kind != first || !inside.contains(start.behind)
            || (shortest && (shortest->size() <= 2 || tries > tries_max)))
          continue;
        ++tries;
        auto back = way(start.behind, node, [others = others](dependency kind) {
          return (others & (1U << static_cast<unsigned>(kind))) != 0;
        });
        if (back.empty() || (shortest && shortest->size() <= back.size() + 1))
          continue;
        back.insert(back.begin(), start);
        shortest = std::move(back);
      }
    if (shortest)
      return shortest;
  }
  return std::nullopt;
}

} // namespace troupe::testing
