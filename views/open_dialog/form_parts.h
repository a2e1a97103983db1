// SPDX-License-Identifier: GPL-3.0-or-later
// What forms of the set-up are made of.
#pragma once

#include <QLabel>
#include <QString>
#include <QWidget>
#include <initializer_list>
#include <utility>
#include <vector>

namespace stepscope {

// Small muted plain text that wraps.
QLabel* quiet(const QString& text);

// Widgets below each other.
QWidget* column(std::initializer_list<QWidget*> widgets);

// Fields side by side, as wide as each other; buttons as wide as their text.
QWidget* line(std::initializer_list<QWidget*> widgets);

// Named fields in columns that stand below each other, in every grid of the page with names of at most this width; a field
// without a name takes its place too.
QWidget* grid(int nameWidth, std::initializer_list<std::vector<std::pair<QString, QWidget*>>> rows);

// The wheel over a closed choice or a number of the page scrolls the page; one that has the focus takes it.
void leaveWheelToPage(QWidget& page);

}  // namespace stepscope
