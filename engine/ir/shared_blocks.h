// A vector that copies share by blocks: a copy costs a pointer per block, and a change copies the one block that it is in.
// So a kept stage of a graph costs what was changed since, not the whole.
//
// Reading is that of a vector but for one more look-up. References that operator[] gave are good until the next change.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

namespace stepscope {

template <typename T, std::size_t kBlock = 256>
class SharedBlocks {
 public:
  SharedBlocks() = default;
  SharedBlocks(std::initializer_list<T> contents) {
    for (const T& one : contents) push_back(one);
  }
  explicit SharedBlocks(std::size_t size) : blocks_((size + kBlock - 1) / kBlock), size_(size) {
    for (std::shared_ptr<Block>& block : blocks_) block = std::make_shared<Block>();
  }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const T& operator[](std::size_t i) const { return (*blocks_[i / kBlock])[i % kBlock]; }
  const T& back() const { return (*this)[size_ - 1]; }
  // To be changed, of this copy alone: what it holds by pointer may still be held by others.
  T& edit(std::size_t i) {
    std::shared_ptr<Block>& block = blocks_[i / kBlock];
    if (block.use_count() > 1) block = std::make_shared<Block>(*block);
    return (*block)[i % kBlock];
  }
  void push_back(T value) {
    if (size_ % kBlock == 0) blocks_.push_back(std::make_shared<Block>());
    edit(size_++) = std::move(value);
  }

  // Forwards only.
  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using pointer = const T*;
    using reference = const T&;

    Iterator() = default;
    Iterator(const SharedBlocks* blocks, std::size_t at) : blocks_(blocks), at_(at) {}
    const T& operator*() const { return (*blocks_)[at_]; }
    const T* operator->() const { return &**this; }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    Iterator operator++(int) { return Iterator(blocks_, at_++); }
    friend bool operator==(const Iterator&, const Iterator&) = default;

   private:
    const SharedBlocks* blocks_ = nullptr;
    std::size_t at_ = 0;
  };
  Iterator begin() const { return {this, 0}; }
  Iterator end() const { return {this, size_}; }

 private:
  using Block = std::array<T, kBlock>;
  std::vector<std::shared_ptr<Block>> blocks_;
  std::size_t size_ = 0;
};

}  // namespace stepscope
