// SPDX-License-Identifier: GPL-3.0-or-later
// The words of a breakpoint's condition on a tensor, VALUE FIELD OP NUMBER: "loss max > 10". What is a condition decides the
// worker; here is which value one is about, and what can follow what was typed.
#pragma once

#include <QString>
#include <QStringList>
#include <string>

#include "views/common/snapshots.h"

namespace stepscope::conditions {

// Quantities of a value that a condition may compare, and the comparisons.
const QStringList& fields();
const QStringList& comparisons();

// The value that the condition is about, of those that `instruction` makes: the one of that name, or the next contents of
// the state of that name; -1: none of them.
int valueMade(const std::string& condition, const snapshot::Instruction& instruction, const GraphSnapshot& graph);

// Whole lines that begin as `typed` does, or whose name of a value has it in it, in the order of the graph; `most` of them.
QStringList completions(const QString& typed, const GraphSnapshot& graph, int most);

}  // namespace stepscope::conditions
