// What was changed in a graph, in order. Copies of a log share what they have in common: a kept stage of a graph costs the
// last block of its log, not the whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "engine/ir/ids.h"
#include "engine/ir/interned_text.h"

namespace stepscope {

// One change; diffs between phases are read from the log.
struct Edit {
  enum class Kind : std::uint8_t { kAddNode, kRemoveNode, kChangeNode, kReplaceUses } kind;
  NodeId node;
  ValueId from, to;   // kReplaceUses
  InternedText pass;  // the pass that was current
};

class EditLog {
 public:
  static constexpr std::size_t kBlock = 1024;  // edits that copies share or hold alone

  void push_back(const Edit& edit) {
    tail_.push_back(Held(edit));
    if (tail_.size() < kBlock) return;
    full_.push_back(std::make_shared<const std::vector<Held>>(std::move(tail_)));
    tail_.clear();
  }

  std::size_t size() const { return full_.size() * kBlock + tail_.size(); }
  bool empty() const { return size() == 0; }
  Edit operator[](std::size_t i) const {
    return (i / kBlock < full_.size() ? (*full_[i / kBlock])[i % kBlock] : tail_[i % kBlock]).edit();
  }
  Edit back() const { return (*this)[size() - 1]; }

  // Forwards only.
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Edit;
    using difference_type = std::ptrdiff_t;
    using pointer = void;
    using reference = Edit;

    Iterator() = default;
    Iterator(const EditLog* log, std::size_t at) : log_(log), at_(at) {}
    Edit operator*() const { return (*log_)[at_]; }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    Iterator operator++(int) { return Iterator(log_, at_++); }
    friend bool operator==(const Iterator&, const Iterator&) = default;

   private:
    const EditLog* log_ = nullptr;
    std::size_t at_ = 0;
  };
  Iterator begin() const { return {this, 0}; }
  Iterator end() const { return {this, size()}; }

 private:
  // An edit in twelve bytes: it has a node, or two values.
  struct Held {
    explicit Held(const Edit& edit)
        : pass(edit.pass),
          first(edit.kind == Edit::Kind::kReplaceUses ? edit.from.index : edit.node.index),
          second(edit.kind == Edit::Kind::kReplaceUses ? edit.to.index : kNoValue - static_cast<std::int32_t>(edit.kind)) {}
    Edit edit() const {
      if (second > kNoValue) return {Edit::Kind::kReplaceUses, {}, {first}, {second}, pass};
      return {static_cast<Edit::Kind>(kNoValue - second), {first}, {}, {}, pass};
    }
    static constexpr std::int32_t kNoValue = -2;  // and below: the kind; ids begin at -1
    InternedText pass;
    std::int32_t first, second;
  };

  std::vector<std::shared_ptr<const std::vector<Held>>> full_;  // of kBlock edits each, shared with copies
  std::vector<Held> tail_;
};

}  // namespace stepscope
