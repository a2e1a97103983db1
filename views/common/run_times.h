// SPDX-License-Identifier: GPL-3.0-or-later
// What the steps of each run of the project took. Written by the workbench, read by views. GUI thread only.
#pragma once

#include <map>

#include "views/common/project_facts.h"

namespace stepscope {

class RunTimes : public QObject {
  Q_OBJECT

 public:
  // Those of a project; they live as long as its facts.
  static RunTimes& of(ProjectFacts& project);

  // Wall time of a step, without warm-up as long as other steps ran and without steps that somebody stopped in; n = 0 for a
  // run that has none.
  TimeFigures step(std::int64_t run) const;
  void set(std::map<std::int64_t, TimeFigures> times);

 signals:
  void changed();

 private:
  explicit RunTimes(QObject* parent) : QObject(parent) {}
  std::map<std::int64_t, TimeFigures> times_;
};

}  // namespace stepscope
