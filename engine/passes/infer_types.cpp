#include "engine/passes/infer_types.h"

#include <fmt/format.h>

namespace stepscope {

Status inferTypes(Graph& graph, PassContext& context) {
  if (context.inference.isCurrent()) return {};
  context.inference = Inference(graph, context.inference.operators(), context.inference.options());
  SS_TRY(context.inference.run(context.cancel));
  std::size_t unknown = 0;
  for (const NodeId id : graph.order())
    for (const ValueId out : graph.node(id).outputs)
      if (out && !graph.value(out).type.shape) ++unknown;
  if (unknown > 0) context.note(fmt::format("{} values of unknown rank", unknown));
  return {};
}

}  // namespace stepscope
