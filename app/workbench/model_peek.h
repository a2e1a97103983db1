// SPDX-License-Identifier: GPL-3.0-or-later
// Reads a model in a worker of its own, so that what is open stays until the user decides. GUI thread; never waits.
#pragma once

#include <QObject>
#include <memory>

#include "app/workbench/worker_client.h"
#include "views/common/snapshot_store.h"

namespace stepscope {

class ModelPeek : public QObject {
  Q_OBJECT

 public:
  using QObject::QObject;

  // One of the two signals follows. What is being read is given up. `missingWeights`: "random" fills those that the model
  // has no data of; empty refuses it.
  void read(const QString& path, const QString& missingWeights = {});
  void cancel();
  bool reading() const { return client_ != nullptr; }

 signals:
  void modelRead(const QString& path, const stepscope::ModelPtr& model, const QString& missingWeights);
  // `model` lists the problems of a file that is no sound model; nullptr when it told none.
  void refused(const QString& path, const QString& why, const stepscope::ModelPtr& model);

 private:
  void end(const QString& path, const QString& why);

  WorkerClient* client_ = nullptr;
  ModelPtr model_;
  QString missingWeights_;
};

}  // namespace stepscope
