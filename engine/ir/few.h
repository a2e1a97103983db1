// A vector of 4-byte ids that holds up to three of them in itself: a graph has a few hundred thousand such lists, and most
// are that short. 16 bytes; more than three are on the heap.
//
// Read and changed like a std::vector; converts from and to one. What it gives by reference or iterator is good until the
// next change.
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

namespace stepscope {

template <typename T>
class Few {
  static_assert(sizeof(T) == 4 && alignof(T) == 4 && std::is_trivially_copyable_v<T>);

 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;

  Few() = default;
  Few(std::initializer_list<T> values) { take(values.begin(), values.size()); }
  Few(const std::vector<T>& values) { take(values.data(), values.size()); }  // NOLINT: implicit, as a vector is given
  template <std::forward_iterator It>
  Few(It begin, It end) {
    const auto count = static_cast<std::size_t>(std::distance(begin, end));
    reserve(count);
    std::copy(begin, end, data());
    size_ = static_cast<std::uint32_t>(count);
  }
  Few(const Few& other) { take(other.data(), other.size()); }
  Few(Few&& other) noexcept { swap(other); }
  Few& operator=(Few other) noexcept {
    swap(other);
    return *this;
  }
  ~Few() {
    if (onHeap()) delete[] heap();
  }
  operator std::vector<T>() const { return {begin(), end()}; }  // NOLINT: implicit, it is read as a vector

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* data() { return onHeap() ? heap() : std::launder(reinterpret_cast<T*>(held_)); }
  const T* data() const { return onHeap() ? heap() : std::launder(reinterpret_cast<const T*>(held_)); }
  T* begin() { return data(); }
  T* end() { return data() + size(); }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size(); }
  auto rbegin() const { return std::make_reverse_iterator(end()); }
  auto rend() const { return std::make_reverse_iterator(begin()); }
  T& operator[](std::size_t i) { return data()[i]; }
  const T& operator[](std::size_t i) const { return data()[i]; }
  T& front() { return *begin(); }
  const T& front() const { return *begin(); }
  T& back() { return *(end() - 1); }
  const T& back() const { return *(end() - 1); }
  friend bool operator==(const Few& a, const Few& b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }
  friend auto operator<=>(const Few& a, const Few& b) {
    return std::lexicographical_compare_three_way(a.begin(), a.end(), b.begin(), b.end());
  }

  void reserve(std::size_t size) {
    if (size > capacity()) grow(size);
  }
  void clear() { *this = Few(); }
  void resize(std::size_t size, T value = {}) {
    if (size > this->size())
      insertMany(this->size(), size - this->size(), value);
    else
      cut(size);
  }
  void push_back(T value) { insertMany(size(), 1, value); }
  void pop_back() { cut(size() - 1); }
  T* insert(const T* at, T value) {
    const auto index = static_cast<std::size_t>(at - data());
    insertMany(index, 1, value);
    return data() + index;
  }
  template <std::forward_iterator It>
  T* insert(const T* at, It first, It last) {
    const auto index = static_cast<std::size_t>(at - data());
    const std::vector<T> values(first, last);  // they may be of this list
    insertMany(index, values.size(), {});
    std::copy(values.begin(), values.end(), data() + index);
    return data() + index;
  }
  T* erase(const T* at) { return erase(at, at + 1); }
  T* erase(const T* first, const T* last) {
    T* const to = data() + (first - data());
    std::copy(last, static_cast<const T*>(end()), to);
    size_ -= static_cast<std::uint32_t>(last - first);
    return to;
  }
  template <typename It>
  void assign(It first, It last) {
    *this = Few(first, last);
  }

 private:
  static constexpr std::size_t kHeld = 3;

  // On the heap: the capacity, then the address. They stay there when the list becomes short.
  bool onHeap() const { return heap_; }
  T* heap() const {
    T* address;
    std::memcpy(&address, held_ + kAddress, sizeof address);
    return address;
  }
  std::size_t capacity() const {
    std::uint32_t capacity = kHeld;
    if (onHeap()) std::memcpy(&capacity, held_, sizeof capacity);
    return capacity;
  }
  void grow(std::size_t wish) {
    const auto capacity = static_cast<std::uint32_t>(wish);
    T* const more = new T[capacity];
    std::copy(begin(), end(), more);
    if (onHeap()) delete[] heap();
    std::memcpy(held_, &capacity, sizeof capacity);
    std::memcpy(held_ + kAddress, &more, sizeof more);
    heap_ = 1;
  }
  void take(const T* values, std::size_t count) {
    reserve(count);
    std::copy(values, values + count, data());
    size_ = static_cast<std::uint32_t>(count);
  }
  void cut(std::size_t size) { size_ = static_cast<std::uint32_t>(size); }
  // Makes room for `count` elements in front of element `at`, which are `value`.
  void insertMany(std::size_t at, std::size_t count, T value) {
    if (size() + count > capacity()) grow(std::max(size() + count, size() * 2));
    std::copy_backward(data() + at, end(), end() + count);
    std::fill_n(data() + at, count, value);
    size_ += static_cast<std::uint32_t>(count);
  }
  void swap(Few& other) noexcept {
    std::byte mine[sizeof(Few)];
    std::memcpy(mine, static_cast<const void*>(this), sizeof mine);
    std::memcpy(static_cast<void*>(this), static_cast<const void*>(&other), sizeof mine);
    std::memcpy(static_cast<void*>(&other), mine, sizeof mine);
  }

  static constexpr std::size_t kAddress = 4;
  std::uint32_t size_ : 31 = 0;
  std::uint32_t heap_ : 1 = 0;
  alignas(T) std::byte held_[kHeld * sizeof(T)] = {};
};

}  // namespace stepscope
