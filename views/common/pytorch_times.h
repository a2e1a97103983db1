// SPDX-License-Identifier: GPL-3.0-or-later
// What PyTorch measured of the shown run's model (`stepscope import`), by operators of ours. Written by the workbench, read
// by views. GUI thread only.
#pragma once

#include <QObject>
#include <QString>
#include <map>
#include <utility>
#include <vector>

#include "views/common/project_facts.h"

namespace stepscope {

struct PyTorchTime {
  double theirNs = 0;             // of a step
  std::vector<int> instructions;  // of the plan, those that were joined: ours is what they take
  QString theirs;                 // PyTorch's operators, hostile text
};

class PyTorchTimes : public QObject {
  Q_OBJECT

 public:
  using Rows = std::map<std::pair<QString, QString>, PyTorchTime>;  // by phase ("forward") and operator

  explicit PyTorchTimes(ProjectFacts* project) : QObject(project) {}
  // Those of a project, which the store makes with its facts.
  static PyTorchTimes& of(ProjectFacts& project);
  static const PyTorchTimes& of(const ProjectFacts& project);

  const Rows& rows() const { return rows_; }  // empty: no trace was imported
  void set(Rows rows) {
    rows_ = std::move(rows);
    emit changed();
  }

 signals:
  void changed();

 private:
  Rows rows_;
};

}  // namespace stepscope
