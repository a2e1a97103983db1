// SPDX-License-Identifier: GPL-3.0-or-later
// A panel that stands beside the views while it lives.
#pragma once

#include <QWidget>

namespace stepscope {

// The pages give way to the panel; without any such panel they have their own least width again.
void giveWay(QWidget& pages, QWidget& panel);

}  // namespace stepscope
