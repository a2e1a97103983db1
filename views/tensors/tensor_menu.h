// SPDX-License-Identifier: GPL-3.0-or-later
// What can be done with a value: watch, pin, keep, compare, fill, load, save, break.
#pragma once

#include <QString>
#include <optional>

#include "views/common/view.h"

class QMenu;

namespace stepscope {

// A number that was typed for an element: as C++ reads it, nan and inf too, a minus sign for the hyphen.
std::optional<double> elementNumber(const QString& text);
QString notANumber(const QString& text);  // what to say otherwise

// Deletes itself when it closes. `keep` keeps the contents for comparison.
QMenu* makeTensorMenu(const ViewContext& context, int value, QWidget* parent, const std::function<void()>& keep);

}  // namespace stepscope
