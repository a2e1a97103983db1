// How the elements of a tensor lie in memory. Dims are always the logical ones ([N, C, …]); a layout says where an element
// is.
//
//   kPlain         row-major
//   kChannels16    [N, C / 16, …, 16]: sixteen channels lie side by side, as vector units and oneDNN's nChw16c want them.
//                  C is a multiple of 16, so all layouts have the same size.
//   kChannelsLast  [N, …, C]: all channels of a position lie side by side, as units that multiply tiles want bfloat16.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "kernels/dtype.h"
#include "kernels/shape.h"

namespace stepscope {

enum class Layout : std::uint8_t { kPlain, kChannels16, kChannelsLast };

// Channels that lie side by side in kChannels16.
inline constexpr std::int64_t kLayoutLanes = 16;

std::string_view layoutName(Layout layout);  // "plain", "nChw16c", "nhwc"

// Why a tensor cannot lie in kChannels16 or kChannelsLast; empty when it can: rank 3 or more, channels a multiple of 16, no
// extent of 0, no strings.
std::string layoutRefusal(DType dtype, const Dims& dims);

// Copies all elements of a tensor that layoutRefusal allows from one layout to another. `from` and `to` do not overlap.
// Large ones are split over `threads`.
void reorderLayout(const void* from, Layout fromLayout, void* to, Layout toLayout, DType dtype, const Dims& dims,
                   int threads = 1);

}  // namespace stepscope
