// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/panel_splits.h"

#include <QResizeEvent>
#include <QSplitter>
#include <QVBoxLayout>
#include <algorithm>

#include "views/common/tokens.h"

namespace stepscope {
namespace {

constexpr double kLeastShare = 0.05, kMostShare = 0.8;
constexpr int kThreeColumns = 56;  // in less units one of three columns would hold single letters

// A splitter that is one line wide and easy to catch all the same.
QSplitter* lineSplitter(Qt::Orientation orientation) {
  auto* splitter = new QSplitter(orientation);
  splitter->setHandleWidth(1);
  splitter->setChildrenCollapsible(false);
  return splitter;
}

// Beside a hidden neighbour an area has everything, which says nothing about the layout.
bool saysSomething(double share) { return share >= kLeastShare && share <= kMostShare; }

double shareOf(const QSplitter& splitter, int index, double fallback) {
  const QList<int> sizes = splitter.sizes();
  int sum = 0;
  for (const int s : sizes) sum += s;
  const double found = sum > 0 ? static_cast<double>(sizes[index]) / sum : 0;
  return saysSomething(found) ? found : fallback;
}

}  // namespace

PanelSplits::PanelSplits(const std::array<QWidget*, kAreaCount>& areas, QWidget* parent)
    : QWidget(parent),
      columns_(lineSplitter(Qt::Horizontal)),
      middle_(lineSplitter(Qt::Vertical)),
      centre_(lineSplitter(Qt::Horizontal)) {
  const auto at = [&areas](Area area) { return areas[static_cast<std::size_t>(area)]; };
  centre_->addWidget(at(Area::kCentre));
  centre_->addWidget(at(Area::kCentreRight));
  middle_->addWidget(centre_);
  middle_->addWidget(at(Area::kBottom));
  columns_->addWidget(at(Area::kLeft));
  columns_->addWidget(middle_);
  columns_->addWidget(at(Area::kRight));
  columns_->setStretchFactor(1, 1);
  connect(columns_, &QSplitter::splitterMoved, this, &PanelSplits::keepColumns);
  middle_->setStretchFactor(0, 1);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(columns_);
}

void PanelSplits::apply(const ViewLayout& layout) {
  left_ = layout.left, right_ = layout.right, bottom_ = layout.bottom, middleShare_ = layout.centre;
  leftWidth_ = rightWidth_ = 0;
  applyAll();
}

void PanelSplits::tell(ViewLayout& layout) const {
  layout.left = left_, layout.right = right_;
  layout.bottom = shareOf(*middle_, 1, bottom_);
  layout.centre = shareOf(*centre_, 0, middleShare_);
}

void PanelSplits::hideEmptyCentre(bool empty) { centre_->setVisible(!empty); }

void PanelSplits::applyAll() {
  if (width() < 200) return;
  sized_ = true;
  const int w = width(), h = height();
  applyColumns();
  middle_->setSizes({qRound(h * (1 - bottom_)), qRound(h * bottom_)});
  centre_->setSizes({qRound(w * middleShare_), qRound(w * (1 - middleShare_))});
}

void PanelSplits::applyColumns() {
  const int w = width();
  // In a small window a share is too little for a table: its columns need what they need.
  const int least = std::min(w / 4, 25 * Metrics::current().unit);
  const auto column = [&](int dragged, double share) {
    return dragged > 0 ? std::min(dragged, w * 2 / 5) : std::max(least, qRound(w * share));
  };
  // Beside the set-up, which is about what the right column would show of a plan.
  const bool narrow = w < kThreeColumns * Metrics::current().unit;
  columns_->setCollapsible(2, narrow);
  const int left = narrow ? w / 3 : column(leftWidth_, left_), right = narrow ? 0 : column(rightWidth_, right_);
  columns_->setSizes({left, w - left - right, right});
}

void PanelSplits::keepColumns() {
  const QList<int> now = columns_->sizes();
  const auto keep = [&](int size, int* width, double* share) {
    const double found = static_cast<double>(size) / columns_->width();
    if (!saysSomething(found)) return;  // a column that is hidden, or alone
    *width = size;
    *share = found;
  };
  keep(now[0], &leftWidth_, &left_);
  keep(now[2], &rightWidth_, &right_);
}

// A panel beside the views takes their room and gives it back: the columns are what they were then.
void PanelSplits::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  if (!sized_ || !isVisible())
    applyAll();
  else if (event->size().width() != event->oldSize().width())
    applyColumns();
}

}  // namespace stepscope
