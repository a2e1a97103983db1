// A number that is known not to be negative as an index of a container.
#pragma once

#include <cstddef>

namespace stepscope {

constexpr std::size_t at(int i) { return static_cast<std::size_t>(i); }

}  // namespace stepscope
