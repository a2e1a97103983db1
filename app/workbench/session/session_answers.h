// SPDX-License-Identifier: GPL-3.0-or-later
// Answers and events of the worker become facts in the store.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "app/workbench/session/session_part.h"
#include "app/workbench/worker_pipe.h"

namespace stepscope {

class SessionAnswers : public SessionPart {
  Q_OBJECT

 public:
  explicit SessionAnswers(const SessionParts& parts) : SessionPart(parts) {}

  void absorb(const Delivery& delivery);
  bool told(const snapshot::Alert& alert) const;               // it stands among those that are shown
  void tellAgain(const std::vector<snapshot::Alert>& alerts);  // those that do not

 private:
  void absorbBuild(const snapshot::Response& response);
  void takeAlerts(std::vector<snapshot::Alert> alerts, bool again);
  void absorbStep(const snapshot::StepRecord& record);
  void absorbAlert(const snapshot::Alert& alert);
  void absorbProgress(const snapshot::Progress& progress);
  bool toldWithItsPlace(const snapshot::Alert& alert) const;
  void reached(const snapshot::Position& position);

  std::set<std::string> came_;  // alerts that the worker has told of the model
};

}  // namespace stepscope
