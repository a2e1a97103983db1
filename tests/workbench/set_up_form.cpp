// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/workbench/set_up_form.h"

#include <QLabel>
#include <QLineEdit>
#include <QPushButton>

namespace stepscope {

SetUpDialog* shownSetUp(WindowDriver& w) {
  SetUpDialog* shown = nullptr;
  for (auto* dialog : w->findChildren<SetUpDialog*>())
    if (dialog->isVisible()) shown = dialog;
  return shown;
}

QString fieldOf(const SetUpDialog& dialog, const char* name) {
  return dialog.findChild<QLineEdit*>(QStringLiteral("set_up_") + QLatin1String(name))->text();
}

QString labelOf(const SetUpDialog& dialog, const char* name) {
  return dialog.findChild<QLabel*>(QLatin1String(name))->text();
}

QString pressBuild(WindowDriver& w, SetUpDialog& dialog) {
  auto* button = dialog.findChild<QPushButton*>(QStringLiteral("set_up_build"));
  if (!button->isEnabled()) return QStringLiteral("the set-up does not build");
  w.loop().act([button] { button->click(); });
  if (!w.loop().wait([&] { return (w->session().built() && !w->session().busy()) || w->notice().isProblem(); }))
    return QStringLiteral("nothing came");
  return w->notice().isProblem() ? w->notice().text() : w.settled() ? QString() : QStringLiteral("it did not settle");
}

}  // namespace stepscope
