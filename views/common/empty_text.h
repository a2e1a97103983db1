// SPDX-License-Identifier: GPL-3.0-or-later
// What an empty view says before the model is built.
#pragma once

namespace stepscope {

// Property of a view that is filled by a graph that was only read: it keeps its own text, the others name the set-up.
inline constexpr const char* kNeedsNoPlan = "needs_no_plan";

}  // namespace stepscope
