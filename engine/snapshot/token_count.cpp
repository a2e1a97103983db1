#include "engine/snapshot/token_count.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/snapshot/units.h"

namespace stepscope {
namespace {

// Numbers of files may be anything.
std::int64_t sum(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  return __builtin_add_overflow(a, b, &result) ? INT64_MAX : result;
}

}  // namespace

void TokenCount::add(const TokenCount& other) {
  all = sum(all, other.all);
  trained = sum(trained, other.trained);
  padding = sum(padding, other.padding);
}

std::string untrainedText(const TokenCount& tokens) {
  std::string text;
  const auto part = [&](std::int64_t amount, const char* of) {
    if (amount <= 0 || tokens.all <= 0) return;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ",
                        units::percent(static_cast<double>(amount) / static_cast<double>(tokens.all)), of);
  };
  part(tokens.padding, "padding");
  part(tokens.ignored(), "ignored labels");
  return text;
}

void TokenCounter::add(std::string_view kind, std::int64_t valid, std::int64_t total) {
  if (total != all_ || valid < 0 || valid > total) return;
  std::optional<std::int64_t>& known = kind == "labels" ? labels_ : data_;
  known = std::min(known.value_or(valid), valid);
}

TokenCount TokenCounter::count() const {
  return {all_, labels_.value_or(data_.value_or(all_)), all_ - data_.value_or(all_)};
}

}  // namespace stepscope
