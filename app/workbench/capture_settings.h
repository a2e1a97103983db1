// SPDX-License-Identifier: GPL-3.0-or-later
// How a model is trained that stepscope_capture wrote: capture.json beside it says so.
#pragma once

#include <QString>
#include <QStringList>

#include "engine/snapshot/worker.pb.h"

namespace stepscope {

// Data, the parameters that PyTorch did not train, and of a captured run optimizer, schedule and state, in the names of the
// command line. Empty where no capture.json lies beside the model, or none that can be understood. Reads one small file.
snapshot::Configure captureSettings(const QString& model);

// What PyTorch's meaning lost when it was captured, in words for users; hostile text.
QStringList captureNotes(const QString& model);

}  // namespace stepscope
