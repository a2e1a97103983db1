// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/screen_fit.h"

#include <QGuiApplication>
#include <QScreen>
#include <algorithm>

#include "views/common/tokens.h"

namespace stepscope {

QRect fitToScreens(const QRect& wanted, const QList<QRect>& screens) {
  if (screens.isEmpty()) return wanted;
  const auto covered = [&wanted](const QRect& screen) {
    const QRect both = screen & wanted;
    return static_cast<qint64>(both.width()) * both.height();
  };
  const QRect& screen = *std::max_element(screens.begin(), screens.end(),
                                          [&](const QRect& a, const QRect& b) { return covered(a) < covered(b); });
  QRect fits(wanted.topLeft(), wanted.size().boundedTo(screen.size()));
  fits.moveLeft(std::clamp(fits.left(), screen.left(), screen.right() + 1 - fits.width()));
  fits.moveTop(std::clamp(fits.top(), screen.top(), screen.bottom() + 1 - fits.height()));
  return fits;
}

QRect fitToScreens(const QRect& wanted) {
  QList<QRect> screens;
  for (const QScreen* screen : QGuiApplication::screens())
    screens << screen->availableGeometry().adjusted(0, 2 * Metrics::current().unit, 0, 0);
  return fitToScreens(wanted, screens);
}

}  // namespace stepscope
