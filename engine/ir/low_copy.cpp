#include "engine/ir/low_copy.h"

namespace stepscope {
namespace {
constexpr std::string_view kEnding = "_copy";
}

std::string lowCopyName(std::string_view parameter, DType low) {
  return std::string(parameter) + "." + std::string(dtypeName(low)) + std::string(kEnding);
}

std::string_view sourceOfLowCopy(std::string_view name) {
  for (const DType low : {DType::kBF16, DType::kF16}) {
    const std::string ending = lowCopyName("", low);
    if (name.size() > ending.size() && name.ends_with(ending)) return name.substr(0, name.size() - ending.size());
  }
  return {};
}

}  // namespace stepscope
