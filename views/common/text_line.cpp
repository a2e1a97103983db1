// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/text_line.h"

#include <QStyle>

namespace stepscope {

QLabel* textLine(const char* role, const char* id) {
  auto* line = new QLabel;
  line->setObjectName(QLatin1String(id));
  line->setTextFormat(Qt::PlainText);
  line->setWordWrap(true);
  line->setProperty("role", role);
  line->setTextInteractionFlags(Qt::TextSelectableByMouse);
  line->hide();
  return line;
}

void say(QLabel* line, const QString& text, const QString& role) {
  line->setText(text);
  line->setVisible(!text.isEmpty());
  line->setProperty("role", role);
  line->style()->unpolish(line);  // the role is read again
  line->style()->polish(line);
}

}  // namespace stepscope
