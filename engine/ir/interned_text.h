// A text held by its number: equal texts have equal numbers, so that comparing and copying costs as much as an int.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

#include "engine/ir/text_like.h"

namespace stepscope {

// Texts are kept for the life of the process, in one table; any thread may add and read. What models are made of goes in,
// names, module paths and lines of source: a 100,000-node model adds some 10 MiB once, however often it is built.
class InternedText : public TextLike<InternedText> {
 public:
  InternedText() = default;  // the empty text
  explicit InternedText(std::string_view text);
  InternedText& operator=(std::string_view text) { return *this = InternedText(text); }
  std::string_view view() const;  // valid for the life of the process; takes no lock
  bool empty() const { return index_ == 0; }
  std::uint32_t index() const { return index_; }

  friend bool operator==(InternedText a, InternedText b) { return a.index_ == b.index_; }
  // By the bytes of the texts: the same order in every process.
  friend std::strong_ordering operator<=>(InternedText a, InternedText b) {
    return a.index_ == b.index_ ? std::strong_ordering::equal : a.view() <=> b.view();
  }

 private:
  std::uint32_t index_ = 0;
};

}  // namespace stepscope

template <>
struct std::hash<stepscope::InternedText> {
  std::size_t operator()(stepscope::InternedText text) const noexcept { return std::hash<std::uint32_t>{}(text.index()); }
};
