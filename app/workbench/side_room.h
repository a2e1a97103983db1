// SPDX-License-Identifier: GPL-3.0-or-later
// A panel that stands beside the views while it lives.
#pragma once

#include <QWidget>

namespace stepscope {

// The pages give way to the panel, which has a fixed width. Where panels leave them too little room to be read, the pages
// are hidden and the first panel takes what is left; they come back with the room. Both stand in one horizontal layout.
void giveWay(QWidget& pages, QWidget& panel);

}  // namespace stepscope
