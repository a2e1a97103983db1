// SPDX-License-Identifier: GPL-3.0-or-later
// How it is known what a device did, in words.
#pragma once

#include <QStringList>

#include "engine/snapshot/run.pb.h"

namespace stepscope {

// The rung, why it is not the one that was asked for, what is counted and what is missing, one line each; empty where no
// device told anything.
QStringList deviceLines(const snapshot::DeviceWork& device);

}  // namespace stepscope
