// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/side_room.h"

#include <QEvent>
#include <vector>

#include "views/common/tokens.h"

namespace stepscope {
namespace {

constexpr int kLeastUnits = 24;  // a page that is narrower cuts off all that it says
constexpr const char* kName = "side_room";

// Child of the pages, one for all their panels.
class SideRoom : public QObject {
 public:
  explicit SideRoom(QWidget& pages) : QObject(&pages), pages_(pages) {
    setObjectName(QLatin1String(kName));
    pages.parentWidget()->installEventFilter(this);
  }

  void add(QWidget& panel) {
    panels_.push_back({&panel, panel.maximumWidth()});
    connect(&panel, &QObject::destroyed, this, [this](QObject* gone) {
      std::erase_if(panels_, [gone](const Panel& p) { return p.widget == gone; });
      arrange();
    });
    arrange();
  }

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override {
    if (event->type() == QEvent::Resize) arrange();
    return QObject::eventFilter(watched, event);
  }

 private:
  struct Panel {
    QWidget* widget;
    int width;
  };

  void arrange() {
    pages_.setMinimumWidth(panels_.empty() ? 0 : 1);
    int room = pages_.parentWidget()->width();
    for (const Panel& panel : panels_) room -= panel.width;
    const bool fits = panels_.empty() || room >= kLeastUnits * Metrics::current().unit;
    for (const Panel& panel : panels_) panel.widget->setFixedWidth(panel.width);
    if (!fits) panels_.front().widget->setMaximumWidth(QWIDGETSIZE_MAX);
    pages_.setVisible(fits);
  }

  QWidget& pages_;
  std::vector<Panel> panels_;  // in the order in which they came
};

}  // namespace

void giveWay(QWidget& pages, QWidget& panel) {
  auto* room = static_cast<SideRoom*>(pages.findChild<QObject*>(QLatin1String(kName), Qt::FindDirectChildrenOnly));
  if (!room) room = new SideRoom(pages);
  room->add(panel);
}

}  // namespace stepscope
