// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/panel_board.h"

#include <QApplication>
#include <QMenu>
#include <QVBoxLayout>

#include "views/common/tokens.h"
#include "views/common/turns.h"

namespace stepscope {

PanelBoard::PanelBoard(std::function<View*(const QString&)> make, QWidget* parent)
    : QWidget(parent), make_(std::move(make)) {
  std::array<QWidget*, kAreaCount> areas{};
  for (std::size_t i = 0; i < kAreaCount; ++i) {
    areas[i] = groups_[i] = new PanelGroup(static_cast<Area>(i));
    connect(groups_[i], &PanelGroup::viewDropped, this, &PanelBoard::move);
    connect(groups_[i], &PanelGroup::tabMenuWanted, this, &PanelBoard::openTabMenu);
    connect(groups_[i], &PanelGroup::chosen, this, &PanelBoard::choose);
    connect(groups_[i], &PanelGroup::frontChanged, this, &PanelBoard::activeViewChanged);
    connect(groups_[i], &PanelGroup::helpWanted, this, &PanelBoard::helpWanted);
    connect(groups_[i], &PanelGroup::viewTornOut, this, &PanelBoard::tearOut);
  }
  connect(&floating_, &FloatingPanels::tabMenuWanted, this, &PanelBoard::openTabMenu);
  connect(&floating_, &FloatingPanels::helpWanted, this, &PanelBoard::helpWanted);
  connect(&floating_, &FloatingPanels::opened, this, &PanelBoard::tornOut);
  connect(&floating_, &FloatingPanels::closed, this, [this](const QString& id) { move(id, floating_.homeOf(id)); });
  splits_ = new PanelSplits(areas);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(splits_);
  connect(qApp, &QApplication::focusChanged, this, [this](QWidget*, QWidget* now) {
    for (QWidget* w = now; w && w != this; w = w->parentWidget()) {
      if (auto* view = qobject_cast<View*>(w); view && frames_.contains(view->objectName())) {
        if (active_ != view->objectName()) {
          active_ = view->objectName();
          emit activeViewChanged();
        }
        return;
      }
    }
  });
}

PanelBoard::~PanelBoard() {
  disconnect(qApp, nullptr, this, nullptr);
  for (ViewFrame* frame : std::as_const(frames_)) {
    if (!frame->parentWidget()) delete frame;  // closed views belong to nobody else
  }
}

ViewFrame* PanelBoard::frame(const QString& id) {
  if (ViewFrame* known = frames_.value(id)) return known;
  View* view = make_(id);
  if (!view) return nullptr;
  auto* made = new ViewFrame(view);
  frames_.insert(id, made);
  return made;
}

PanelGroup* PanelBoard::groupOf(const QString& id) const {
  for (PanelGroup* g : groups_) {
    if (g->ids().contains(id)) return g;
  }
  return floating_.groupOf(id);
}

ViewFrame* PanelBoard::takeFrame(const QString& id) {
  if (ViewFrame* floating = floating_.take(id)) return floating;
  PanelGroup* group = groupOf(id);
  return group ? group->takeFrame(id) : nullptr;
}

void PanelBoard::apply(const ViewLayout& layout) {
  setUpdatesEnabled(false);
  const bool placing = !awaited_.isEmpty();
  awaited_.clear();
  layout_ = layout;
  // What stays in its area is left alone: a widget that changes its parent is styled anew with all it holds.
  for (std::size_t i = 0; i < kAreaCount; ++i) {
    for (const QString& id : groups_[i]->ids()) {
      if (!layout.views[i].contains(id)) groups_[i]->takeFrame(id);
    }
  }
  for (const FloatingView& now : floating_.present()) floating_.take(now.id);
  for (const FloatingView& place : layout.floating)
    if (ViewFrame* f = frame(place.id); f && !groupOf(place.id)) floating_.add(f, place);
  for (std::size_t i = 0; i < kAreaCount; ++i) {
    const QString front = layout.views[i].contains(layout.front[i]) ? layout.front[i] : layout.views[i].value(0);
    for (const QString& id : layout.views[i]) {
      if (id == front || frames_.contains(id))
        place(id, i);
      else
        awaited_ << id;
    }
    groups_[i]->orderTabs(layout.views[i]);  // also where all of them stood there before
    const QStringList ids = groups_[i]->ids();
    if (!ids.isEmpty() && !groups_[i]->bringToFront(front)) groups_[i]->bringToFront(ids.first());
  }
  hideEmptyGroups();
  splits_->apply(layout);
  setUpdatesEnabled(true);
  emit changed();
  if (!placing && !awaited_.isEmpty()) turns::later(this, [this] { placeAwaited(); });
}

void PanelBoard::place(const QString& id, std::size_t area) {
  ViewFrame* f = frame(id);
  if (!f || groupOf(id)) return;
  groups_[area]->addFrame(f);
  groups_[area]->orderTabs(layout_.views[area]);
}

// The view whose tab was clicked is the current one, and has the keyboard once the click is over.
void PanelBoard::choose(const QString& id) {
  active_ = id;
  emit activeViewChanged();
  turns::later(this, [this, id] {
    if (const ViewFrame* f = frames_.value(id); active_ == id && f && f->isVisible()) focus(*f->view());
  });
}

void PanelBoard::placeAwaited() {
  if (awaited_.isEmpty()) return;
  const QString id = awaited_.takeFirst();
  for (std::size_t i = 0; i < kAreaCount; ++i) {
    if (layout_.views[i].contains(id)) place(id, i);
  }
  hideEmptyGroups();
  emit changed();
  if (!awaited_.isEmpty()) turns::later(this, [this] { placeAwaited(); });
}

ViewLayout PanelBoard::present(const QString& name) const {
  ViewLayout layout = layout_;
  layout.name = name;
  for (std::size_t i = 0; i < kAreaCount; ++i) {
    QStringList& ids = layout.views[i] = groups_[i]->ids();
    for (qsizetype at = 0; at < layout_.views[i].size(); ++at) {
      if (const QString& id = layout_.views[i][at]; awaited_.contains(id)) ids.insert(std::min(at, ids.size()), id);
    }
    layout.front[i] = groups_[i]->frontId();
  }
  layout.floating = floating_.present();
  splits_->tell(layout);
  return layout;
}

void PanelBoard::hideEmptyGroups() {
  for (PanelGroup* g : groups_) g->setVisible(!g->isEmpty());
  splits_->hideEmptyCentre(group(Area::kCentre)->isEmpty() && group(Area::kCentreRight)->isEmpty());
}

View* PanelBoard::find(const QString& id) const {
  const ViewFrame* f = frames_.value(id);
  return f ? f->view() : nullptr;
}

View* PanelBoard::front(const QString& id) const {
  const ViewFrame* f = frames_.value(id);
  return f && f->isVisible() ? f->view() : nullptr;
}

void PanelBoard::focus(const View& view) {
  ViewFrame* f = frames_.value(view.objectName());
  if (!f) return;
  f->currentWidget()->setFocus();
  if (active_ == view.objectName()) return;
  active_ = view.objectName();
  emit activeViewChanged();
}

View* PanelBoard::show(const QString& id) {
  ViewFrame* f = frame(id);
  if (!f) return nullptr;
  if (!groupOf(id)) {
    // A view that is awaited comes to its place in the layout.
    Area area = homeOf(id);
    for (std::size_t i = 0; i < kAreaCount; ++i) {
      if (awaited_.contains(id) && layout_.views[i].contains(id)) area = static_cast<Area>(i);
    }
    awaited_.removeAll(id);
    place(id, static_cast<std::size_t>(area));
    hideEmptyGroups();
  }
  groupOf(id)->bringToFront(id);
  floating_.raise(id);
  active_ = id;
  emit changed();
  emit activeViewChanged();
  return f->view();
}

void PanelBoard::move(const QString& id, Area area) {
  PanelGroup* from = groupOf(id);
  if (!from || from == group(area)) return;
  const ViewLayout before = present(layout_.name);
  group(area)->addFrame(takeFrame(id));
  group(area)->bringToFront(id);
  hideEmptyGroups();
  emit changed();
  emit rearranged(before);
}

void PanelBoard::close(const QString& id) {
  PanelGroup* from = groupOf(id);
  if (!from) return;
  const ViewLayout before = present(layout_.name);
  takeFrame(id);
  hideEmptyGroups();
  emit changed();
  emit rearranged(before);
}

void PanelBoard::tearOut(const QString& id) {
  PanelGroup* from = groupOf(id);
  if (!from || floating_.groupOf(id)) return;
  const ViewLayout before = present(layout_.name);
  const int away = 2 * Metrics::current().unit;
  const QRect place(from->mapToGlobal(QPoint(away, away)), from->size().expandedTo({20 * away, 15 * away}));
  floating_.add(from->takeFrame(id), {id, from->area(), place});
  hideEmptyGroups();
  emit changed();
  emit rearranged(before);
}

void PanelBoard::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  floating_.setShown(true);
}

