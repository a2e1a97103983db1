// SPDX-License-Identifier: GPL-3.0-or-later
// Values of the graph that a window shows, found by what they are.
#pragma once

#include "tests/workbench/window_driver.h"

namespace stepscope {

// The id of the first one that is wanted; -1: there is none.
template <class Wanted>
int valueOf(WindowDriver& w, const Wanted& wanted) {
  for (const snapshot::Value& v : w->store().graph()->graph().values())
    if (wanted(v)) return v.id();
  return -1;
}

}  // namespace stepscope
