// A vector that copies share until one of them is changed, as a whole.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace stepscope {

// Read like a vector; changed through edit() alone, which makes the copy where it is shared.
template <typename T>
class SharedVector {
 public:
  SharedVector() = default;
  SharedVector(std::vector<T> contents)  // NOLINT: implicit, as a vector is given where one is expected
      : held_(std::make_shared<std::vector<T>>(std::move(contents))) {}

  const std::vector<T>& get() const {
    static const std::vector<T> none;
    return held_ ? *held_ : none;
  }
  // Good until this is copied.
  std::vector<T>& edit() {
    if (!held_ || held_.use_count() > 1) held_ = std::make_shared<std::vector<T>>(get());
    return *held_;
  }

  std::size_t size() const { return get().size(); }
  bool empty() const { return get().empty(); }
  const T& operator[](std::size_t i) const { return (*held_)[i]; }
  const T& front() const { return held_->front(); }
  const T& back() const { return held_->back(); }
  auto begin() const { return get().begin(); }
  auto end() const { return get().end(); }

 private:
  std::shared_ptr<std::vector<T>> held_;  // null: empty
};

}  // namespace stepscope
