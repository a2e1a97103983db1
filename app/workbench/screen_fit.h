// SPDX-License-Identifier: GPL-3.0-or-later
// Where a window stands whose screen may be gone.
#pragma once

#include <QList>
#include <QRect>

namespace stepscope {

// `wanted`, moved and made smaller as far as it takes to lie on one of the screens: the one that it covers most of, or the
// first where it lies on none. Screens are what is available of them; without any it stays as it is.
QRect fitToScreens(const QRect& wanted, const QList<QRect>& screens);
// Likewise, with the screens that there are now; room is left for a title bar.
QRect fitToScreens(const QRect& wanted);

}  // namespace stepscope
