// A value that copies share until one of them is changed: a pointer, and a count of copies in front of the value.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace stepscope {

// Read through `*` and `->`; changed through edit() alone, which makes the copy where it is shared. One that nothing was put
// into takes no memory and is read as T{}. Copies may be used in different threads; one object is as safe as a pointer.
template <typename T>
class CopyOnWrite {
 public:
  CopyOnWrite() = default;
  explicit CopyOnWrite(T value) : held_(new Held{1, std::move(value)}) {}
  CopyOnWrite(const CopyOnWrite& other) : held_(other.held_) {
    if (held_) held_->copies.fetch_add(1, std::memory_order_relaxed);
  }
  CopyOnWrite(CopyOnWrite&& other) noexcept : held_(std::exchange(other.held_, nullptr)) {}
  CopyOnWrite& operator=(CopyOnWrite other) noexcept {
    std::swap(held_, other.held_);
    return *this;
  }
  ~CopyOnWrite() {
    if (held_ && held_->copies.fetch_sub(1, std::memory_order_acq_rel) == 1) delete held_;
  }

  const T& operator*() const {
    static const T none{};
    return held_ ? held_->value : none;
  }
  const T* operator->() const { return &**this; }
  // Of this copy alone. Good until this is copied or assigned.
  T& edit() {
    if (!held_)
      held_ = new Held{1, T{}};
    else if (held_->copies.load(std::memory_order_acquire) > 1)
      *this = CopyOnWrite(held_->value);
    return held_->value;
  }
  bool holds() const { return held_ != nullptr; }  // something was put into it
  void clear() { *this = {}; }
  // The same memory; equal contents elsewhere do not count.
  bool isSame(const CopyOnWrite& other) const { return held_ == other.held_; }

 private:
  struct Held {
    std::atomic<std::uint32_t> copies;
    T value;
  };
  Held* held_ = nullptr;
};

}  // namespace stepscope
