// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/help_button.h"

#include "views/common/tokens.h"

namespace stepscope {

HelpButton::HelpButton(QWidget* parent) : QToolButton(parent) {
  const Metrics m = Metrics::current();
  setObjectName(QStringLiteral("view_help"));
  setText(QStringLiteral("?"));
  setFixedSize(qRound(1.6 * m.unit), qRound(1.7 * m.unit));
  setStyleSheet(QStringLiteral("QToolButton { padding: 0; }"));
  setFocusPolicy(Qt::TabFocus);
  setToolTip(QStringLiteral("What this view shows: its page of the guide  (F1)"));
  setView({});
}

void HelpButton::setView(const QString& title) {
  setAccessibleName(title.isEmpty() ? QStringLiteral("Help") : QStringLiteral("Help for %1").arg(title));
  setEnabled(!title.isEmpty());
}

}  // namespace stepscope
