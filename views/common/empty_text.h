// SPDX-License-Identifier: GPL-3.0-or-later
// What empty views say.
#pragma once

#include <QString>

namespace stepscope {

class SnapshotStore;

// Property of a view that is filled by a graph that was only read: before a build it keeps its own text, the others name the
// set-up.
inline constexpr const char* kNeedsNoPlan = "needs_no_plan";

// Of a view of times of instructions, where the store has no step with any: they are being read, no step ran, or none in
// memory has them. `appear`: "its instructions appear here over time".
QString noTimesText(const SnapshotStore& store, const QString& appear);

}  // namespace stepscope
