// SPDX-License-Identifier: GPL-3.0-or-later
// What the window remembers from one start to the next; tests and pictures have one that remembers nothing. GUI thread.
#pragma once

#include <QStringList>
#include <QVariant>

#include "app/workbench/settings_reader.h"

namespace stepscope {

class SnapshotStore;

class WindowSettings {
 public:
  // A part that cannot be understood goes to the log of the store, once.
  WindowSettings(bool remember, SnapshotStore& store) : remember_(remember), store_(store) {}

  bool remember() const { return remember_; }
  SettingsReader read();                                      // to be asked only where remember()
  void set(const QString& key, const QVariant& value) const;  // nothing where not remember()

 private:
  bool remember_;
  SnapshotStore& store_;
  QStringList told_;
};

}  // namespace stepscope
