// SPDX-License-Identifier: GPL-3.0-or-later
// How far a captured model agrees with what PyTorch computed of it. Written by the workbench, read by views. GUI thread
// only.
#pragma once

#include <QObject>
#include <QString>
#include <memory>

#include "engine/snapshot/lab.pb.h"

namespace stepscope {

class GoldenFinding : public QObject {
  Q_OBJECT

 public:
  explicit GoldenFinding(QObject* parent = nullptr) : QObject(parent) {}

  // Of the open model; nullptr before it was compared.
  const std::shared_ptr<const snapshot::GoldenComparison>& comparison() const { return comparison_; }
  bool comparing() const { return comparing_; }
  const QString& problem() const { return problem_; }  // why the newest question has no answer, hostile text
  bool wanted() const { return wanted_; }              // captures are compared as soon as they are built

  void begin() {
    comparing_ = true;
    problem_.clear();
    emit changed();
  }
  void end(std::shared_ptr<const snapshot::GoldenComparison> comparison, const QString& problem) {
    comparing_ = false;
    if (comparison) comparison_ = std::move(comparison);
    problem_ = problem;
    emit changed();
  }
  void setWanted(bool wanted) {
    wanted_ = wanted;
    emit changed();
  }
  void clear() {
    comparison_ = nullptr;
    comparing_ = false;
    problem_.clear();
    emit changed();
  }

 signals:
  void changed();

 private:
  std::shared_ptr<const snapshot::GoldenComparison> comparison_;
  bool comparing_ = false, wanted_ = true;
  QString problem_;
};

}  // namespace stepscope
