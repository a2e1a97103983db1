// SPDX-License-Identifier: GPL-3.0-or-later
// The set-up as a test fills it in.
#pragma once

#include "tests/workbench/window_driver.h"
#include "views/open_dialog/set_up_dialog.h"

namespace stepscope {

// The one that is shown, the newest of several; nullptr: none is.
SetUpDialog* shownSetUp(WindowDriver& w);
// The text of a field by the end of its name, set_up_NAME, and of a label by its whole name; both must be there.
QString fieldOf(const SetUpDialog& dialog, const char* name);
QString labelOf(const SetUpDialog& dialog, const char* name);
// Presses Build and waits for the plan. What stands in the way otherwise; empty: it was built.
QString pressBuild(WindowDriver& w, SetUpDialog& dialog);

}  // namespace stepscope
