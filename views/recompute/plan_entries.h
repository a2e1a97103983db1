// SPDX-License-Identifier: GPL-3.0-or-later
// The text of option recompute.plan as entries: "Gelu+:1:-1, Cast+Mul+:1:2".
#pragma once

#include <QString>
#include <map>

namespace stepscope {

constexpr qint64 kAllOccurrences = -1;

// What of the text can be read: pattern and how many of its first occurrences; kAllOccurrences for -1, 0 for entries of kind
// 0. What is wrong with the rest is the worker's to say.
std::map<QString, qint64> planEntries(const QString& text);

// The text with `count` for that pattern (0 takes its entry out), other entries as they stand.
QString withPlanEntry(const QString& text, const QString& pattern, qint64 count);

}  // namespace stepscope
