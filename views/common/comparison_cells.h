// SPDX-License-Identifier: GPL-3.0-or-later
// Cells and words that the views of a comparison share. Pure functions.
#pragma once

#include "views/common/project_facts.h"
#include "views/common/row_table.h"
#include "views/common/run_times.h"

namespace stepscope::comparison {

TableCell plain(const QString& text);  // hostile text, its whole in the tooltip
TableCell absent();                    // "–": the run does not have it, which is no zero
TableCell number(std::optional<double> x);
TableCell time(std::optional<double> ns);
TableCell bytes(std::optional<std::int64_t> bytes);
// B - A; above 5 percent coloured, less being better. Empty when one is missing, except that a missing time counts as 0.
// `judged` false: nothing is said of which is better, so without a colour.
TableCell timeDifference(std::optional<double> a, std::optional<double> b, bool judged = true);
TableCell bytesDifference(std::optional<std::int64_t> a, std::optional<std::int64_t> b);
TableCell change(std::optional<double> a, std::optional<double> b, bool judged = true);  // in percent of A
// Why the times of both runs say little about their settings; empty when they do not.
QString timesNote(const PairTimes& times);

// Sorts what is missing, and NaN, below every number.
QVariant sortKey(std::optional<double> x);

// What the views of a comparison say while there is none: how to get one, that it is being read, or why it failed. Empty
// once there is one.
QString noneText(const ProjectFacts& facts);
// That A and B of the comparison are one run, which says nothing; empty where they are two.
QString oneRunText(const ProjectFacts& facts);
// "step 3, loss: 2.3026 and 2.3031".
QString divergenceText(const Divergence& divergence);
// "rtol 1e−5, atol 1e−8".
QString toleranceText(const CompareRequest& request);

}  // namespace stepscope::comparison
