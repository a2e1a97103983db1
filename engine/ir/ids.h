// Indices into a Graph, instead of pointers. Ids are given in order, never reused, and keep their meaning over all phases
// of one build: node 17 after fusion is the node 17 that was imported. That is what diffs and provenance stand on.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace stepscope {

template <typename Tag>
struct Id {
  std::int32_t index = -1;
  bool valid() const { return index >= 0; }
  explicit operator bool() const { return valid(); }
  friend auto operator<=>(const Id&, const Id&) = default;
};

// Ids of nodes and of values: two types, so that one is never taken for the other.
using NodeId = Id<struct NodeTag>;
using ValueId = Id<struct ValueTag>;

// A valid id as the index of a table with an entry per node or value.
template <typename Tag>
constexpr std::size_t at(Id<Tag> id) {
  return static_cast<std::size_t>(id.index);
}

}  // namespace stepscope

// Ids as keys of hash maps.
template <typename Tag>
struct std::hash<stepscope::Id<Tag>> {
  std::size_t operator()(stepscope::Id<Tag> id) const noexcept { return std::hash<std::int32_t>{}(id.index); }
};
