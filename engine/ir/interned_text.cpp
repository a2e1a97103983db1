#include "engine/ir/interned_text.h"

#include <array>
#include <atomic>
#include <bit>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <unordered_map>

namespace stepscope {
namespace {

// Blocks twice as long as the one before, which stay where they are: reading takes no lock.
struct Table {
  static constexpr int kFirstBits = 10;

  std::shared_mutex mutex;  // of all but reading
  std::array<std::atomic<std::string*>, 32 - kFirstBits + 1> blocks{};
  std::unordered_map<std::string_view, std::uint32_t> numbers{{std::string_view(), 0}};

  std::string& at(std::uint32_t index) {
    const int block = std::bit_width(index >> kFirstBits);
    const std::uint32_t first = block == 0 ? 0 : std::uint32_t{1} << (block + kFirstBits - 1);
    return blocks[static_cast<std::size_t>(block)].load(std::memory_order_acquire)[index - first];
  }
  std::uint32_t add(std::string_view text) {
    const auto index = static_cast<std::uint32_t>(numbers.size());
    const int block = std::bit_width(index >> kFirstBits);
    std::atomic<std::string*>& texts = blocks[static_cast<std::size_t>(block)];
    if (!texts.load(std::memory_order_relaxed))
      texts.store(new std::string[std::size_t{1} << (block == 0 ? kFirstBits : block + kFirstBits - 1)],
                  std::memory_order_release);
    std::string& held = at(index);
    held = text;
    numbers.emplace(held, index);
    return index;
  }
};

Table& table() {
  static Table* const all = new Table;  // never destroyed: keys may live in other static objects
  return *all;
}

}  // namespace

InternedText::InternedText(std::string_view text) {
  if (text.empty()) return;
  Table& all = table();
  {
    const std::shared_lock lock(all.mutex);
    if (const auto it = all.numbers.find(text); it != all.numbers.end()) {
      index_ = it->second;
      return;
    }
  }
  const std::unique_lock lock(all.mutex);
  if (const auto it = all.numbers.find(text); it != all.numbers.end()) {
    index_ = it->second;
    return;
  }
  index_ = all.add(text);
}

std::string_view InternedText::view() const {
  return index_ == 0 ? std::string_view() : std::string_view(table().at(index_));
}

}  // namespace stepscope
