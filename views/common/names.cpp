// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/names.h"

#include <QStringList>
#include <algorithm>
#include <map>

#include "views/common/format.h"

namespace stepscope::names {
namespace {

// "transformer.h.11.mlp.c_fc" → "h.11.mlp.c_fc": the last four parts say where one is. A number belongs to the part before
// it.
QString tail(const QString& path) {
  const QStringList parts = path.split('.', Qt::SkipEmptyParts);
  if (parts.size() <= 4) return path;
  const qsizetype from = parts.size() - 4;
  const bool number = std::all_of(parts[from].begin(), parts[from].end(), [](QChar c) { return c.isDigit(); });
  return parts.mid(number ? from - 1 : from).join('.');
}

// The node's own name without what the module path says already.
QString lastPart(const QString& name) {
  const auto slash = name.lastIndexOf('/');
  return slash >= 0 ? name.mid(slash + 1) : name;
}

// The value whose gradient a backward node computes, after the names that gradient emission gives its values.
QString gradientOf(const GraphSnapshot& graph, const snapshot::Node& node) {
  for (const int id : node.outputs()) {
    const snapshot::Value* v = graph.value(id);
    if (!v) continue;
    const QString name = format::visible(v->name());
    for (const char* suffix : {"_grad", "/grad", ".grad"}) {
      const auto at = name.lastIndexOf(QLatin1String(suffix));
      if (at > 0) {
        const QString base = lastPart(name.left(at));
        const QString last = base.contains('.') ? base.mid(base.lastIndexOf('.') + 1) : base;
        return last;
      }
    }
  }
  return {};
}

}  // namespace

QString op(const snapshot::Node& node) { return format::visible(node.op()); }

QString op(const snapshot::Instruction& instruction) {
  switch (instruction.kind()) {
    case snapshot::KIND_COPY: return QStringLiteral("Copy");
    case snapshot::KIND_COMMIT: return QStringLiteral("Commit");
    default: return format::visible(instruction.op());
  }
}

QString place(const GraphSnapshot& graph, const snapshot::Node& node) {
  QString where = tail(format::visible(node.provenance().module_path()));
  if (where.isEmpty()) {
    const snapshot::Node* forward = graph.node(graph.forwardOf(node.id()));
    if (forward) where = tail(format::visible(forward->provenance().module_path()));
  }
  if (node.phase() == snapshot::OPTIMIZER) {
    for (const int id : node.inputs()) {
      const snapshot::Value* v = graph.value(id);
      if (v && v->trained()) return format::visible(v->name());
    }
  }
  if (where.isEmpty()) where = lastPart(format::visible(node.name()));
  if (node.phase() == snapshot::BACKWARD) {
    const QString of = gradientOf(graph, node);
    if (!of.isEmpty() && !where.endsWith(of))
      where += (where.isEmpty() ? QString() : QStringLiteral(" · ")) + QStringLiteral("d ") + of;
  }
  return where;
}

QString node(const GraphSnapshot& graph, int nodeId) {
  const snapshot::Node* n = graph.node(nodeId);
  if (!n) return QStringLiteral("node %1").arg(nodeId);
  const QString where = place(graph, *n);
  return where.isEmpty() ? op(*n) : op(*n) + ' ' + where;
}

QString value(const GraphSnapshot& graph, int valueId) {
  const snapshot::Value* v = graph.value(valueId);
  return v && !v->name().empty() ? format::visible(v->name()) : QStringLiteral("value %1").arg(valueId);
}

QString buildPhase(const QString& name) {
  static const std::map<QString, QString> kWords{
      {QStringLiteral("load"), QStringLiteral("reading the file")},
      {QStringLiteral("check"), QStringLiteral("checking the graph")},
      {QStringLiteral("inline"), QStringLiteral("inlining functions")},
      {QStringLiteral("infer"), QStringLiteral("inferring shapes")},
      {QStringLiteral("attach loss"), QStringLiteral("attaching the loss")},
      {QStringLiteral("inspect inputs"), QStringLiteral("inspecting the batch")},
      {QStringLiteral("pre-grad passes"), QStringLiteral("passes before the gradient")},
      {QStringLiteral("gradient"), QStringLiteral("making the gradient")},
      {QStringLiteral("post-grad passes"), QStringLiteral("passes after the gradient")},
      {QStringLiteral("optimizer"), QStringLiteral("adding the optimizer")},
      {QStringLiteral("specialise"), QStringLiteral("setting the extents of the batch")},
      {QStringLiteral("recompute"), QStringLiteral("choosing what is computed again")},
      {QStringLiteral("plan"), QStringLiteral("planning order and memory")},
      {QStringLiteral("bind"), QStringLiteral("making kernels, taking memory")},
      {QStringLiteral("materialise"), QStringLiteral("filling weights")},
      {QStringLiteral("measure peak"), QStringLiteral("measuring what the machine reaches")},
  };
  const auto found = kWords.find(name);
  return found == kWords.end() ? format::visible(name) : found->second;
}

QString phase(snapshot::Phase phase) {
  switch (phase) {
    case snapshot::FORWARD: return QStringLiteral("Forward");
    case snapshot::BACKWARD: return QStringLiteral("Backward");
    case snapshot::RECOMPUTE: return QStringLiteral("Recompute");
    case snapshot::OPTIMIZER: return QStringLiteral("Optimizer");
    default: return QStringLiteral("Phase %1").arg(static_cast<int>(phase));
  }
}

QString bufferClass(snapshot::BufferClass bufferClass) {
  switch (bufferClass) {
    case snapshot::CLASS_PARAMETER: return QStringLiteral("parameter");
    case snapshot::CLASS_FROZEN: return QStringLiteral("frozen state");
    case snapshot::CLASS_OPTIMIZER_STATE: return QStringLiteral("optimizer state");
    case snapshot::CLASS_GRADIENT: return QStringLiteral("gradient");
    case snapshot::CLASS_ACTIVATION: return QStringLiteral("activation");
    case snapshot::CLASS_STASH: return QStringLiteral("stash");
    case snapshot::CLASS_BACKWARD: return QStringLiteral("backward value");
    case snapshot::CLASS_WORKSPACE: return QStringLiteral("workspace");
    case snapshot::CLASS_INPUT_DATA: return QStringLiteral("batch");
    case snapshot::CLASS_CONSTANT_DATA: return QStringLiteral("constant");
    case snapshot::CLASS_UPDATE: return QStringLiteral("state update");
    default: return QStringLiteral("unknown class");
  }
}

QString lifetime(const snapshot::Buffer& buffer) {
  return buffer.first() < 0 ? QStringLiteral("unused") : QStringLiteral("%1 – %2").arg(buffer.first()).arg(buffer.last());
}

QString memoryOwner(const std::string& owner) {
  // The engine's short names of the classes; a module's path stays as it is.
  if (owner == "frozen") return bufferClass(snapshot::CLASS_FROZEN);
  if (owner == "backward") return bufferClass(snapshot::CLASS_BACKWARD);
  if (owner == "input data") return bufferClass(snapshot::CLASS_INPUT_DATA);
  if (owner == "constant data") return bufferClass(snapshot::CLASS_CONSTANT_DATA);
  if (owner == "update") return bufferClass(snapshot::CLASS_UPDATE);
  return format::visible(owner);
}

QString role(const snapshot::Value& value) {
  switch (value.role()) {
    case snapshot::NODE_OUTPUT: return QStringLiteral("computed");
    case snapshot::INPUT: return QStringLiteral("input");
    case snapshot::INITIALIZER:
      return value.trained() ? QStringLiteral("parameter, trained") : QStringLiteral("parameter, not trained");
    case snapshot::STATE: return QStringLiteral("optimizer state");
    case snapshot::CONSTANT: return QStringLiteral("constant");
    default: return QStringLiteral("unknown role");
  }
}

QString shapeAndType(const snapshot::Value& value) {
  QString text = value.rank_known() ? format::shapeOf(value.dims()) : QStringLiteral("unknown shape");
  text += QStringLiteral(" · ") + format::visible(value.dtype());
  if (value.bytes() > 0) text += QStringLiteral(" · ") + format::bytes(value.bytes());
  return text;
}

QString source(const snapshot::Provenance& provenance) {
  if (provenance.source_file().empty()) return {};
  const QString file = format::visible(provenance.source_file());
  const QString name = file.mid(std::max(file.lastIndexOf('/'), file.lastIndexOf('\\')) + 1);
  return provenance.source_line() > 0 ? QStringLiteral("%1:%2").arg(name).arg(provenance.source_line()) : name;
}

}  // namespace stepscope::names
