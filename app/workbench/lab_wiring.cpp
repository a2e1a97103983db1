// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/lab_wiring.h"

#include <QFileInfo>
#include <QSettings>
#include <QStandardPaths>
#include <QTimer>

#include "views/common/findings.h"
#include "views/common/worker_host.h"

namespace stepscope {
namespace {

const QString kCompareCaptures = QStringLiteral("compare_captures");

// What stepscope_capture writes beside a model.
bool isCapture(const QString& model) {
  const QString folder = QFileInfo(model).absolutePath();
  return QFileInfo::exists(folder + QStringLiteral("/golden.safetensors")) ||
         QFileInfo::exists(folder + QStringLiteral("/capture.json"));
}

// Where the part of a step goes that shows a difference: beside the model, or where that is not for us to write, among the
// user's documents. `elsewhere`: the model lies on another machine.
QString bisectFile(const QString& model, bool elsewhere) {
  const QFileInfo of(model);
  QString folder = of.absolutePath();
  if (!elsewhere && !QFileInfo(folder).isWritable())
    folder = QStandardPaths::writableLocation(QStandardPaths::DocumentsLocation);
  QString path;
  for (int i = 1; path.isEmpty() || (!elsewhere && QFileInfo::exists(path)); ++i)
    path = QStringLiteral("%1/%2.bisect%3.onnx")
               .arg(folder, of.completeBaseName(), i == 1 ? QString() : QStringLiteral("-%1").arg(i));
  return path;
}

}  // namespace

LabWiring::LabWiring(SnapshotStore& store, Wishes& wishes, ModelSession& session, Recording& recording, bool remember)
    : store_(store), session_(session) {
  connect(&wishes, &Wishes::studyPrecision, &session, &ModelSession::studyPrecision);
  connect(&wishes, &Wishes::tryOptions, &session, &ModelSession::tryOptions);
  connect(&wishes, &Wishes::measureLedger, &session, &ModelSession::measureLedger);
  connect(&wishes, &Wishes::planCapacity, &session, &ModelSession::planCapacity);
  connect(&wishes, &Wishes::bisect, this, [this] {
    const SnapshotStore& facts = store_;
    session_.bisect(bisectFile(session_.modelPath(), !WorkerHost::of(facts).name().isEmpty()));
  });
  connect(&session, &ModelSession::ledgerMeasured, &recording, &Recording::ledger);
  connect(&session, &ModelSession::optionsTried, &recording, &Recording::trials);
  connect(&wishes, &Wishes::compareWithCapture, &session, &ModelSession::compareWithCapture);
  connect(&wishes, &Wishes::deleteRun, &recording, &Recording::deleteRun);
  connect(&recording, &Recording::deleted, &wishes,
          [&wishes](qint64 run) { emit wishes.status(QStringLiteral("Run %1 is deleted").arg(run)); });
  if (remember) store.findings().golden().setWanted(QSettings().value(kCompareCaptures, true).toBool());
  connect(&wishes, &Wishes::compareCaptures, this, [this, remember](bool always) {
    store_.findings().golden().setWanted(always);
    if (remember) QSettings().setValue(kCompareCaptures, always);
  });
  connect(&session, &ModelSession::builtChanged, this, [this] {
    if (!session_.built() || session_.comingBack()) return;
    // After everything else that follows a build.
    QTimer::singleShot(0, this, [this] {
      if (session_.attached()) return;
      if (session_.built() && session_.client().host().local()) session_.tellCaptureNotes();
      compareFirst();
    });
  });
}

void LabWiring::compareFirst() {
  const GoldenFinding& golden = store_.findings().golden();
  if (!golden.wanted() || !session_.built() || session_.working() || store_.position().in_step() ||
      store_.position().step() != 0 || !isCapture(session_.modelPath()))
    return;
  session_.compareWithCapture();
}

}  // namespace stepscope
