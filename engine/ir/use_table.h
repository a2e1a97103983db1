// Who reads each value of a graph, as the graph was when the table was made.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "engine/ir/ids.h"

namespace stepscope {

// Input `input` of `node`; of a predicate, SIZE_MAX.
struct Use {
  NodeId node;
  std::size_t input = 0;
};

class UseTable {
 public:
  UseTable() = default;
  // begins: where the uses of each value begin, and behind the last one the number of all.
  UseTable(std::vector<std::size_t> begins, std::vector<Use> uses) : begins_(std::move(begins)), uses_(std::move(uses)) {}

  std::size_t size() const { return begins_.empty() ? 0 : begins_.size() - 1; }  // values
  // In the order of the nodes.
  std::span<const Use> operator[](std::size_t value) const {
    return std::span(uses_).subspan(begins_[value], begins_[value + 1] - begins_[value]);
  }
  std::span<const Use> of(ValueId value) const { return (*this)[static_cast<std::size_t>(value.index)]; }

 private:
  std::vector<std::size_t> begins_;
  std::vector<Use> uses_;
};

}  // namespace stepscope
