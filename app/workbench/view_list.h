// SPDX-License-Identifier: GPL-3.0-or-later
// All views of the window, made from the lines of views/views.txt.
#pragma once

#include <vector>

#include "views/common/view.h"

namespace stepscope {

struct ViewEntry {
  const char* id;     // object name of the view, name in layouts
  const char* title;  // in the menu and the palette
  View* (*make)(const ViewContext& context);
};

const std::vector<ViewEntry>& viewList();

}  // namespace stepscope
