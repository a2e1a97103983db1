// A member that few objects of its kind have: a pointer until somebody puts something into it.
#pragma once

#include <cstddef>
#include <utility>

#include "kernels/copy_on_write.h"

namespace stepscope {

// T is a container. Read as an empty one while nothing was put into it; copies share it until one of them is changed.
template <typename T>
class Rare {
 public:
  Rare() = default;
  Rare(T contents) { *this = std::move(contents); }  // NOLINT: implicit, as a T is given where one is expected
  Rare& operator=(T contents) {
    if (contents.empty())
      held_.clear();
    else
      held_ = CopyOnWrite<T>(std::move(contents));
    return *this;
  }

  const T& get() const { return *held_; }
  operator const T&() const { return get(); }  // NOLINT: implicit, it is read as a T
  // Of this copy alone. Good until this is copied or assigned.
  T& edit() { return held_.edit(); }
  void clear() { held_.clear(); }
  friend bool operator==(const Rare& a, const Rare& b) { return a.held_.isSame(b.held_) || a.get() == b.get(); }

  bool empty() const { return get().empty(); }
  auto size() const { return get().size(); }
  auto begin() const { return get().begin(); }
  auto end() const { return get().end(); }
  const auto& operator[](std::size_t i) const { return get()[i]; }  // of a vector
  template <typename Key>
  auto find(const Key& key) const {
    return get().find(key);
  }
  template <typename Key>
  const auto& at(const Key& key) const {
    return get().at(key);
  }
  template <typename Key>
  bool contains(const Key& key) const {
    return get().contains(key);
  }

 private:
  CopyOnWrite<T> held_;
};

}  // namespace stepscope
