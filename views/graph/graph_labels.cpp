// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/graph/graph_labels.h"

#include <QStringList>
#include <algorithm>

#include "views/common/format.h"
#include "views/common/names.h"

namespace stepscope {
namespace {

const QString kUnset = QStringLiteral("\u0001");

QString lastPart(const QString& path, QChar separator) { return path.mid(path.lastIndexOf(separator) + 1); }

// Names of values are often paths of the exporter; the end says which one it is.
QString shortName(const std::string& name) {
  const QString text = format::visible(name);
  return text.contains('/') ? lastPart(text, '/') : text;
}

// " bf16"; empty for what most numbers are, so that a line that carries something else is seen.
QString typeMark(const std::string& dtype) {
  if (dtype.empty() || dtype == "float32") return {};
  if (dtype == "bfloat16") return QStringLiteral(" bf16");
  if (dtype == "float16") return QStringLiteral(" fp16");
  return ' ' + format::visible(dtype);
}

// Of a Gemm whose weight is stored as PyTorch stores it: outputs × inputs.
bool isTransposed(const snapshot::Node& node) {
  return std::any_of(node.attributes().begin(), node.attributes().end(),
                     [](const snapshot::Attribute& a) { return a.name() == "transB" && a.text() != "0"; });
}

}  // namespace

GraphLabels::GraphLabels(std::shared_ptr<const GraphModel> model)
    : model_(std::move(model)),
      titles_(static_cast<std::size_t>(model_->size()), kUnset),
      subs_(static_cast<std::size_t>(model_->size()), kUnset),
      shapes_(static_cast<std::size_t>(model_->snapshot().graph().values_size()), kUnset) {}

const QString& GraphLabels::title(int modelNode) {
  QString& text = titles_[static_cast<std::size_t>(modelNode)];
  if (text == kUnset) {
    const snapshot::Node* node = model_->node(modelNode);
    text = node != nullptr
               ? names::op(*node)
               : shortName(model_->value(model_->nodes()[static_cast<std::size_t>(modelNode)].inputValue)->name());
  }
  return text;
}

const QString& GraphLabels::sub(int modelNode) {
  QString& text = subs_[static_cast<std::size_t>(modelNode)];
  if (text == kUnset) text = makeSub(modelNode);
  return text;
}

QString GraphLabels::makeSub(int modelNode) const {
  const snapshot::Node* node = model_->node(modelNode);
  if (node == nullptr) return {};
  const ModelNode& m = model_->nodes()[static_cast<std::size_t>(modelNode)];
  const GraphSnapshot& graph = model_->snapshot();
  QString text = names::place(graph, *node);
  if (node->phase() == snapshot::OPTIMIZER) {
    // The parameter's own name is enough: the module is where it stands.
    const QStringList parts = text.split('.');
    return parts.size() > 2 ? parts.mid(parts.size() - 2).join('.') : text;
  }
  if (m.lane == Lane::kWeight) {
    if (const auto at = text.lastIndexOf(QStringLiteral(" · d ")); at >= 0) return text.mid(at + 3);
  } else if (node->phase() == snapshot::BACKWARD) {
    // "d input" only where a weight gradient of the same node stands beside it; else the op says it all.
    if (const auto at = text.lastIndexOf(QStringLiteral(" · d ")); at >= 0) text.truncate(at);
    const int forward = model_->ofNodeId(graph.forwardOf(node->id()));
    if (forward >= 0 && model_->node(forward)->category() == "matmul") text += QStringLiteral(" · d input");
  }
  // Inside a box, the box's path goes without saying.
  int g = m.group;
  while (g > 0 && model_->groups()[static_cast<std::size_t>(g)].transparent &&
         model_->groups()[static_cast<std::size_t>(g)].forwardNodes <= 4)
    g = model_->groups()[static_cast<std::size_t>(g)].parent;
  const QStringList box = format::visible(model_->groups()[static_cast<std::size_t>(g)].path).split('.', Qt::SkipEmptyParts);
  const qsizetype mark = text.indexOf(QStringLiteral(" · "));
  QStringList path = (mark < 0 ? text : text.left(mark)).split('.', Qt::SkipEmptyParts);
  const QString rest = mark < 0 ? QString() : text.mid(mark);
  // names::place keeps the end of long paths, so the common part may begin inside the box's path.
  for (qsizetype skip = 0; skip < box.size() && path.size() >= 1; ++skip) {
    const QStringList tail = box.mid(skip);
    if (path.size() >= tail.size() && path.mid(0, tail.size()) == tail) {
      path = path.mid(tail.size());
      break;
    }
  }
  text = path.join('.');
  if (text.isEmpty() && rest.isEmpty()) {
    const QString name = shortName(node->name());
    text = name == names::op(*node) ? QString() : name;
  }
  text += text.isEmpty() ? (rest.isEmpty() ? rest : rest.mid(3)) : rest;
  if (node->phase() == snapshot::FORWARD && (node->op() == "MatMul" || node->op() == "Gemm") && node->inputs_size() > 1) {
    const snapshot::Value* weight = graph.value(node->inputs(1));
    if (weight != nullptr && weight->role() == snapshot::INITIALIZER && weight->dims_size() == 2) {
      const int from = isTransposed(*node) ? 1 : 0;
      text += QStringLiteral("  %1 → %2").arg(format::visible(weight->dims(from)), format::visible(weight->dims(1 - from)));
    }
  }
  return text;
}

const QString& GraphLabels::shape(int valuePosition) {
  static const QString kNone;
  if (valuePosition < 0) return kNone;
  QString& text = shapes_[static_cast<std::size_t>(valuePosition)];
  if (text == kUnset) {
    const snapshot::Value& value = *model_->value(valuePosition);
    QStringList dims;
    for (const std::string& d : value.dims()) dims << format::visible(d);
    text = !value.rank_known() ? QStringLiteral("?")
           : dims.isEmpty()    ? QStringLiteral("scalar")
                               : dims.join(QStringLiteral("×"));
    text += typeMark(value.dtype());
  }
  return text;
}

QString GraphLabels::stub(const GraphScene& scene, int edge, bool atSource, int more) {
  const SceneEdge& e = scene.edges[static_cast<std::size_t>(edge)];
  if (atSource) {
    if (more > 0) return QStringLiteral("→ ×%1").arg(more + 1);
    const SceneBox& to = scene.boxes[static_cast<std::size_t>(e.to)];
    const SceneBox& from = scene.boxes[static_cast<std::size_t>(e.from)];
    if (to.node < 0) return to.group == from.group ? QStringLiteral("→ gradient") : QStringLiteral("→ ") + groupTitle(to);
    const QString& where = sub(to.node);
    if (to.lane == Lane::kWeight && where.startsWith(QStringLiteral("d "))) {
      // Of which module, when it is another one's weight.
      const snapshot::Node* forward = model_->snapshot().node(model_->snapshot().forwardOf(model_->node(to.node)->id()));
      const snapshot::Node* own = from.node < 0 ? nullptr : model_->node(from.node);
      if (forward == nullptr || own == nullptr || forward->provenance().module_path() == own->provenance().module_path())
        return QStringLiteral("→ ") + where;
      return QStringLiteral("→ ") + where + ' ' + lastPart(format::visible(forward->provenance().module_path()), '.');
    }
    return QStringLiteral("→ ") +
           (where.isEmpty() || to.lane == Lane::kOptimizer ? title(to.node) : title(to.node) + ' ' + where);
  }
  const snapshot::Value* value = model_->value(e.value);
  const QString name = value != nullptr ? shortName(value->name()) : QString();
  return more > 0 ? QStringLiteral("%1 inputs →").arg(more + 1) : name + QStringLiteral(" →");
}

QString GraphLabels::stash(const SceneEdge& edge) const {
  const snapshot::Value* value = model_->value(edge.value);
  if (value == nullptr) return {};
  const QString what = edge.kind == EdgeKind::kStash ? QStringLiteral("stash") : shortName(value->name());
  if (edge.values > 1) return what + QStringLiteral(" · %1 values").arg(edge.values);
  return value->bytes() > 0 ? what + QStringLiteral(" · ") + format::bytes(value->bytes()) : what;
}

QString GraphLabels::groupTitle(const SceneBox& box) const {
  const ModelGroup& group = model_->groups()[static_cast<std::size_t>(box.group)];
  QString text = format::visible(group.path);
  // Inside another box its path goes without saying.
  int outer = group.parent;
  while (outer > 0 && model_->groups()[static_cast<std::size_t>(outer)].transparent)
    outer = model_->groups()[static_cast<std::size_t>(outer)].parent;
  if (outer > 0) text = text.mid(format::visible(model_->groups()[static_cast<std::size_t>(outer)].path).size() + 1);
  if (box.folded > 1) {
    const QStringList parts = text.split('.');
    const QString last = QString::number(group.number + box.folded - 1);
    text += QStringLiteral(" … ") + (parts.size() > 1 ? parts[parts.size() - 2] + '.' : QString()) + last;
  }
  return box.gradient ? QStringLiteral("gradient of ") + text : text;
}

QString GraphLabels::groupCount(const SceneBox& box) const {
  const ModelGroup& group = model_->groups()[static_cast<std::size_t>(box.group)];
  const QString nodes =
      QStringLiteral("%1 nodes").arg(format::count(box.gradient ? group.gradientNodes : group.forwardNodes));
  return box.folded > 1 ? QStringLiteral("%1 × %2").arg(box.folded).arg(nodes) : nodes;
}

QString GraphLabels::groupSource(int group) {
  if (sources_.empty()) {
    sources_.resize(model_->groups().size());
    for (int i = 0; i < model_->size(); ++i) {
      const snapshot::Node* node = model_->node(i);
      if (node == nullptr || node->phase() != snapshot::FORWARD || node->provenance().source_line() <= 0) continue;
      for (int g = model_->nodes()[static_cast<std::size_t>(i)].group; g > 0;
           g = model_->groups()[static_cast<std::size_t>(g)].parent) {
        if (!sources_[static_cast<std::size_t>(g)].isEmpty()) break;
        sources_[static_cast<std::size_t>(g)] = names::source(node->provenance());
      }
    }
  }
  return sources_[static_cast<std::size_t>(group)];
}

QString GraphLabels::foldedLine(const SceneBox& box) const {
  return box.gradient ? QStringLiteral("gradients of %1 identical blocks, folded").arg(box.folded)
                      : QStringLiteral("%1 identical blocks, folded").arg(box.folded);
}

QStringList GraphLabels::groupFacts(const SceneBox& box, const GraphMarks& marks) const {
  std::int64_t ns = 0, stash = 0;
  int waiting = 0, nodes = 0, differences = 0;
  bool timed = false;
  const int column = box.gradient ? 1 : 0;
  const ModelGroup& first = model_->groups()[static_cast<std::size_t>(box.group)];
  const std::vector<int>& siblings = model_->groups()[static_cast<std::size_t>(first.parent)].children;
  for (const int g : siblings) {
    const ModelGroup& group = model_->groups()[static_cast<std::size_t>(g)];
    if (g != box.group && (group.number < first.number || group.number >= first.number + box.folded || box.folded == 1))
      continue;
    const GroupMarks& m = marks.groups[static_cast<std::size_t>(g)];
    ns += m.ns[column];
    timed |= m.timed[column];
    stash += m.stashBytes;
    waiting += m.waiting[column];
    differences += m.differences[column];
    nodes += column == 0 ? group.forwardNodes : group.gradientNodes;
  }
  QStringList facts;
  if (differences > 0)
    facts << (differences == 1 ? QStringLiteral("1 difference")
                               : QStringLiteral("%1 differences").arg(format::count(differences)));
  if (waiting > 0 && waiting == nodes) facts << QStringLiteral("not reached in this step");
  if (timed) facts << (waiting > 0 && waiting == nodes ? QStringLiteral("last time ") : QString()) + format::time(ns);
  if (!box.gradient && stash > 0) facts << format::bytes(stash) + QStringLiteral(" stashed");
  return facts;
}

QString GraphLabels::toolTip(const SceneBox& box, const GraphMarks& marks) {
  QStringList lines;
  if (box.node < 0) {
    lines << groupTitle(box) << groupCount(box);
    lines << groupFacts(box, marks);
    lines << (box.kind == BoxKind::kClosedGroup ? QStringLiteral("Double-click or F11 opens it")
                                                : QStringLiteral("Double-click on its title or Shift+F11 closes it"));
    return lines.join('\n');
  }
  const snapshot::Node* node = model_->node(box.node);
  if (node == nullptr) {
    const snapshot::Value* value = model_->value(model_->nodes()[static_cast<std::size_t>(box.node)].inputValue);
    return QStringLiteral("%1\n%2\nfed with every batch").arg(format::visible(value->name()), names::shapeAndType(*value));
  }
  const GraphSnapshot& graph = model_->snapshot();
  lines << names::node(graph, node->id());
  if (!node->name().empty()) lines << format::visible(node->name());
  for (const int out : node->outputs()) {
    if (const snapshot::Value* value = graph.value(out))
      lines << QStringLiteral("→ %1   %2").arg(shortName(value->name()), names::shapeAndType(*value));
  }
  const NodeMarks& m = marks.nodes[static_cast<std::size_t>(box.node)];
  if (const snapshot::Node* forward = graph.node(graph.forwardOf(node->id()))) {
    lines << (node->phase() == snapshot::RECOMPUTE ? QStringLiteral("recomputes ") : QStringLiteral("gradient of ")) +
                 names::node(graph, forward->id());
  }
  if (m.inPlace) lines << QStringLiteral("⟲ writes in place");
  if (m.nondeterministic) lines << QStringLiteral("result depends on the number of threads");
  if (m.breakpoint) lines << QStringLiteral("breakpoint");
  if (m.heat >= 0 && marks.heat != HeatKind::kNone) {
    lines << heatName(marks.heat) + QStringLiteral(": ") +
                 heatText(marks.heat, static_cast<double>(m.heat) * static_cast<double>(m.heat) * marks.heatMost);
  }
  if (const QString source = names::source(node->provenance()); !source.isEmpty()) lines << source;
  return lines.join('\n');
}

}  // namespace stepscope
