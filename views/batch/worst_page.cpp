// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/batch/worst_page.h"

#include <cmath>

#include "views/batch/batch_inputs.h"
#include "views/batch/worst_row.h"
#include "views/common/findings.h"
#include "views/common/format.h"
#include "views/common/names.h"
#include "views/common/script_drives.h"
#include "views/common/tokens.h"

namespace stepscope {
namespace {

const QString kContents = QStringLiteral("contents");

std::int64_t samplesOf(const SnapshotStore& store, const BatchSource& source) {
  for (const int id : batch::inputs(store)) {
    if (const auto* kept = source.kept(id); kept && kept->dims_size() > 0) return kept->dims(0);
    bool known = false;
    const auto* v = store.graph()->value(id);
    const qint64 samples = v->dims_size() > 0 ? QString::fromStdString(v->dims(0)).toLongLong(&known) : 0;
    if (known) return samples;
  }
  return 0;
}

}  // namespace

WorstPage::WorstPage(const ViewContext& context, const BatchSource& source, std::function<TensorPtr(int)> contents,
                     QWidget* parent)
    : Details(parent), context_(context), source_(source), contents_(std::move(contents)) {
  setAccessibleName(QStringLiteral("Worst row"));
  connect(this, &Details::selected, this, [this](const Selection& s) { context_.selection.select(s); });
  connect(this, &Details::commandClicked, this, [this](const QString& what) {
    const auto number = [&what](int part) { return what.section(':', part, part).toInt(); };
    if (what.section(':', 0, 0) == kContents)
      emit contentsWanted(number(1), number(2));
    else
      emit context_.wishes.runTo(number(1) + 1);
  });
  connect(&context_.store.findings(), &Findings::rowLossesChanged, this, [this] {
    const auto& found = context_.store.findings().rowLosses();
    if (!found || found->values_size() > 0) losses_ = found;
    refresh();
  });
}

void WorstPage::ask() {
  const SnapshotStore& store = context_.store;
  if (!store.graph() || !source_.live()) return;
  if (!scriptDrives(store)) emit context_.wishes.rowLosses();
  for (const int id : batch::inputs(store)) {
    const auto* s = store.statistics(id);
    const TensorPtr known = store.tensor(id);
    if (!s || s->nan() + s->inf() == 0 || !known || contents_(id)) continue;
    // Which sample it is stands in the contents alone.
    emit context_.wishes.fetchTensor(id, std::vector<qint64>(static_cast<std::size_t>(known->dims_size()), 0),
                                     {known->dims().begin(), known->dims().end()});
  }
}

void WorstPage::forget() { losses_ = nullptr; }

int WorstPage::worstSample() const {
  if (!source_.live()) {
    const auto losses = source_.rowLosses();
    const auto worst = losses ? worstRow(*losses, samplesOf(context_.store, source_)) : std::nullopt;
    return worst ? worst->sample : -1;
  }
  if (!losses_ || losses_->step() != context_.store.presentStep()) return -1;
  const auto worst = worstRow(*losses_, samplesOf(context_.store, source_));
  return worst ? worst->sample : -1;
}

void WorstPage::refresh() {
  if (!isVisible()) return;
  begin();
  fillNotFinite();
  fillLosses();
  end();
}

void WorstPage::fillNotFinite() {
  const SnapshotStore& store = context_.store;
  for (const int id : batch::inputs(store)) {
    const auto* s = source_.statistics(id);
    if (!s || s->nan() + s->inf() == 0) continue;
    const int bad = firstBadSample(TensorValues(contents_(id)));
    row(QStringLiteral("Not finite"),
        link(Selection::ofValue(id), names::value(*store.graph(), id)) +
            coloured(QStringLiteral("  %1 NaN, %2 Inf").arg(format::count(s->nan()), format::count(s->inf())),
                     Tokens::current().number) +
            (bad >= 0 ? text(QStringLiteral(", first in sample %1").arg(bad)) : QString()));
  }
}

void WorstPage::fillWorst(const snapshot::RowLosses& losses) {
  const Tokens& t = Tokens::current();
  const std::int64_t samples = samplesOf(context_.store, source_);
  const auto worst = worstRow(losses, samples);
  if (!worst) {
    paragraph(quiet(QStringLiteral("The loss ignores every row of this batch.")));
    return;
  }
  QString place = QStringLiteral("row %1 of %2").arg(format::count(worst->row), format::count(losses.values_size()));
  if (worst->sample >= 0 && losses.values_size() > samples)
    place += QStringLiteral(": sample %1, place %2").arg(worst->sample).arg(worst->place);
  const QString named = worst->sample < 0
                            ? strong(place)
                            : command(QStringLiteral("%1:%2:%3").arg(kContents).arg(worst->sample).arg(worst->place), place);
  row(QStringLiteral("Worst row"),
      named + (losses.step() == source_.step() ? QString() : quiet(QStringLiteral("  of step %1").arg(losses.step()))));
  row(QStringLiteral("Its loss"),
      std::isfinite(worst->loss) ? text(format::number(worst->loss)) : coloured(format::number(worst->loss), t.number));
  row(QStringLiteral("Mean"),
      text(format::number(worst->mean)) +
          quiet(QStringLiteral("  of the %1 rows that count").arg(format::count(worst->counted))) +
          (worst->notFinite > 0 ? coloured(QStringLiteral("  %1 not finite").arg(format::count(worst->notFinite)), t.number)
                                : QString()));
  row(QStringLiteral("What"), quiet(format::visible(losses.quantity())));
}

void WorstPage::fillLosses() {
  const SnapshotStore& store = context_.store;
  if (!source_.missing().isEmpty()) return paragraph(quiet(source_.missing()));
  if (!source_.live()) {
    const auto losses = source_.rowLosses();
    if (losses && losses->values_size() > 0) {
      fillWorst(*losses);
    } else {
      paragraph(quiet(losses ? QStringLiteral("There is no value per row: %1.").arg(format::visible(losses->unavailable()))
                      : source_.recorded() ? QStringLiteral("This loss has no value per row.")
                                           : QStringLiteral("No losses of rows were recorded: the option record.batch is "
                                                            "off, or an older version wrote the file.")));
    }
    return;
  }
  const std::int64_t step = source_.step();
  const auto& newest = store.findings().rowLosses();
  if (losses_) fillWorst(*losses_);
  if (!newest || newest->values_size() > 0 || (losses_ && losses_->step() == step)) return;
  if (newest->instruction() < 0) {
    paragraph(quiet(QStringLiteral("There is no value per row: %1.").arg(format::visible(newest->unavailable()))));
  } else {
    paragraph(quiet(QStringLiteral("The rows can be read between the loss and its gradient; now: %1. ")
                        .arg(format::visible(newest->unavailable()))) +
              command(QStringLiteral("runpast:%1").arg(newest->instruction()),
                      QStringLiteral("Run past the loss, %1").arg(newest->instruction())));
  }
}

}  // namespace stepscope
