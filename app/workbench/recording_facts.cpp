// SPDX-License-Identifier: GPL-3.0-or-later
// What is recorded besides builds and steps.
#include "app/workbench/ledger_record.h"
#include "app/workbench/project_files.h"
#include "app/workbench/recording.h"
#include "views/common/findings.h"
#include "views/common/format.h"

namespace stepscope {

void Recording::nameRun(qint64 run, const QString& name) {
  threads_.post([this, run, name = name.toStdString(), path = store_.project().projectPath().toStdString()](Core& core) {
    if (core.recorder) return core.recorder->nameRun(name, run);
    if (const auto named = nameInFile(path, run, name); !named)
      threads_.back([this, run, why = format::visible(named.error().message)] {
        emit failed(QStringLiteral("run %1 keeps its name: %2").arg(run).arg(why));
      });
  });
  queries_.refreshRuns();
}

void Recording::alert(const snapshot::Alert& alert) {
  if (!recording_) return;
  threads_.post([alert](Core& core) {
    if (core.recorder) core.recorder->alert(alert);
  });
}

void Recording::takenBack(qint64 step) {
  told_.clear();  // it is written again where it comes again
  if (!recording_) return;
  threads_.post([step](Core& core) {
    if (core.recorder) core.recorder->takenBack(step);
  });
}

void Recording::trials() {
  if (!recording_) return;
  threads_.post([report = store_.findings().trials().report()](Core& core) {
    if (core.recorder) core.recorder->trials(report);
  });
}

void Recording::ledger() {
  if (!recording_) return;
  threads_.post([report = store_.findings().ledger().report()](Core& core) {
    if (core.recorder && report) core.recorder->ledger(ledgerRecord(*report));
  });
}

void Recording::statistics(const snapshot::TensorData& value) {
  if (!recording_ || value.statistics().count() == 0) return;
  std::string now = std::to_string(value.step()) + value.statistics().SerializeAsString();
  std::string& before = told_[value.value()];
  if (now == before) return;
  before = std::move(now);
  threads_.post([step = value.step(), id = value.value(), name = value.name(), statistics = value.statistics()](Core& core) {
    if (core.recorder) core.recorder->tensorStats(step, id, name, statistics);
  });
}

}  // namespace stepscope
