// SPDX-License-Identifier: GPL-3.0-or-later
// What is read of the project file at present, once it takes long enough to be said. What a view shows of it meanwhile is of
// before. Written by the workbench, read by views. GUI thread only.
#pragma once

#include <QObject>
#include <QTimer>
#include <map>

#include "views/common/project_facts.h"

namespace stepscope {

class ProjectReads : public QObject {
  Q_OBJECT

 public:
  enum class What { kRuns, kComparison, kStep, kProject, kReport };

  explicit ProjectReads(ProjectFacts* project);
  // Those of a project, which the store makes with its facts.
  static ProjectReads& of(ProjectFacts& project);
  static const ProjectReads& of(const ProjectFacts& project);

  // For more than a moment: a tenth of a second.
  bool shown(What what) const;
  bool anyShown() const;
  // The newest reading of it was cancelled: what is shown of it is of before.
  bool leftOff(What what) const;

  // By the workbench only; every begin() has an end().
  void begin(What what);
  void end(What what, bool cancelled = false);

 signals:
  void changed();

 private:
  struct Reading {
    int open = 0;
    bool shown = false, leftOff = false;
  };
  void showOpen();

  std::map<What, Reading> readings_;
  QTimer moment_;
};

}  // namespace stepscope
