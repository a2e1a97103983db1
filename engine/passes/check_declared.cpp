#include "engine/passes/check_declared.h"

#include <fmt/format.h>

namespace stepscope {
namespace {

bool contradict(const ValueType& declared, const ValueType& computed) {
  if (declared.kind != ValueKind::kTensor || computed.kind != ValueKind::kTensor) return false;
  if (declared.dtype != DType::kUndefined && computed.dtype != DType::kUndefined && declared.dtype != computed.dtype)
    return true;
  if (!declared.shape || !computed.shape) return false;
  if (declared.shape->size() != computed.shape->size()) return true;
  for (std::size_t i = 0; i < declared.shape->size(); ++i) {
    const Dim &a = (*declared.shape)[i], &b = (*computed.shape)[i];
    if (a.known() && b.known() && a.value() != b.value()) return true;
  }
  return false;
}

}  // namespace

Status checkDeclared(Graph& graph, PassContext& context) {
  const auto* declared = context.inference.options().declared;
  if (declared == nullptr) return {};
  for (const NodeId id : graph.order())
    for (const ValueId out : graph.node(id).outputs) {
      if (!out) continue;
      const Value& value = graph.value(out);
      const auto it = declared->find(value.name);
      if (it == declared->end() || !contradict(it->second, value.type)) continue;
      context.warn(fmt::format("value '{}' of {}: the file declares {}, the graph computes {}; the latter holds", value.name,
                               graph.node(id).label(), it->second.text(), value.type.text()));
    }
  return {};
}

}  // namespace stepscope
