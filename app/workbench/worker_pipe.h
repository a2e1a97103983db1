// SPDX-License-Identifier: GPL-3.0-or-later
// The worker's process and its two pipes. Lives in its own thread: parsing a graph of 100,000 nodes and building its lookup
// tables never holds up the window. Everything goes in and out by queued signals.
#pragma once

#include <QObject>
#include <QProcess>
#include <memory>

#include "app/workbench/frame_reader.h"
#include "views/common/snapshot_store.h"

namespace stepscope {

// One response of the worker; graph and plan come with their lookup tables (and are moved out of the message).
struct Delivery {
  std::shared_ptr<const snapshot::Response> response;
  GraphPtr graph;
  PlanPtr plan;
};

class WorkerPipe : public QObject {
  Q_OBJECT

 public:
  explicit WorkerPipe(QObject* parent = nullptr) : QObject(parent) {}

 public slots:
  void start(const QString& program, const QStringList& arguments);
  void send(const QByteArray& frame);
  void kill();
  void close();  // closes its input, waits shortly, then kills

 signals:
  void started();
  void delivered(const stepscope::Delivery& delivery);
  void text(const QString& line);                    // a line of its standard error
  void ended(const QString& reason, bool expected);  // the process is gone; reason says how

 private:
  void readOutput();
  void readErrors();
  void breakOff(const QString& reason);

  QProcess* process_ = nullptr;
  FrameReader reader_;
  QByteArray errors_;
  QString reason_;
  bool closing_ = false;
};

}  // namespace stepscope

Q_DECLARE_METATYPE(stepscope::Delivery)
