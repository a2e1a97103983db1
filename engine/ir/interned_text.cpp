#include "engine/ir/interned_text.h"

#include <deque>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <unordered_map>

namespace stepscope {
namespace {

struct Table {
  std::shared_mutex mutex;
  std::deque<std::string> texts{std::string()};  // a deque: views stay valid while it grows
  std::unordered_map<std::string_view, std::uint32_t> numbers{{std::string_view(), 0}};
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
  index_ = static_cast<std::uint32_t>(all.texts.size());
  all.texts.emplace_back(text);
  all.numbers.emplace(all.texts.back(), index_);
}

std::string_view InternedText::view() const {
  Table& all = table();
  const std::shared_lock lock(all.mutex);
  return all.texts[index_];
}

}  // namespace stepscope
