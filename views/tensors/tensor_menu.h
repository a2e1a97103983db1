// SPDX-License-Identifier: GPL-3.0-or-later
// What can be done with a value: watch, pin, keep, compare, fill, load, save, break.
#pragma once

#include "views/common/view.h"

class QMenu;

namespace stepscope {

// Deletes itself when it closes. `keep` keeps the contents for comparison.
QMenu* makeTensorMenu(const ViewContext& context, int value, QWidget* parent, const std::function<void()>& keep);

}  // namespace stepscope
