// SPDX-License-Identifier: GPL-3.0-or-later
// How nodes, values and phases are called in every view. All results are harmless text (format::visible).
#pragma once

#include <QString>

#include "views/common/snapshots.h"

namespace stepscope::names {

// "MatMul".
QString op(const snapshot::Node& node);
// The same of what an instruction runs: "Copy" and "Commit" belong to the plan, not to the node that they are made for.
QString op(const snapshot::Instruction& instruction);
// What distinguishes the node from others of its op: the module path's tail and what it computes, "h.11.mlp.c_fc · d
// weight".
QString place(const GraphSnapshot& graph, const snapshot::Node& node);
// "MatMul h.11.mlp.c_fc · d weight"; "node 17" when it is not in the graph.
QString node(const GraphSnapshot& graph, int nodeId);
// The value's name; "value 12" when it is not in the graph.
QString value(const GraphSnapshot& graph, int valueId);
// "Forward", "Backward", "Recompute", "Optimizer".
QString phase(snapshot::Phase phase);
// What a phase of a build does (engine/snapshot/build_phases.h), or what runs inside it: "making the gradient"; a name that
// is not known here stands for itself, as those of passes do.
QString buildPhase(const QString& name);
// "parameter", "stash" …
QString bufferClass(snapshot::BufferClass bufferClass);
// "12 – 40", the first and the last instruction that use it; "unused" when none does.
QString lifetime(const snapshot::Buffer& buffer);
// Who owns a part of the peak: a class of buffers, in the words of bufferClass, or a module.
QString memoryOwner(const std::string& owner);
// "input", "parameter", "state" …
QString role(const snapshot::Value& value);
// "2 × 128 × 768 · float32 · 768 KiB".
QString shapeAndType(const snapshot::Value& value);
// "model.py:211"; empty when unknown. The folder is left out.
QString source(const snapshot::Provenance& provenance);

}  // namespace stepscope::names
