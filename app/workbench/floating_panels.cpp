// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/floating_panels.h"

#include <QCloseEvent>
#include <QCoreApplication>
#include <QGuiApplication>
#include <QVBoxLayout>
#include <algorithm>

#include "app/workbench/screen_fit.h"

namespace stepscope {

class FloatingPanel : public QWidget {
 public:
  FloatingPanel(FloatingPanels& all, ViewFrame* frame, const FloatingView& place, QWidget* owner)
      : QWidget(owner, Qt::Window), all_(all), id_(place.id), group_(new PanelGroup(place.home)) {
    setObjectName(place.id + QStringLiteral("_window"));
    group_->setAcceptDrops(false);  // one view each
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addWidget(group_);
    group_->addFrame(frame);
    const auto name = [this, view = frame->view()] { setWindowTitle(QStringLiteral("%1 – Stepscope").arg(view->title())); };
    connect(frame->view(), &View::titleChanged, this, name);
    name();
    setMinimumSize(group_->minimumSize());
    setGeometry(fitToScreens(place.geometry));
    const auto fit = [this] { setGeometry(fitToScreens(geometry())); };
    connect(qApp, &QGuiApplication::screenRemoved, this, fit, Qt::QueuedConnection);
  }

  const QString& id() const { return id_; }
  PanelGroup& group() const { return *group_; }

 protected:
  void closeEvent(QCloseEvent* event) override {
    event->ignore();  // the frame is taken out first
    QMetaObject::invokeMethod(
        &all_, [&all = all_, id = id_] { emit all.closed(id); }, Qt::QueuedConnection);
  }
  // What the window does with a key that no widget takes, it does here too: Esc pauses, Space presses a button.
  bool event(QEvent* event) override {
    const auto type = event->type();
    if (type != QEvent::KeyPress && type != QEvent::ShortcutOverride) return QWidget::event(event);
    return QCoreApplication::sendEvent(parentWidget()->window(), event);
  }

 private:
  FloatingPanels& all_;
  const QString id_;
  PanelGroup* group_;
};

FloatingPanel* FloatingPanels::find(const QString& id) const {
  const auto it = std::find_if(panels_.begin(), panels_.end(), [&id](const FloatingPanel* p) { return p->id() == id; });
  return it == panels_.end() ? nullptr : *it;
}

void FloatingPanels::add(ViewFrame* frame, const FloatingView& place) {
  auto* panel = new FloatingPanel(*this, frame, place, owner_);
  panels_.push_back(panel);
  connect(&panel->group(), &PanelGroup::tabMenuWanted, this, &FloatingPanels::tabMenuWanted);
  connect(&panel->group(), &PanelGroup::helpWanted, this, &FloatingPanels::helpWanted);
  panel->group().bringToFront(place.id);
  emit opened(panel);
  panel->setVisible(owner_->isVisible());
}

ViewFrame* FloatingPanels::take(const QString& id) {
  FloatingPanel* panel = find(id);
  if (!panel) return nullptr;
  std::erase(panels_, panel);
  ViewFrame* frame = panel->group().takeFrame(id);
  panel->hide();
  panel->deleteLater();
  return frame;
}

void FloatingPanels::raise(const QString& id) {
  FloatingPanel* panel = find(id);
  if (!panel || !panel->isVisible()) return;
  if (panel->isMinimized()) panel->showNormal();
  panel->raise();
  panel->activateWindow();
}

void FloatingPanels::setShown(bool shown) {
  for (FloatingPanel* panel : panels_) panel->setVisible(shown);
}

PanelGroup* FloatingPanels::groupOf(const QString& id) const {
  const FloatingPanel* panel = find(id);
  return panel ? &panel->group() : nullptr;
}

Area FloatingPanels::homeOf(const QString& id) const {
  const FloatingPanel* panel = find(id);
  return panel ? panel->group().area() : Area::kBottom;
}

std::vector<FloatingView> FloatingPanels::present() const {
  std::vector<FloatingView> all;
  for (const FloatingPanel* panel : panels_) {
    const QRect rest = panel->isMaximized() ? panel->normalGeometry() : panel->geometry();
    all.push_back({panel->id(), panel->group().area(), rest});
  }
  return all;
}

}  // namespace stepscope
