// SPDX-License-Identifier: GPL-3.0-or-later
// Sizes of the graph picture in scene units: 1 unit = 1 pixel at 100 % with a 13 pixel interface font.
#pragma once

namespace stepscope {

inline constexpr float kNodeWidth = 150;
inline constexpr float kSmallWidth = 124;  // "ConvWeightGrad" fits; weight gradients, optimizer nodes, constants
inline constexpr float kNodeHeight = 34;
inline constexpr float kInputWidth = 130;
inline constexpr float kInputHeight = 24;
inline constexpr float kClosedWidth = 240;
inline constexpr float kClosedHeight = 52;
inline constexpr float kFoldedWidth = 340;
inline constexpr float kFoldedHeight = 92;
inline constexpr float kRowGap = 24;  // between rows: room for an edge label
inline constexpr float kPitch = kNodeHeight + kRowGap;
inline constexpr float kSmallPitch = kNodeHeight + 12;
inline constexpr float kColumnGap = 30;  // between neighbours of a row
inline constexpr float kSideGap = 18;    // between small things that belong together
inline constexpr float kLaneGap = 30;    // before the lanes of weight gradients and optimizer nodes
inline constexpr float kGutter = 150;    // between the two columns: room for the names of stashes
inline constexpr float kHeader = 32;     // title of an open group
inline constexpr float kPadBottom = 18;
inline constexpr float kPadLeft = 56;  // room for brackets
inline constexpr float kPadRight = 28;
inline constexpr float kPadStubs = 112;  // room for the names of stashes

}  // namespace stepscope
