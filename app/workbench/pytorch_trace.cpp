// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/pytorch_trace.h"

#include <QFileInfo>

#include "storage/pytorch/op_times.h"
#include "storage/queries.h"

namespace stepscope {
namespace {

PyTorchTimes::Rows rowsOf(const std::vector<storage::PyTorchOpTime>& times) {
  PyTorchTimes::Rows rows;
  for (const storage::PyTorchOpTime& t : times)
    rows[{QString::fromStdString(t.phase), QString::fromStdString(t.op)}] = {t.theirNs, t.instructions,
                                                                             QString::fromStdString(t.theirs)};
  return rows;
}

}  // namespace

PyTorchTimes::Rows readPyTorchTimes(const storage::Project& project, std::int64_t run) {
  const auto times = storage::readPyTorchOpTimes(project, run);
  return times ? rowsOf(*times) : PyTorchTimes::Rows();
}

storage::Result<PyTorchImport> importPyTorchTrace(const QString& project, std::int64_t run, const QString& trace,
                                                  bool keep) {
  const std::string path = project.toStdString();
  SS_STORE_ASSIGN(const storage::KinetoTrace read, storage::readKinetoTrace(trace.toStdString()));
  SS_STORE_ASSIGN(const storage::Project opened,
                  keep ? storage::Project::openForWriting(path) : storage::Project::openReadOnly(path));
  if (run == 0) {
    SS_STORE_ASSIGN(run, storage::newestRun(opened));
  }
  SS_STORE_ASSIGN(const storage::PyTorchJoin join, storage::joinTime(opened, run, read, trace.toStdString()));
  if (keep) SS_STORE_TRY(storage::writeJoin(opened, run, join, QFileInfo(trace).fileName().toStdString()));
  SS_STORE_ASSIGN(const storage::Timing timing, storage::readTiming(opened, run));
  PyTorchImport out{rowsOf(storage::opTimesOf(join, timing.instructions)),
                    QStringLiteral("PyTorch: %1 rows joined, %2 of theirs and %3 of ours not")
                        .arg(join.joined)
                        .arg(join.theirsAlone)
                        .arg(join.oursAlone)};
  if (!keep) out.text += QStringLiteral("; not kept: this run is being recorded (stepscope import)");
  return out;
}

}  // namespace stepscope
