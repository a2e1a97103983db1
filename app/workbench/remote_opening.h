// SPDX-License-Identifier: GPL-3.0-or-later
// Working with the worker of another machine: connects, opens models by their path there, sends models of this machine to
// it. GUI thread.
#pragma once

#include <QObject>

#include "app/workbench/model_transfer.h"
#include "app/workbench/window_parts.h"

namespace stepscope {

class FileQuestions;
class ModelOpening;
class WindowSettings;

class RemoteOpening : public QObject {
  Q_OBJECT

 public:
  RemoteOpening(const WindowParts& parts, ModelOpening& opening, FileQuestions& questions, WindowSettings& settings);

  void connectTo(const RemoteHost& host);  // an empty one: this machine

 private:
  QList<RemoteHost> known();
  void remember(const RemoteHost& host);
  void ask();
  void askModel();
  void askToSend();
  void sendData(const QString& path);
  void hostChanged();

  WindowParts parts_;
  ModelOpening& opening_;
  FileQuestions& questions_;
  WindowSettings& settings_;
  ModelTransfer transfer_, batches_;
  QString lastPath_;
};

}  // namespace stepscope
