// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/header_line.h"

#include <QPainter>

#include "views/common/tokens.h"

namespace stepscope {

void HeaderLine::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  const Tokens& t = Tokens::current();
  painter.fillRect(rect(), t.raised);
  painter.fillRect(0, height() - 1, width(), 1, t.border);
}

}  // namespace stepscope
