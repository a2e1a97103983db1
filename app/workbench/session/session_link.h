// SPDX-License-Identifier: GPL-3.0-or-later
// The worker's process and the requests to it: those that move the session, one at a time; those that only read; and the
// start of another worker in place of the one that is there.
#pragma once

#include "app/workbench/session/session_part.h"
#include "app/workbench/worker_client.h"

namespace stepscope {

class SessionLink : public SessionPart {
  Q_OBJECT

 public:
  using Refused = std::function<void(const QString&)>;
  // The worker runs another plan than the one that the store has.
  enum class Other { kNone, kResumed, kRebuilt };

  explicit SessionLink(const SessionParts& parts);

  WorkerClient& client() { return client_; }
  const WorkerClient& client() const { return client_; }
  bool busy() const { return busy_; }  // a request that moves the session runs
  void setBusy(bool busy);
  bool refuse();         // and says why: nothing is built, or something runs
  bool working() const;  // anything runs that a pause ends

  // Sends a request that moves the session: marks it busy, absorbs every answer, calls `then` after a good end. When it made
  // another plan, that is fetched before. `refused` takes an error that is shown elsewhere than above the window.
  void move(snapshot::Request request, const QString& what, Then then = {}, Then failed = {}, Refused refused = {});
  // Sends one that only reads, of the model that is open: when another one has taken its place, the answer is dropped.
  void request(snapshot::Request request, const QString& what, WorkerClient::Callback callback, bool quiet = true);
  void ask(snapshot::Request request, const QString& what, std::function<void(const Delivery&)> answer, bool quiet = true);
  // Sends one that leaves the session as it is and takes a while: marks it busy until the last answer.
  void study(snapshot::Request request, const QString& what, std::function<void(const Delivery&)> answer);

  void begin(const Then& then);                                        // with a worker, which is started where there is none
  void replaceWorker(Then then);                                       // kills the one that is there
  void stopWorker(const QString& why);                                 // it dies of that
  QString takeWhyStopped() { return std::exchange(whyStopped_, {}); }  // empty: it died by itself
  bool replacing() const { return restarting_; }
  void anotherModel() { ++opened_; }
  void anotherPlan(Other other) { rebuilt_ = other; }
  void noOtherPlan() { rebuilt_ = Other::kNone; }
  void tellCancelled();                                      // as if the newest move had ended so
  const std::string& newestError() const { return error_; }  // code of a move that failed
  QString takeFault() { return std::exchange(fault_, {}); }  // the setting that the newest error names

 signals:
  void becameIdle();  // in a turn of its own: what follows the request that ended comes first

 private:
  void ended(const Delivery& delivery, const snapshot::Position& before, const Then& then, const Then& failed,
             const Refused& refused);
  void tellError(const snapshot::WorkerError& error, const Refused& refused, bool running);

  WorkerClient client_;
  bool busy_ = false;
  bool restarting_ = false;  // the user replaces the worker
  Other rebuilt_ = Other::kNone;
  QString fault_, whyStopped_;
  std::string error_;
  int opened_ = 0;  // models so far
};

}  // namespace stepscope
