// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/script_drives.h"

#include "views/common/worker_host.h"

namespace stepscope {
namespace {

constexpr char kOwnTip[] = "tip_without_script";

template <typename Button>
void allowed(const SnapshotStore& store, Button* button, bool possible) {
  const QString why = whyScriptDrives();
  const bool scripted = scriptDrives(store);
  button->setEnabled(possible && !scripted);
  if (scripted && button->toolTip() != why) {
    button->setProperty(kOwnTip, button->toolTip());
    button->setToolTip(why);
  } else if (!scripted && button->toolTip() == why) {
    button->setToolTip(button->property(kOwnTip).toString());
  }
}

}  // namespace

bool scriptDrives(const SnapshotStore& store) { return WorkerHost::of(store).scripted(); }

QString whyScriptDrives() {
  return QStringLiteral(
      "A script drives this loop: its steps are not repeated, taken back or changed from here. "
      "stepscope.capture() writes the model for a session of its own, which can");
}

void allow(const SnapshotStore& store, QWidget* button, bool possible) { allowed(store, button, possible); }

void allow(const SnapshotStore& store, QAction* action, bool possible) { allowed(store, action, possible); }

}  // namespace stepscope
