// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/selection_completer.h"

namespace stepscope {

Selection completed(Selection s, const SnapshotStore& store) {
  const GraphPtr& graph = store.graph();
  const PlanPtr& plan = store.plan();
  if (plan) {
    if (s.instruction >= 0 && s.node < 0) {
      if (const auto* in = plan->instruction(s.instruction)) s.node = in->node();
    }
    if (s.buffer >= 0 && s.value < 0) {
      if (const auto* buffer = plan->buffer(s.buffer)) {
        s.value = buffer->value();
        if (s.instruction < 0 && s.node < 0) s.instruction = buffer->first();
      }
    }
    if (s.value >= 0 && s.node < 0 && s.instruction < 0) s.instruction = plan->producerOfValue(s.value);
    if (s.value >= 0 && s.node < 0 && s.instruction < 0 && graph && graph->producer(s.value) < 0) {
      // Nothing makes a parameter or an input; where it is read first, every view can show.
      for (const int reader : graph->consumers(s.value)) {
        const int instruction = plan->instructionOfNode(reader);
        if (instruction >= 0 && (s.instruction < 0 || instruction < s.instruction)) s.instruction = instruction;
      }
    }
    if (s.instruction >= 0 && s.node < 0) {
      if (const auto* in = plan->instruction(s.instruction)) s.node = in->node();
    }
    if (s.node >= 0 && s.instruction < 0) s.instruction = plan->instructionOfNode(s.node);
  }
  if (graph) {
    if (s.value >= 0 && s.node < 0) s.node = graph->producer(s.value);
    if (const auto* node = graph->node(s.node)) {
      if (s.value < 0) {
        for (const int out : node->outputs()) {
          if (out >= 0) {
            s.value = out;
            break;
          }
        }
      }
      if (s.file.isEmpty() && !node->provenance().source_file().empty()) {
        s.file = QString::fromStdString(node->provenance().source_file());
        s.line = node->provenance().source_line();
      }
    }
  }
  if (plan && s.buffer < 0 && s.value >= 0) s.buffer = plan->bufferOfValue(s.value);
  return s;
}

}  // namespace stepscope
