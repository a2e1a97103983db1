// SPDX-License-Identifier: GPL-3.0-or-later
// How a buffer of a plan shares memory: told by the kind of the instruction that makes it, not by the words of its decision.
#pragma once

#include "views/common/snapshots.h"

namespace stepscope {

// The same bytes as the buffer it shares, made by an instruction that computes nothing.
bool isView(const PlanSnapshot& plan, const snapshot::Buffer& buffer);
// Written over the buffer it shares, in the arena.
bool isInPlace(const PlanSnapshot& plan, const snapshot::Buffer& buffer);

}  // namespace stepscope
