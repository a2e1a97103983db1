// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/batch/density_page.h"

#include <QVBoxLayout>

#include "views/batch/batch_inputs.h"
#include "views/common/format.h"

namespace stepscope {
namespace {
constexpr std::size_t kHistory = 400;  // steps of a curve: more than it has pixels
}

DensityPage::DensityPage(const ViewContext& context, QWidget* parent)
    : QWidget(parent), context_(context), gauges_(new GaugeList), decisions_(new Details) {
  gauges_->setObjectName(QStringLiteral("batch_gauges"));
  decisions_->setFitContents(true);
  decisions_->setAccessibleName(tr("Decisions"));
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  layout->addWidget(gauges_);
  layout->addWidget(decisions_);
  layout->addStretch(1);
  connect(gauges_, &GaugeList::clicked, this, [this](int value) { context_.selection.select(Selection::ofValue(value)); });
  connect(decisions_, &Details::selected, this, [this](const Selection& s) { context_.selection.select(s); });
}

void DensityPage::refresh() {
  gauges_->set(batchGauges(context_.store, kHistory));
  fillDecisions();
}

void DensityPage::fillDecisions() {
  const SnapshotStore& store = context_.store;
  decisions_->begin();
  if (store.steps().empty()) {
    decisions_->paragraph(Details::quiet(tr("No step ran yet: the gauges stand after the first one.")));
  } else if (store.steps().back()->densities_size() == 0) {
    decisions_->paragraph(Details::quiet(
        store.readOnly() ? tr("No density was recorded: no input has one, or an older version wrote the file.")
                         : tr("No input has a density: no mask, no label that the loss ignores, no padding value. The "
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
      if (!heading) decisions_->heading(tr("Decided when this was built"));
      heading = true;
      decisions_->row(format::visible(span.name()), Details::text(format::visible(note)));
    }
  }
  decisions_->end();
}

}  // namespace stepscope
