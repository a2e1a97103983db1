#include "engine/train/saved_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "kernels/tensor.h"

namespace stepscope {

Result<Graph> copyOfStage(const Session& session, std::string_view phase, std::string_view who) {
  for (const Stage& stage : session.plans().stages())
    if (stage.phase == phase) return *stage.graph;
  return fail(ErrorCode::kNotFound,
              fmt::format("{}: no graph of phase '{}'; expected a training that was built", who, phase));
}

std::size_t takeContents(Graph& graph, const Session& session) {
  std::size_t taken = 0;
  for (const auto& [name, contents] : session.trained().named(false)) {
    const ValueId id = graph.findValue(name);
    if (!id || graph.value(id).role != ValueRole::kInitializer) continue;
    Value& value = graph.mutableValue(id);
    value.data = std::make_shared<const Tensor>(convertTensor(contents, value.type.dtype));
    ++taken;
  }
  return taken;
}

void dropUnread(Graph& graph, const std::function<bool(const Value&)>& keep) {
  graph.removeDeadNodes();
  const UseTable uses = graph.uses();
  const auto unread = [&](ValueId id) {
    return uses.of(id).empty() && std::ranges::find(graph.outputs(), id) == graph.outputs().end();
  };
  std::erase_if(graph.mutableInputs(), [&](ValueId id) {
    if (!unread(id)) return false;
    graph.removeValue(id);
    return true;
  });
  for (std::size_t i = 0; i < graph.valueCapacity(); ++i) {
    const ValueId id{static_cast<std::int32_t>(i)};
    if (!graph.alive(id) || graph.value(id).role != ValueRole::kInitializer || !unread(id)) continue;
    if (!keep || !keep(graph.value(id))) graph.removeValue(id);
  }
}

}  // namespace stepscope
