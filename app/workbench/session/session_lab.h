// SPDX-License-Identifier: GPL-3.0-or-later
// What takes a while to be found out about the present step: studies that leave state, plan and place as they are.
#pragma once

#include <QTimer>
#include <optional>

#include "app/workbench/session/session_link.h"
#include "views/common/findings.h"

namespace stepscope {

class SessionLab : public SessionPart {
  Q_OBJECT

 public:
  explicit SessionLab(const SessionParts& parts);

  // The answers stand in the findings.
  void recompute(bool whatIf, const QString& plan, qint64 budget);
  void studyPrecision(const QString& precision);
  void tryOptions(const snapshot::GetTrials& question);  // a pause ends it with what was measured
  void compareWithCapture();                             // what differs are alerts too
  void tellCaptureNotes();                               // what the capture of the model does not keep, as alerts
  void measureLedger();
  void planCapacity(const snapshot::GetCapacity& question);
  void bisect(const QString& file);  // .onnx of the part that shows the difference, on the worker's machine
  void determinism();
  void compareBits();
  std::vector<snapshot::Alert> captureAlerts() const;  // what differs from PyTorch, or why it is not known
  void leave();

 private:
  // `get`: what the answer has of it; nullptr: nothing.
  template <typename Report, typename Get>
  void find(StudyOf<Report>& study, snapshot::Request request, const QString& what, Get get, const Then& then = {});

  void recomputeAnswered();
  void tellCapture();  // the alerts of it that are not told yet

  QStringList captureNotes_;
  bool askingRecompute_ = false;
  QTimer recomputeTakesLong_;
  std::optional<RecomputeAnswer> nextRecompute_;
};

}  // namespace stepscope
