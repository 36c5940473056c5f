// The order among transactions, and the cycles that make it impossible.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace troupe::testing {

/// The reason why one transaction comes before another (Adya). `ww`: both wrote
/// the key, it wrote first. `wr`: the other read its write. `rw`: it read
/// before the other wrote. `time`: it ended before the other began.
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

  /// Adds a node for a moment between transactions.
  std::size_t add_node() {
    edges_of_.emplace_back();
    return edges_of_.size() - 1;
  }

  void connect(std::size_t before,
               std::size_t behind,
               dependency kind,
               std::uint32_t key);

  std::size_t count(dependency kind) const noexcept;

  /// Returns one short cycle for each part of the graph that has any, of the
  /// weakest kind that exists: `ww` alone, then with `wr`, then with one `rw`,
  /// then with several. Cycles without `time` come first.
  std::vector<std::vector<edge>> cycles() const;

private:
  std::vector<std::vector<std::size_t>> tangles() const;
  std::optional<std::vector<edge>>
  cycle_in(const std::vector<std::size_t>& tangle) const;

  std::vector<edge> edges_;
  std::vector<std::vector<std::size_t>> edges_of_; // By start node.
};

} // namespace troupe::testing
