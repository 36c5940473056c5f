// Who must come before whom, and the cycles that say that nobody can.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace troupe::testing {

/// Why one transaction comes before another, by Adya: it wrote earlier, its
/// write was read, it read before the other wrote; or it was over in time.
enum class dependency : std::uint8_t { ww, wr, rw, time };

std::string_view to_string(dependency kind) noexcept;

class dependency_graph {
public:
  struct edge {
    std::size_t before;
    std::size_t behind;
    dependency kind;
    std::uint32_t key;
  };

  explicit dependency_graph(std::size_t nodes) : edges_of_(nodes) {}

  /// A further node, for a moment between transactions.
  std::size_t add_node() {
    edges_of_.emplace_back();
    return edges_of_.size() - 1;
  }

  void connect(std::size_t before,
               std::size_t behind,
               dependency kind,
               std::uint32_t key);

  std::size_t count(dependency kind) const noexcept;

  /// A short cycle of each part of the graph that has any, as weak as there is
  /// one: of `ww` alone, then with `wr`, then with one `rw`, then with more;
  /// each without `time` before with it.
  std::vector<std::vector<edge>> cycles() const;

private:
  std::vector<std::vector<std::size_t>> tangles() const;
  std::optional<std::vector<edge>>
  cycle_in(const std::vector<std::size_t>& tangle) const;

  std::vector<edge> edges_;
  std::vector<std::vector<std::size_t>> edges_of_; // By where they start.
};

} // namespace troupe::testing
