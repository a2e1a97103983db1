// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/graph/plan_marks.h"

#include <algorithm>

#include "views/common/sharing.h"

namespace stepscope {

PlanMarks PlanMarks::make(std::shared_ptr<const GraphModel> graph, std::shared_ptr<const PlanSnapshot> plan) {
  PlanMarks marks;
  marks.model = std::move(graph);
  marks.plan = std::move(plan);
  const GraphModel& model = *marks.model;
  const auto size = static_cast<std::size_t>(model.size());
  marks.instruction.assign(size, -1);
  marks.inPlace.assign(size, 0);
  marks.stash.assign(model.groups().size(), 0);
  if (marks.plan) {
    const PlanSnapshot& p = *marks.plan;
    for (int i = 0; i < p.size(); ++i) {
      const snapshot::Instruction& in = *p.instruction(i);
      const int node = model.ofNodeId(in.node());
      if (node < 0 || marks.instruction[static_cast<std::size_t>(node)] >= 0) continue;
      marks.instruction[static_cast<std::size_t>(node)] = i;
      for (const auto& out : in.outputs()) {
        const snapshot::Buffer* buffer = p.buffer(out.buffer());
        if (buffer && isInPlace(p, *buffer)) marks.inPlace[static_cast<std::size_t>(node)] = 1;
      }
    }
  }
  std::vector<int> read;
  for (int i = 0; i < model.size(); ++i) {
    const ModelNode& node = model.nodes()[static_cast<std::size_t>(i)];
    if (node.graphNode < 0 || !isForward(node.lane)) continue;
    read.clear();
    for (const int* e = model.outBegin(i); e != model.outEnd(i); ++e) {
      const ModelEdge& edge = model.edges()[static_cast<std::size_t>(*e)];
      if (!isForward(model.nodes()[static_cast<std::size_t>(edge.to)].lane)) read.push_back(edge.value);
    }
    std::sort(read.begin(), read.end());
    read.erase(std::unique(read.begin(), read.end()), read.end());
    std::int64_t bytes = 0;
    for (const int value : read) {
      if (const snapshot::Value* v = model.value(value)) bytes += std::max<std::int64_t>(0, v->bytes());
    }
    if (bytes == 0) continue;
    for (int g = node.group; g > 0; g = model.groups()[static_cast<std::size_t>(g)].parent)
      marks.stash[static_cast<std::size_t>(g)] += bytes;
  }
  return marks;
}

}  // namespace stepscope
