// SPDX-License-Identifier: GPL-3.0-or-later
// Pictures of a view.
#pragma once

#include <QString>

class QWidget;

namespace stepscope {

class View;

// PNG (twice the size on screen), SVG or PDF by the ending of the name. Empty, or the reason why not.
QString writePicture(View& view, const QString& path);
void copyPicture(View& view);

}  // namespace stepscope
