// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/key_help/key_help.h"

#include <QHBoxLayout>

#include "views/common/details.h"
#include "views/common/tokens.h"

namespace stepscope {

KeyHelp::KeyHelp(const QList<QAction*>& actions, QWidget* parent) : QDialog(parent) {
  setObjectName(QStringLiteral("key_help"));
  setWindowTitle(QStringLiteral("Keys"));
  setAttribute(Qt::WA_DeleteOnClose);
  const Metrics m = Metrics::current();
  auto* layout = new QHBoxLayout(this);
  layout->setContentsMargins(m.unit, m.unit, m.unit, m.unit);
  layout->setSpacing(m.unit);
  const QList<QStringList> columns = {
      {QStringLiteral("Run"), QStringLiteral("Tools")},
      {QStringLiteral("Select"), QStringLiteral("View")},
      {QStringLiteral("File"), QStringLiteral("Layouts"), QStringLiteral("Timeline"), QStringLiteral("Help")}};
  for (const QStringList& groups : columns) {
    auto* page = new Details;
    page->begin(12);
    for (const QString& group : groups) {
      page->heading(group);
      if (group == u"Timeline") {
        page->row(QStringLiteral("W A S D"), Details::text(QStringLiteral("Zoom and pan in time")));
        page->row(QStringLiteral("Ctrl+wheel"), Details::text(QStringLiteral("Zoom at the pointer")));
        page->row(QStringLiteral("M"), Details::text(QStringLiteral("Mark the time of the selection")));
        continue;
      }
      for (const QAction* action : actions) {
        if (action->property("group").toString() != group || action->shortcuts().isEmpty()) continue;
        QStringList keys;
        for (const QKeySequence& key : action->shortcuts()) keys << key.toString(QKeySequence::NativeText);
        page->row(keys.join(QStringLiteral(", ")), Details::text(action->text()));
      }
      if (group == u"View") page->row(QStringLiteral("Esc"), Details::text(QStringLiteral("Close or cancel")));
    }
    page->end();
    page->setFitContents(true);
    page->setMinimumWidth(30 * m.unit);
    layout->addWidget(page, 0, Qt::AlignTop);
  }
}

}  // namespace stepscope
