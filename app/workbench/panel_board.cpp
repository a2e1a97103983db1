// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/panel_board.h"

#include <QApplication>
#include <QMenu>
#include <QSplitter>
#include <QVBoxLayout>

#include "views/common/tokens.h"
#include "views/common/turns.h"

namespace stepscope {
namespace {

// A splitter that is one line wide and easy to catch all the same.
QSplitter* lineSplitter(Qt::Orientation orientation) {
  auto* splitter = new QSplitter(orientation);
  splitter->setHandleWidth(1);
  splitter->setChildrenCollapsible(false);
  return splitter;
}

}  // namespace

PanelBoard::PanelBoard(std::function<View*(const QString&)> make, QWidget* parent)
    : QWidget(parent),
      make_(std::move(make)),
      columns_(lineSplitter(Qt::Horizontal)),
      middle_(lineSplitter(Qt::Vertical)),
      centre_(lineSplitter(Qt::Horizontal)) {
  for (std::size_t i = 0; i < kAreaCount; ++i) {
    groups_[i] = new PanelGroup(static_cast<Area>(i));
    connect(groups_[i], &PanelGroup::viewDropped, this, &PanelBoard::move);
    connect(groups_[i], &PanelGroup::tabMenuWanted, this, &PanelBoard::openTabMenu);
    connect(groups_[i], &PanelGroup::frontChanged, this, &PanelBoard::activeViewChanged);
    connect(groups_[i], &PanelGroup::helpWanted, this, &PanelBoard::helpWanted);
    connect(groups_[i], &PanelGroup::viewTornOut, this, &PanelBoard::tearOut);
  }
  connect(&floating_, &FloatingPanels::tabMenuWanted, this, &PanelBoard::openTabMenu);
  connect(&floating_, &FloatingPanels::helpWanted, this, &PanelBoard::helpWanted);
  connect(&floating_, &FloatingPanels::opened, this, &PanelBoard::tornOut);
  connect(&floating_, &FloatingPanels::closed, this, [this](const QString& id) { move(id, floating_.homeOf(id)); });
  centre_->addWidget(group(Area::kCentre));
  centre_->addWidget(group(Area::kCentreRight));
  middle_->addWidget(centre_);
  middle_->addWidget(group(Area::kBottom));
  columns_->addWidget(group(Area::kLeft));
  columns_->addWidget(middle_);
  columns_->addWidget(group(Area::kRight));
  columns_->setStretchFactor(1, 1);
  connect(columns_, &QSplitter::splitterMoved, this, &PanelBoard::keepColumns);
  middle_->setStretchFactor(0, 1);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(columns_);
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
  sizes_ = layout;
  leftWidth_ = rightWidth_ = 0;
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
  applySizes();
  setUpdatesEnabled(true);
  emit changed();
  if (!placing && !awaited_.isEmpty()) turns::later(this, [this] { placeAwaited(); });
}

void PanelBoard::place(const QString& id, std::size_t area) {
  ViewFrame* f = frame(id);
  if (!f || groupOf(id)) return;
  groups_[area]->addFrame(f);
  groups_[area]->orderTabs(sizes_.views[area]);
}

void PanelBoard::placeAwaited() {
  if (awaited_.isEmpty()) return;
  const QString id = awaited_.takeFirst();
  for (std::size_t i = 0; i < kAreaCount; ++i) {
    if (sizes_.views[i].contains(id)) place(id, i);
  }
  hideEmptyGroups();
  emit changed();
  if (!awaited_.isEmpty()) turns::later(this, [this] { placeAwaited(); });
}

ViewLayout PanelBoard::present(const QString& name) const {
  ViewLayout layout = sizes_;
  layout.name = name;
  for (std::size_t i = 0; i < kAreaCount; ++i) {
    QStringList& ids = layout.views[i] = groups_[i]->ids();
    for (qsizetype at = 0; at < sizes_.views[i].size(); ++at) {
      if (const QString& id = sizes_.views[i][at]; awaited_.contains(id)) ids.insert(std::min(at, ids.size()), id);
    }
    layout.front[i] = groups_[i]->frontId();
  }
  layout.floating = floating_.present();
  const auto share = [](const QSplitter* splitter, int index, double fallback) {
    const QList<int> sizes = splitter->sizes();
    int sum = 0;
    for (const int s : sizes) sum += s;
    // Beside a hidden neighbour an area has everything, which says nothing about the layout.
    const double found = sum > 0 ? static_cast<double>(sizes[index]) / sum : 0;
    return found >= 0.05 && found <= 0.8 ? found : fallback;
  };
  layout.bottom = share(middle_, 1, layout.bottom);
  layout.centre = share(centre_, 0, layout.centre);
  return layout;
}

void PanelBoard::hideEmptyGroups() {
  for (PanelGroup* g : groups_) g->setVisible(!g->isEmpty());
  centre_->setVisible(!group(Area::kCentre)->isEmpty() || !group(Area::kCentreRight)->isEmpty());
}

void PanelBoard::applySizes() {
  if (width() < 200) return;
  sized_ = true;
  const int w = width(), h = height();
  applyColumns();
  middle_->setSizes({qRound(h * (1 - sizes_.bottom)), qRound(h * sizes_.bottom)});
  centre_->setSizes({qRound(w * sizes_.centre), qRound(w * (1 - sizes_.centre))});
}

void PanelBoard::applyColumns() {
  const int w = width();
  // In a small window a share is too little for a table: its columns need what they need.
  const int least = std::min(w / 4, 25 * Metrics::current().unit);
  const auto column = [&](int dragged, double share) {
    return dragged > 0 ? std::min(dragged, w * 2 / 5) : std::max(least, qRound(w * share));
  };
  const int left = column(leftWidth_, sizes_.left), right = column(rightWidth_, sizes_.right);
  columns_->setSizes({left, w - left - right, right});
}

void PanelBoard::keepColumns() {
  const QList<int> now = columns_->sizes();
  const auto keep = [&](int size, int* width, double* share) {
    const double found = static_cast<double>(size) / columns_->width();
    if (found < 0.05 || found > 0.8) return;  // a column that is hidden, or alone
    *width = size;
    *share = found;
  };
  keep(now[0], &leftWidth_, &sizes_.left);
  keep(now[2], &rightWidth_, &sizes_.right);
}

// A panel beside the views takes their room and gives it back: the columns are what they were then.
void PanelBoard::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  if (!sized_ || !isVisible())
    applySizes();
  else if (event->size().width() != event->oldSize().width())
    applyColumns();
}

