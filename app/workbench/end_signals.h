// SPDX-License-Identifier: GPL-3.0-or-later
// Being asked to end from outside: SIGTERM, SIGINT (Ctrl+C in the terminal) and SIGHUP (the terminal closes). One at a time
// in a process. A second signal of a kind ends the process at once.
#pragma once

#include <QObject>

namespace stepscope {

class EndSignals : public QObject {
  Q_OBJECT

 public:
  // `atOnce` runs in the signal's handler, whatever holds the loop: async-signal-safe.
  explicit EndSignals(void (*atOnce)() = nullptr, QObject* parent = nullptr);
  ~EndSignals() override;

 signals:
  void asked();  // from the event loop

 private:
  int pipe_[2] = {-1, -1};
};

}  // namespace stepscope
