// SPDX-License-Identifier: GPL-3.0-or-later
// What stands in and beside the slices of collectives.
#pragma once

#include <QString>

#include "views/timeline/timeline_model.h"

namespace stepscope {

// In the slice: the collective, or that its rank waits.
QString exchangeWords(const TimelineModel& model, const TimelineSlice& slice);

// Beside it, in lines: the whole collective, which part of it the slice is, rank and step.
QString exchangeTip(const TimelineModel& model, const TimelineSlice& slice);

}  // namespace stepscope
