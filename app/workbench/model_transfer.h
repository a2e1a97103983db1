// SPDX-License-Identifier: GPL-3.0-or-later
// Sends a model of this machine to the worker's: the files of its folder, external data and batches among them, as an
// archive through ssh. GUI thread; nothing here waits.
#pragma once

#include <QFileInfoList>
#include <QObject>
#include <QProcess>
#include <memory>

#include "app/workbench/remote_host.h"

namespace stepscope {

class ModelTransfer : public QObject {
  Q_OBJECT

 public:
  using QObject::QObject;

  // What would be sent with it: the files beside it that a model is made of (.onnx, data of it, .npz, .safetensors, .json,
  // .pb).
  static QFileInfoList filesOf(const QString& model);

  // sent() or failed() follows. One at a time: what is being sent is given up. The second sends the file alone.
  void send(const RemoteHost& host, const QString& model) { send(host, model, filesOf(model)); }
  void sendFile(const RemoteHost& host, const QString& path) { send(host, path, {QFileInfo(path)}); }
  void cancel();
  bool sending() const { return processes_ != nullptr; }

 signals:
  void sent(const QString& path);  // on the other machine
  void failed(const QString& text);

 private:
  struct Processes;
  void send(const RemoteHost& host, const QString& path, const QFileInfoList& files);
  void ended();

  RemoteHost host_;
  QString path_;
  std::shared_ptr<Processes> processes_;
};

}  // namespace stepscope
