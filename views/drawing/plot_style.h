// SPDX-License-Identifier: GPL-3.0-or-later
// How curves look and count: axes in the colours of the theme, whole steps, as many numbers as there is room for.
#pragma once

class QCPAxis;
class QCPAxisRect;
class QCPLegend;
class QCustomPlot;

namespace stepscope {

// Colours, fonts and number format of every axis of the plot; again after a change of theme.
void dressAxes(QCustomPlot& plot);

// An axis of numbers: at least three of them, as many decimals for all as the one with the most needs. dressAxes gives it to
// every axis that has no other.
void countNumbers(QCPAxis& axis);

// An axis whose scale is logarithmic: at least three numbers too, powers of ten where so many are in sight.
void countLogarithmic(QCPAxis& axis);

// An axis of steps or counts, which are whole and never negative.
void countWhole(QCPAxis& axis);

// Colours and fonts of a legend; again after a change of theme.
void dressLegend(QCPLegend& legend);

// A legend within `rect` stands in the corner where it covers the least of the curves, now and whenever the plot was laid
// out anew.
void keepLegendClear(QCPAxisRect& rect, QCPLegend& legend);

// Upright axes get three to five numbers, by their height (fewer where three lines have no room), and those of steps as many
// as stand apart, now and whenever the plot was laid out anew.
void fitTicks(QCustomPlot& plot);

}  // namespace stepscope
