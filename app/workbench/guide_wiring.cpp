// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/guide_wiring.h"

#include <QApplication>
#include <QBoxLayout>
#include <algorithm>

#include "app/workbench/actions.h"
#include "app/workbench/notice_bar.h"
#include "app/workbench/panel_board.h"
#include "app/workbench/sample_list.h"
#include "app/workbench/side_room.h"
#include "views/common/tokens.h"
#include "views/common/wishes.h"

namespace stepscope {

GuideWiring::GuideWiring(const WindowParts& parts, QBoxLayout& middle, QWidget& pages)
    : parts_(parts), middle_(middle), pages_(pages) {
  connect(parts_.actions[QStringLiteral("guide")], &QAction::triggered, this,
          [this] { open(last_.isEmpty() ? QStringLiteral("start") : last_); });
  connect(parts_.actions[QStringLiteral("guide_here")], &QAction::triggered, this,
          [this] { openOfView(viewWithKeyboard()); });
  connect(&parts_.board, &PanelBoard::helpWanted, this, &GuideWiring::openOfView);
}

void GuideWiring::open(const QString& page) {
  GuidePanel* guide = shown();
  guide->open(page);
  guide->setFocus();
}

void GuideWiring::openOfView(const QString& viewId) {
  const QString page = guidePageOfView(viewId);
  open(page.isEmpty() ? QStringLiteral("start") : page);
}

void GuideWiring::close() {
  if (!panel_) return;
  last_ = panel_->page();
  panel_->hide();
  panel_->deleteLater();
  panel_ = nullptr;
  if (View* view = parts_.board.activeView(); view && parts_.board.isVisible()) parts_.board.focus(*view);
}

GuidePanel* GuideWiring::shown() {
  if (panel_) return panel_;
  panel_ = new GuidePanel(&parts_.window);
  panel_->setFixedWidth(std::min(parts_.window.width() * 2 / 5, 38 * Metrics::current().unit));
  middle_.addWidget(panel_);
  giveWay(pages_, *panel_);
  connect(panel_, &GuidePanel::closeWanted, this, &GuideWiring::close);
  connect(panel_, &GuidePanel::actionWanted, this, &GuideWiring::follow);
  connect(panel_, &GuidePanel::sampleWanted, this, &GuideWiring::openSample);
  panel_->show();
  return panel_;
}

void GuideWiring::follow(const QString& actionId) {
  QAction* action = parts_.actions.find(actionId);
  if (!action) return;
  if (action->isEnabled()) return action->trigger();
  parts_.notice.showProblem(
      QStringLiteral("%1: not possible now. %2").arg(action->text(), action->toolTip().section('\n', -1)), {}, {});
}

void GuideWiring::openSample(const QString& name) {
  const QString path = samplePath(name);
  if (path.isEmpty())
    return parts_.notice.showProblem(
        QStringLiteral("sample '%1': not found; expected it in share/stepscope/samples beside the program").arg(name), {},
        {});
  emit parts_.wishes.openPath(path);
}

QString GuideWiring::viewWithKeyboard() const {
  for (const QWidget* w = QApplication::focusWidget(); w; w = w->parentWidget())
    if (const auto* view = qobject_cast<const View*>(w); view && parts_.board.find(view->objectName()))
      return view->objectName();  // not of a page inside of it
  if (!parts_.board.isVisible()) return QStringLiteral("start");
  const View* view = parts_.board.activeView();
  return view ? view->objectName() : QString();
}

}  // namespace stepscope
