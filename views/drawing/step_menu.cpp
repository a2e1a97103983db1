// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/drawing/step_menu.h"

#include <qcustomplot.h>

#include <QMenu>

#include "views/common/chosen_step.h"
#include "views/common/format.h"
#include "views/common/view.h"

namespace stepscope {
namespace {

// -1: none.
std::int64_t stepAt(const QCustomPlot& plot, const SnapshotStore& store, QPointF at) {
  const QCPAxisRect* rect = plot.axisRectAt(at);
  const StepSeries& series = store.series();
  if (!rect || series.empty()) return -1;
  return series.step()[series.nearest(rect->axis(QCPAxis::atBottom)->pixelToCoord(at.x()))];
}

}  // namespace

void offerSteps(QCustomPlot& plot, const ViewContext& context) {
  const SnapshotStore& store = context.store;
  Wishes& wishes = context.wishes;
  QObject::connect(&plot, &QCustomPlot::mouseDoubleClick, &plot, [&plot, &store, &wishes](QMouseEvent* event) {
    if (const std::int64_t step = stepAt(plot, store, event->position()); step >= 0) emit wishes.showStep(step);
  });
  plot.setContextMenuPolicy(Qt::CustomContextMenu);
  QObject::connect(&plot, &QWidget::customContextMenuRequested, &plot, [&plot, &store, &wishes](const QPoint& at) {
    auto* menu = new QMenu(&plot);
    menu->setAttribute(Qt::WA_DeleteOnClose);
    if (const std::int64_t step = stepAt(plot, store, at); step >= 0)
      menu->addAction(QStringLiteral("Show step %1 in full\tDouble click").arg(format::count(step)), &plot,
                      [&wishes, step] { emit wishes.showStep(step); });
    menu->addAction(QStringLiteral("Show the newest steps"), &plot, [&wishes] { emit wishes.showStep(-1); })
        ->setEnabled(ChosenStep::of(store).step() >= 0);
    menu->popup(plot.mapToGlobal(at));
  });
}

}  // namespace stepscope
