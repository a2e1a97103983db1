// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/side_room.h"

#include <QVariant>

namespace stepscope {

void giveWay(QWidget& pages, QWidget& panel) {
  constexpr const char* kPanels = "panels_beside";
  pages.setProperty(kPanels, pages.property(kPanels).toInt() + 1);
  pages.setMinimumWidth(1);
  QObject::connect(&panel, &QObject::destroyed, &pages, [&pages] {
    const int left = pages.property(kPanels).toInt() - 1;
    pages.setProperty(kPanels, left);
    if (left == 0) pages.setMinimumWidth(0);
  });
}

}  // namespace stepscope
