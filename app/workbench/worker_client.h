// SPDX-License-Identifier: GPL-3.0-or-later
// Requests to the worker and their answers, on the GUI thread, without ever waiting.
//
// Each request has one callback that gets every response with its id, the last with done() set. When the worker dies, each
// open request gets one error response of code "worker_died". Cancelling asks the worker; a worker that does not end the
// request within a few seconds is reported as unresponsive, and the user may restart it. So is one from which nothing comes
// although it is greeted each second, which it answers whatever it is working on: it was stopped, or its machine is gone.
#pragma once

#include <QElapsedTimer>
#include <QObject>
#include <QThread>
#include <QTimer>
#include <functional>
#include <map>
#include <optional>

#include "app/workbench/remote_host.h"
#include "app/workbench/worker_pipe.h"

namespace stepscope {

class WorkerClient : public QObject {
  Q_OBJECT

 public:
  using Callback = std::function<void(const Delivery&)>;

  explicit WorkerClient(QObject* parent = nullptr);
  ~WorkerClient() override;

  // Program and arguments; the default is "stepscope worker" next to this program, STEPSCOPE_WORKER overrides it.
  void setCommand(const QString& program, const QStringList& arguments);
  // The worker of another machine, from the next start on; of an empty host the default again. What keeps it from coming is
  // told as the reason of its death: the host, its program or its version.
  void setHost(const RemoteHost& host);
  const RemoteHost& host() const { return host_; }
  // The script whose loop it is attached to, as it introduced itself; null: a worker, or none that answered yet.
  const snapshot::AttachedScript* attached() const { return attached_ ? &*attached_ : nullptr; }
  void start();  // also after a death; open requests were answered by then
  void kill();   // at once
  bool alive() const { return alive_; }
  WorkerState state() const { return state_; }

  // Sends the request with a fresh id. `what` names it for people ("building"); quiet ones do not show as busy.
  quint64 request(snapshot::Request request, const QString& what, Callback callback, bool quiet = false);
  void cancel(quint64 id);
  void cancelAll();
  bool busy() const;
  // What runs, how far it is where that is known, and since when; empty when idle.
  QString activity(const QString& at = {}) const;
  bool busyForLong() const;  // longer than a second
  int openRequests() const { return static_cast<int>(pending_.size()); }

 signals:
  void stateChanged();
  void started();
  void died(const QString& reason);
  void event(const stepscope::Delivery& delivery);  // id 0: progress, log, alerts, phases
  void text(const QString& line);

 private:
  struct Pending {
    QString what;
    Callback callback;
    bool quiet = false;
    QElapsedTimer since;
    QElapsedTimer cancelled;
  };

  const Pending* shown() const;  // the oldest that is not quiet; nullptr: none
  void takeIn();                 // what the pipe has
  void deliver(const Delivery& delivery);
  void end(const QString& reason, bool expected, int exitCode = 0);
  void greetedBy(const Delivery& delivery);
  void check();
  void greet();
  bool silent();  // it owes an answer to a greeting, and sends nothing at all
  void setState(WorkerState state);

  QThread thread_;
  WorkerPipe* pipe_;
  QString program_;
  QStringList arguments_;
  RemoteHost host_;
  bool came_ = false;  // it answered the first greeting
  std::optional<snapshot::AttachedScript> attached_;
  QString refusal_;  // why it is not worked with, although it did
  QString said_;     // the newest line of its standard error
  std::map<quint64, Pending> pending_;
  quint64 lastId_ = 0;
  bool alive_ = false;
  WorkerState state_ = WorkerState::kNone;
  quint64 greeting_ = 0;          // that is not answered yet; 0: none
  qint64 bytes_ = 0;              // that came when it was last looked
  QElapsedTimer heard_, looked_;  // since bytes came; since the newest look
  QElapsedTimer greeted_;
  QTimer watch_;
};

}  // namespace stepscope