// A window that is minimised keeps what is on another screen.
void PanelBoard::hideEvent(QHideEvent* event) {
  QWidget::hideEvent(event);
  if (!event->spontaneous()) floating_.setShown(false);
}

View* PanelBoard::activeView() const {
  if (const ViewFrame* f = frames_.value(active_); f && f->isVisible()) return f->view();
  for (const Area area : {Area::kCentre, Area::kLeft, Area::kBottom, Area::kRight}) {
    if (View* view = group(area)->frontView()) return view;
  }
  return nullptr;
}

void PanelBoard::openTabMenu(const QString& id, const QPoint& globalPos) {
  auto* menu = new QMenu(this);
  menu->setAttribute(Qt::WA_DeleteOnClose);
  const std::pair<Area, QString> places[] = {{Area::kLeft, QStringLiteral("Move to the left")},
                                             {Area::kCentre, QStringLiteral("Move to the centre")},
                                             {Area::kCentreRight, QStringLiteral("Move beside the centre")},
                                             {Area::kRight, QStringLiteral("Move to the right")},
                                             {Area::kBottom, QStringLiteral("Move to the bottom")}};
  for (const auto& [area, text] : places) {
    QAction* action = menu->addAction(text, this, [this, id, area = area] { move(id, area); });
    action->setEnabled(groupOf(id) != group(area));
  }
  menu->addSeparator();
  if (floating_.groupOf(id))
    menu->addAction(QStringLiteral("Back into the window"), this, [this, id] { move(id, floating_.homeOf(id)); });
  else
    menu->addAction(QStringLiteral("Into a window of its own"), this, [this, id] { tearOut(id); });
  menu->addAction(QStringLiteral("Close view"), this, [this, id] { close(id); });
  menu->popup(globalPos);
}

}  // namespace stepscope
