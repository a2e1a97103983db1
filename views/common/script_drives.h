// SPDX-License-Identifier: GPL-3.0-or-later
// What a window at the loop of a running script (`open --attach`) leaves to the script. It looks, holds and steps; it takes
// nothing back, changes nothing and runs nothing beside the loop: what asks for that is off, and its tooltip says why.
#pragma once

#include <QAction>
#include <QWidget>

#include "views/common/snapshot_store.h"

namespace stepscope {

bool scriptDrives(const SnapshotStore& store);
// The tooltip of what is off because of it.
QString whyScriptDrives();

// Off while a script drives, with that tooltip; else as `possible` says, with the tooltip that it had before.
void allow(const SnapshotStore& store, QWidget* button, bool possible);
void allow(const SnapshotStore& store, QAction* action, bool possible);

}  // namespace stepscope
