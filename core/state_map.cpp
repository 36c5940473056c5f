#include "troupe/core/state_map.hpp"

#include <boost/container/small_vector.hpp>

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstdint>
#include <string>
#include <vector>

namespace troupe {

namespace {

constexpr std::size_t flat_keys_max = 32;
constexpr unsigned bits_per_level = 5;
constexpr unsigned depth_max = 64 / bits_per_level;

struct key_text : ref_counted<key_text> {
  explicit key_text(std::string_view name) : text(name) {}

  const std::string text;
};

struct entry {
  boost::intrusive_ptr<const key_text> key;
  value data;

  std::string_view name() const noexcept { return key->text; }
};

std::uint64_t hash_of(std::string_view name) noexcept {
  return std::hash<std::string_view>{}(name);
}

} // namespace

// A flat node (sorted entries, no bitmaps) is a small map, or the end of a path
// of equal hashes. Any other node is one level of the trie: `entries` follow
// the order of the bits in `entry_bits`, `children` that of `child_bits`.
//
// Invariant: a node is changed only while its reference count is 1, and so are
// all nodes above it (`own`). A copy of the map therefore never sees a change,
// and needs no lock.
struct state_map::node : ref_counted<node> {
  using pointer = boost::intrusive_ptr<node>;

  bool flat = true;
  std::uint32_t entry_bits = 0;
  std::uint32_t child_bits = 0;
  // A copy of a small node is one allocation.
  boost::container::small_vector<entry, 3> entries;
  std::vector<pointer> children;
};

namespace {

using node = state_map::node;
using node_pointer = node::pointer;

std::uint32_t bit_at(std::uint64_t hash, unsigned depth) noexcept {
  return 1U << ((hash >> (depth * bits_per_level)) & 31U);
}

std::size_t rank(std::uint32_t bits, std::uint32_t bit) noexcept {
  return static_cast<std::size_t>(std::popcount(bits & (bit - 1)));
}

template <class Entries>
auto flat_position(Entries& entries, std::string_view name) noexcept {
  return std::lower_bound(entries.begin(),
                          entries.end(),
                          name,
                          [](const entry& element, std::string_view wanted) {
                            return element.name() < wanted;
                          });
}

// Returns a node that only the caller holds: the node of `slot` if it is
// unique, otherwise a copy put into `slot`.
node& own(node_pointer& slot) {
  if (!slot->is_unique())
    slot = node_pointer(new node(*slot));
  return *slot;
}

const value*
find_in(const node& where, std::string_view name, std::uint64_t hash) noexcept {
  const node* level = &where;
  for (unsigned depth = 0; !level->flat; ++depth) {
    const auto bit = bit_at(hash, depth);
    if ((level->entry_bits & bit) != 0) {
      const auto& found = level->entries[rank(level->entry_bits, bit)];
      return found.name() == name ? &found.data : nullptr;
    }
    if ((level->child_bits & bit) == 0)
      return nullptr;
    level = level->children[rank(level->child_bits, bit)].get();
  }
  const auto position = flat_position(level->entries, name);
  return position != level->entries.end() && position->name() == name
           ? &position->data
           : nullptr;
}

bool insert_flat(node& level, entry added) {
  const auto position = flat_position(level.entries, added.name());
  if (position != level.entries.end() && position->name() == added.name()) {
    position->data = std::move(added.data);
    return false;
  }
  level.entries.insert(position, std::move(added));
  return true;
}

// Inserts or replaces a key; returns true if it was inserted. Only the caller
// may hold `level`.
bool insert(node& level, entry added, std::uint64_t hash, unsigned depth) {
  if (level.flat)
    return insert_flat(level, std::move(added));
  const auto bit = bit_at(hash, depth);
  if ((level.child_bits & bit) != 0) {
    auto& slot = level.children[rank(level.child_bits, bit)];
    return insert(own(slot), std::move(added), hash, depth + 1);
  }
  const auto index = rank(level.entry_bits, bit);
  const auto position
    = level.entries.begin() + static_cast<std::ptrdiff_t>(index);
  if ((level.entry_bits & bit) == 0) {
    level.entries.insert(position, std::move(added));
    level.entry_bits |= bit;
    return true;
  }
  if (position->name() == added.name()) {
    position->data = std::move(added.data);
    return false;
  }
  // Two keys share one bit: both move one level down.
  node_pointer below(new node);
  below->flat = depth + 1 == depth_max;
  const auto resident_hash = hash_of(position->name());
  insert(*below, std::move(*position), resident_hash, depth + 1);
  insert(*below, std::move(added), hash, depth + 1);
  level.entries.erase(position);
  level.entry_bits &= ~bit;
  level.children.insert(
    level.children.begin()
      + static_cast<std::ptrdiff_t>(rank(level.child_bits, bit)),
    std::move(below));
  level.child_bits |= bit;
  return true;
}

// Removes an existing key. Only the caller may hold `level`. The parent removes
// a level that becomes empty.
void remove(node& level,
            std::string_view name,
            std::uint64_t hash,
            unsigned depth) {
  if (level.flat) {
    level.entries.erase(flat_position(level.entries, name));
    return;
  }
  const auto bit = bit_at(hash, depth);
  if ((level.entry_bits & bit) != 0) {
    level.entries.erase(
      level.entries.begin()
      + static_cast<std::ptrdiff_t>(rank(level.entry_bits, bit)));
    level.entry_bits &= ~bit;
    return;
  }
  const auto slot = level.children.begin()
                    + static_cast<std::ptrdiff_t>(rank(level.child_bits, bit));
  auto& below = own(*slot);
  remove(below, name, hash, depth + 1);
  if (below.entries.empty() && below.children.empty()) {
    level.children.erase(slot);
    level.child_bits &= ~bit;
  }
}

node_pointer to_trie(const node& flat) {
  node_pointer root(new node);
  root->flat = false;
  for (const auto& element : flat.entries)
    insert(*root, element, hash_of(element.name()), 0);
  return root;
}

template <class Visit>
void visit_all(const node& level, const Visit& visit) {
  for (const auto& element : level.entries)
    visit(element.name(), element.data);
  for (const auto& below : level.children)
    visit_all(*below, visit);
}

} // namespace

state_map::state_map() noexcept = default;
state_map::state_map(const state_map& other) noexcept = default;

state_map::state_map(state_map&& other) noexcept
  : root_(std::move(other.root_)),
    size_(std::exchange(other.size_, 0)) {}

state_map& state_map::operator=(state_map other) noexcept {
  root_.swap(other.root_);
  std::swap(size_, other.size_);
  return *this;
}

state_map::~state_map() = default;

const value* state_map::find(std::string_view name) const noexcept {
  if (!root_)
    return nullptr;
  return find_in(*root_, name, root_->flat ? 0 : hash_of(name));
}

void state_map::set(std::string_view name, value data) {
  if (!root_)
    root_ = node_pointer(new node);
  auto& root = own(root_);
  if (root.flat) {
    const auto position = flat_position(root.entries, name);
    if (position != root.entries.end() && position->name() == name) {
      position->data = std::move(data);
      return;
    }
    entry added{new key_text(name), std::move(data)};
    root.entries.insert(position, std::move(added));
    if (++size_ > flat_keys_max)
      root_ = to_trie(root);
    return;
  }
  entry added{new key_text(name), std::move(data)};
  if (insert(root, std::move(added), hash_of(name), 0))
    ++size_;
}

bool state_map::erase(std::string_view name) {
  if (find(name) == nullptr)
    return false;
  remove(own(root_), name, root_->flat ? 0 : hash_of(name), 0);
  if (--size_ == 0)
    root_.reset();
  return true;
}

void state_map::for_each(
  const std::function<void(std::string_view, const value&)>& visit) const {
  if (root_)
    visit_all(*root_, visit);
}

bool operator==(const state_map& left, const state_map& right) {
  if (left.size() != right.size())
    return false;
  bool same = true;
  left.for_each([&](std::string_view name, const value& data) {
    const auto* other = right.find(name);
    same = same && other != nullptr && *other == data;
  });
  return same;
}

} // namespace troupe
