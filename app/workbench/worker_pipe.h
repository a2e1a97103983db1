// SPDX-License-Identifier: GPL-3.0-or-later
// The worker's process and its two pipes. Lives in its own thread: parsing a graph of 100,000 nodes and building its lookup
// tables never holds up the window. Requests go in by queued calls. Answers wait in one place, and one queued signal at most
// says so, however many come: a worker of thousands of steps a second does not fill the window's event queue.
#pragma once

#include <QObject>
#include <QProcess>
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

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
  qint64 bytesRead() const { return bytesRead_; }  // from any thread: of all workers so far
  std::vector<Delivery> take();                    // from any thread: what waits, in order

 public slots:
  void start(const QString& program, const QStringList& arguments);
  void send(const QByteArray& frame);
  void kill();
  void close();  // cancels what it does, closes its input, waits shortly, then kills

 signals:
  void started();
  void arrived();                  // something waits; not told again until it was taken
  void text(const QString& line);  // a line of its standard error
  // The process is gone; reason says how. exitCode: 0 where it was ended by a signal, or did not begin.
  void ended(const QString& reason, bool expected, int exitCode);

 private:
  void readOutput();
  void readErrors();
  void breakOff(const QString& reason);
  void put(Delivery delivery);

  QProcess* process_ = nullptr;
  FrameReader reader_;
  QByteArray errors_;
  QString reason_;
  bool closing_ = false;
  std::atomic<qint64> bytesRead_ = 0;
  std::mutex mutex_;  // waiting_
  std::vector<Delivery> waiting_;
};

}  // namespace stepscope

Q_DECLARE_METATYPE(stepscope::Delivery)
