// A short text that copies share: a pointer to its bytes and how many copies there are.
#pragma once

#include <atomic>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "engine/ir/text_like.h"

namespace stepscope {

// Names of nodes and values: kept stages of a graph hold the same ones. Immutable but for assignment of another text; copies
// may be read in different threads.
class SharedText : public TextLike<SharedText> {
 public:
  SharedText() = default;  // the empty text
  explicit SharedText(std::string_view text);
  SharedText(const SharedText& other) : held_(other.held_) {
    if (held_) held_->copies.fetch_add(1, std::memory_order_relaxed);
  }
  SharedText(SharedText&& other) noexcept : held_(std::exchange(other.held_, nullptr)) {}
  SharedText& operator=(SharedText other) noexcept {
    std::swap(held_, other.held_);
    return *this;
  }
  SharedText& operator=(std::string_view text) { return *this = SharedText(text); }
  ~SharedText();

  // Good while a copy holds it.
  std::string_view view() const {
    return held_ ? std::string_view(reinterpret_cast<const char*>(held_ + 1), held_->size) : std::string_view();
  }

  friend bool operator==(const SharedText& a, const SharedText& b) { return a.held_ == b.held_ || a.view() == b.view(); }
  friend std::strong_ordering operator<=>(const SharedText& a, const SharedText& b) { return a.view() <=> b.view(); }

 private:
  struct Held {  // the bytes are behind it
    std::atomic<std::uint32_t> copies;
    std::uint32_t size;
  };
  Held* held_ = nullptr;  // null: empty
};

}  // namespace stepscope
