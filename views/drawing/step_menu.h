// SPDX-License-Identifier: GPL-3.0-or-later
// A plot over steps leads to the step under the mouse: a double click, or the menu, shows it in full (ChosenStep).
#pragma once

class QCustomPlot;

namespace stepscope {

struct ViewContext;

// The bottom axis of every rectangle of the plot counts steps. What the context refers to outlives the plot.
void offerSteps(QCustomPlot& plot, const ViewContext& context);

}  // namespace stepscope
