// SPDX-License-Identifier: GPL-3.0-or-later
// A folder on the worker's machine for the states of a session and for contents that are kept. It is made and asked for its
// free bytes through ssh; until that answered there is no place for files. It goes with this object; one that a killed
// window left goes after a week. GUI thread; nothing here waits.
#pragma once

#include <QObject>
#include <QProcess>
#include <QTimer>

#include "app/workbench/remote_host.h"
#include "app/workbench/state_ring.h"

namespace stepscope {

class RemoteFolder : public QObject, public StatePlace {
  Q_OBJECT

 public:
  explicit RemoteFolder(const RemoteHost& host);
  ~RemoteFolder() override;

  QString filePath(const QString& name) const override;
  std::int64_t freeBytes() const override { return free_; }
  std::int64_t bytesOf(const QString& path, std::int64_t about) const override;
  void remove(const QString& path) override;

 private:
  void ask(const QString& line);
  void answered();
  void removeThose();

  RemoteHost host_;
  QString folder_;  // empty: not known yet
  std::int64_t free_ = 0;
  QProcess process_;
  QStringList removed_;  // not told yet
  QTimer soon_;
};

}  // namespace stepscope
