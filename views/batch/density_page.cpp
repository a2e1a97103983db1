// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/batch/density_page.h"

#include <QVBoxLayout>

#include "views/batch/batch_inputs.h"
#include "views/common/chosen_step.h"
#include "views/common/format.h"
#include "views/common/padding_cost.h"

namespace stepscope {
namespace {
constexpr std::size_t kHistory = 400;  // steps of a curve: more than it has pixels
}

DensityPage::DensityPage(const ViewContext& context, const BatchSource& source, QWidget* parent)
    : QWidget(parent),
      context_(context),
      source_(source),
      gauges_(new GaugeList),
      cost_(new Details),
      decisions_(new Details) {
  gauges_->setObjectName(QStringLiteral("batch_gauges"));
  cost_->setFitContents(true);
  cost_->setAccessibleName(QStringLiteral("What padding costs"));
  cost_->hide();
  decisions_->setFitContents(true);
  decisions_->setAccessibleName(QStringLiteral("Decisions"));
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  layout->addWidget(cost_);
  layout->addWidget(gauges_);
  layout->addWidget(decisions_);
  layout->addStretch(1);
  connect(gauges_, &GaugeList::clicked, this, [this](int value) { context_.selection.select(Selection::ofValue(value)); });
  for (Details* page : {cost_, decisions_})
    connect(page, &Details::selected, this, [this](const Selection& s) { context_.selection.select(s); });
}

void DensityPage::refresh() {
  const bool known = source_.facts() || source_.missing().isEmpty();
  gauges_->set(known ? batchGauges(context_.store, kHistory, source_.facts().get()) : std::vector<Gauge>());
  fillCost();
  fillDecisions();
}

// Where the time of a step goes that computes on nothing, and what would spare it.
void DensityPage::fillCost() {
  // It is known of the newest step alone.
  const auto& steps = context_.store.steps();
  const bool newest = ChosenStep::of(context_.store).step() < 0 ||
                      (source_.facts() && !steps.empty() && source_.facts()->step() == steps.back()->step());
  const PaddingCost cost = newest ? PaddingCost::of(context_.store) : PaddingCost();
  cost_->begin();
  bool heading = false;
  for (const PaddingCost::Of& of : cost.inputs) {
    if (of.ns <= 0) continue;
    if (!heading) cost_->heading(QStringLiteral("What it costs"));
    heading = true;
    const QString name = Details::link(Selection::ofValue(of.value), format::visible(of.input));
    cost_->row(of.labels ? QStringLiteral("ignored labels") : QStringLiteral("padding"),
               Details::strong(QStringLiteral("at least %1 of a step").arg(format::time(of.ns))) +
                   Details::quiet(QStringLiteral(", %1 of its %2: ")
                                      .arg(format::percent(static_cast<double>(of.ns), static_cast<double>(cost.stepNs)),
                                           format::time(cost.stepNs))) +
                   name);
    if (of.labels)
      cost_->row(QString(), Details::quiet(QStringLiteral(
                                "Places that the loss ignores are computed up to the loss all the same; "
                                "fewer of them, or rows that are chosen before the last product, spare it.")));
    else if (of.cutNs > 0)
      cost_->row(QString(),
                 Details::quiet(QStringLiteral("The longest row has %1 of %2: data cut there spare at least %3 a step.")
                                    .arg(of.longest)
                                    .arg(of.length)
                                    .arg(format::time(of.cutNs))));
    else
      cost_->row(QString(),
                 Details::quiet(QStringLiteral("One row fills all %1 places: rows of like length in one batch spare most "
                                               "of it.")
                                    .arg(of.length)));
  }
  if (heading) cost_->row(QString(), Details::quiet(QStringLiteral("The graph paints it: heat “time for padding”.")));
  cost_->end();
  cost_->setVisible(heading);
}

void DensityPage::fillDecisions() {
  const SnapshotStore& store = context_.store;
  const snapshot::StepRecord* shown = source_.facts()         ? source_.facts().get()
                                      : store.steps().empty() ? nullptr
                                                              : store.steps().back().get();
  decisions_->begin();
  if (!source_.missing().isEmpty()) decisions_->paragraph(Details::quiet(source_.missing()));
  if (shown && source_.live() && store.position().in_step() && shown->step() != store.position().step())
    decisions_->paragraph(
        Details::text(QStringLiteral("Gauges and worst row are of step %1, the last that ended; step %2 is not at its end.")
                          .arg(format::count(shown->step()), format::count(store.position().step()))));
  if (!shown) {
    decisions_->paragraph(Details::quiet(QStringLiteral("No step ran yet: the gauges stand after the first one.")));
  } else if (source_.missing().isEmpty() && shown->densities_size() == 0) {
    decisions_->paragraph(Details::quiet(
        store.readOnly()
            ? QStringLiteral("No density was recorded: no input has one, or an older version wrote the file.")
            : QStringLiteral("No input has a density: no mask, no label that the loss ignores, no padding value. The "
                             "setting pad INPUT=ID names one.")));
  }
  // What the build said of its inputs, and which passes were decided by one of them.
  const std::vector<int> inputs = batch::inputs(store);
  bool heading = false;
  for (const auto& span : store.phases()) {
    for (const auto& note : span.pass().notes()) {
      bool about = span.name() == "inspect inputs";
      for (const int id : inputs)
        about = about || note.find('\'' + store.graph()->value(id)->name() + '\'') != std::string::npos;
      if (!about) continue;
      if (!heading) decisions_->heading(QStringLiteral("Decided when this was built"));
      heading = true;
      decisions_->row(format::visible(span.name()), Details::text(format::visible(note)));
    }
  }
  decisions_->end();
}

}  // namespace stepscope
