// SPDX-License-Identifier: GPL-3.0-or-later
// Tables of what inspection found in a model: the pages of the set-up beside its form. Each belongs to who takes it.
#pragma once

#include <QWidget>

#include "engine/snapshot/worker.pb.h"

namespace stepscope {

QWidget* inputsTable(const snapshot::ModelInfo& model);
QWidget* parametersTable(const snapshot::ModelInfo& model);
QWidget* operatorsTable(const snapshot::ModelInfo& model);
QWidget* problemsTable(const snapshot::ModelInfo& model);

}  // namespace stepscope
