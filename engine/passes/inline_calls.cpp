#include "engine/passes/inline_calls.h"

#include <fmt/format.h>

#include "engine/onnx/inliner.h"

namespace stepscope {

Status inlineCalls(Graph& graph, PassContext& context) {
  if (context.functions == nullptr) return {};
  SS_ASSIGN(const InlineReport report, inlineFunctions(graph, *context.functions));
  context.match(report.calls);
  if (report.calls > 0)
    context.note(fmt::format("{} calls in {} levels became {} nodes", report.calls, report.depth, report.nodes));
  return {};
}

}  // namespace stepscope
