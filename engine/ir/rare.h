// A member that few objects of its kind have: a pointer until somebody puts something into it.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

namespace stepscope {

// T is a container. Read as an empty one while nothing was put into it; copies are deep.
template <typename T>
class Rare {
 public:
  Rare() = default;
  Rare(T contents) { *this = std::move(contents); }  // NOLINT: implicit, as a T is given where one is expected
  Rare(const Rare& other) : held_(other.held_ ? std::make_unique<T>(*other.held_) : nullptr) {}
  Rare(Rare&&) noexcept = default;
  Rare& operator=(const Rare& other) {
    if (this != &other) held_ = other.held_ ? std::make_unique<T>(*other.held_) : nullptr;
    return *this;
  }
  Rare& operator=(Rare&&) noexcept = default;
  Rare& operator=(T contents) {
    held_ = contents.empty() ? nullptr : std::make_unique<T>(std::move(contents));
    return *this;
  }

  const T& get() const {
    static const T none;
    return held_ ? *held_ : none;
  }
  operator const T&() const { return get(); }  // NOLINT: implicit, it is read as a T
  T& edit() {
    if (!held_) held_ = std::make_unique<T>();
    return *held_;
  }
  void clear() { held_ = nullptr; }
  friend bool operator==(const Rare& a, const Rare& b) { return a.get() == b.get(); }

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
  std::unique_ptr<T> held_;
};

}  // namespace stepscope
