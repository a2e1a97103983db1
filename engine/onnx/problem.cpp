#include "engine/onnx/problem.h"

#include <fmt/format.h>

#include <string_view>

#include "engine/data/limits.h"

namespace stepscope {
namespace {

constexpr std::size_t kShown = 3;

}  // namespace

std::string Problem::text() const { return where + ": " + message + (hint.empty() ? "" : "; " + hint); }

std::string Problem::missingWeight() const {
  constexpr std::string_view kInitializer = "initializer '";
  const auto begin = where.find(kInitializer);
  if (code != ErrorCode::kNotFound || begin == std::string::npos || !where.ends_with('\'')) return {};
  const auto name = begin + kInitializer.size();
  return where.substr(name, where.size() - 1 - name);
}

void ProblemList::add(ErrorCode code, std::string where, std::string message, std::string hint) {
  ++count_;
  if (problems_.size() < limits::kProblemsKept)
    problems_.push_back({code, std::move(where), std::move(message), std::move(hint)});
}

Error ProblemList::toError() const {
  SS_CHECK(!problems_.empty());
  std::string text = problems_.front().text();
  for (std::size_t i = 1; i < problems_.size() && i < kShown; ++i) text += "\n" + problems_[i].text();
  if (count_ > kShown) text += fmt::format("\nand {} more problems", count_ - kShown);
  return {problems_.front().code, std::move(text)};
}

}  // namespace stepscope
