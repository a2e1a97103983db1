// The phases that a build for training goes through, in order: the names of the spans of depth 0 (PhaseSpan.name). A build
// for inference leaves some out, and another one of a model that was read begins behind "infer".
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace stepscope {

inline constexpr std::array<std::string_view, 14> kBuildPhases{"load",
                                                               "check",
                                                               "inline",
                                                               "infer",
                                                               "attach loss",
                                                               "inspect inputs",
                                                               "pre-grad passes",
                                                               "gradient",
                                                               "post-grad passes",
                                                               "optimizer",
                                                               "specialise",
                                                               "recompute",
                                                               "plan",
                                                               "bind"};

// 1 for the first; 0 for a name that is none of them.
constexpr int placeOfPhase(std::string_view name) {
  const auto found = std::find(kBuildPhases.begin(), kBuildPhases.end(), name);
  return found == kBuildPhases.end() ? 0 : static_cast<int>(found - kBuildPhases.begin()) + 1;
}

}  // namespace stepscope