View* PanelBoard::find(const QString& id) const {
  const ViewFrame* f = frames_.value(id);
  return f ? f->view() : nullptr;
}

void PanelBoard::focus(const View& view) {
  if (ViewFrame* f = frames_.value(view.objectName())) f->currentWidget()->setFocus();
}

View* PanelBoard::show(const QString& id) {
  ViewFrame* f = frame(id);
  if (!f) return nullptr;
  if (!groupOf(id)) {
    // A view that is awaited comes to its place in the layout.
    Area area = homeOf(id);
    for (std::size_t i = 0; i < kAreaCount; ++i) {
      if (awaited_.contains(id) && sizes_.views[i].contains(id)) area = static_cast<Area>(i);
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
  const ViewLayout before = present(sizes_.name);
  group(area)->addFrame(takeFrame(id));
  group(area)->bringToFront(id);
  hideEmptyGroups();
  emit changed();
  emit rearranged(before);
}

void PanelBoard::close(const QString& id) {
  PanelGroup* from = groupOf(id);
  if (!from) return;
  const ViewLayout before = present(sizes_.name);
  takeFrame(id);
  hideEmptyGroups();
  emit changed();
  emit rearranged(before);
}

void PanelBoard::tearOut(const QString& id) {
  PanelGroup* from = groupOf(id);
  if (!from || floating_.groupOf(id)) return;
  const ViewLayout before = present(sizes_.name);
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
  if (View* view = find(active_); view && view->isVisible()) return view;
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
