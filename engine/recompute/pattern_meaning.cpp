#include "engine/recompute/pattern_meaning.h"

#include <algorithm>
#include <array>
#include <map>
#include <vector>

namespace stepscope {
namespace {

bool isView(std::string_view op) {
  static constexpr std::array<std::string_view, 5> kViews{"Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity"};
  return std::find(kViews.begin(), kViews.end(), op) != kViews.end();
}

bool isElementwise(std::string_view op) {
  static constexpr std::array<std::string_view, 16> kElementwise{"Add",  "Sub",  "Mul",   "Div",   "Pow", "Neg",
                                                                 "Abs",  "Sqrt", "Cast",  "Exp",   "Log", "Sigmoid",
                                                                 "Tanh", "Relu", "Where", "Expand"};
  return std::find(kElementwise.begin(), kElementwise.end(), op) != kElementwise.end();
}

// What an operator of the other engine is here, in order.
std::vector<std::string_view> meaningOf(std::string_view op) {
  static const std::map<std::string_view, std::vector<std::string_view>> meanings{
      {"FastGelu", {"Gelu"}},
      {"BiasGelu", {"Gelu"}},
      {"BiasFastGelu", {"Gelu"}},
      {"BiasDropout", {"Dropout"}},
      {"BitmaskDropout", {"Dropout"}},
      {"BitmaskBiasDropout", {"Dropout"}},
      {"BiasSoftmax", {"Softmax"}},
      {"BiasSoftmaxDropout", {"Softmax", "Dropout"}},
      {"RMSNormalization", {"SimplifiedLayerNormalization"}},
      {"FusedMatMul", {"MatMul"}},
      {"BatchedMatMul", {"MatMul"}},
      {"Gemm", {"MatMul"}},
      {"ConcatTraining", {"Concat"}},
      {"Join", {"Concat"}},
  };
  if (isView(op)) return {};
  const auto found = meanings.find(op);
  return found == meanings.end() ? std::vector<std::string_view>{op} : found->second;
}

std::vector<std::string_view> wordsOf(std::string_view pattern) {
  std::vector<std::string_view> words;
  while (!pattern.empty()) {
    const auto end = std::min(pattern.find('+'), pattern.size());
    for (const std::string_view word : meaningOf(pattern.substr(0, end))) words.push_back(word);
    pattern.remove_prefix(std::min(end + 1, pattern.size()));
  }
  return words;
}

}  // namespace

bool meansPattern(std::string_view asked, std::string_view own) {
  if (asked == own) return true;
  if (asked == "block" || own == "block") return false;
  const std::vector<std::string_view> a = wordsOf(asked), b = wordsOf(own);
  std::size_t i = 0;
  for (const std::string_view word : b) {
    if (i < a.size() && a[i] == word) {
      ++i;
      continue;
    }
    if (word != "Pointwise" || i == a.size() || !isElementwise(a[i])) return false;
    while (i < a.size() && isElementwise(a[i])) ++i;
  }
  return !b.empty() && i == a.size();
}

}  // namespace stepscope
