#include "engine/passes/fuse_fake_quant.h"

#include <fmt/format.h>

#include "engine/passes/pattern.h"

namespace stepscope {
namespace {

struct Found {
  const Node* dequantize = nullptr;
  const Node* clip = nullptr;
  const Node* quantize = nullptr;
  std::int64_t zero = 0;
};

// The nodes in front of a StraightThrough; `why` where they cannot be one.
Found find(const Graph& graph, const Inference& inference, const Readers& readers, const Node& through, std::string& why) {
  Found found;
  found.dequantize = producerOf(graph, through.input(0), "DequantizeLinear");
  if (!found.dequantize) return found;
  found.clip = producerOf(graph, found.dequantize->input(0), "Clip");
  found.quantize = producerOf(graph, found.clip ? found.clip->input(0) : found.dequantize->input(0), "QuantizeLinear");
  if (!found.quantize) return found;
  const ValueType &x = graph.value(through.input(1)).type, &scale = graph.value(through.input(2)).type;
  if (x.dtype != DType::kF32 || scale.dtype != DType::kF32)
    why = fmt::format("x is {} and its scale {}; expected float32", x.text(), scale.text());
  else if (!scale.shape || !scale.shape->empty())
    why = fmt::format("its scale is {}; expected one number for all elements", scale.text());
  else if (!readers.single(found.quantize->output(0)) || (found.clip && !readers.single(found.clip->output(0))))
    why = "the integers are read elsewhere too";
  else if (!readers.single(found.dequantize->output(0)))
    why = "the pair is read without its gradient too";
  else if (found.quantize->predicates != through.predicates)
    why = "it belongs to another branch of If";
  if (!why.empty() || !through.input(3)) return found;
  const auto zero = inference.integers(through.input(3));
  if (!zero || zero->size() != 1)
    why = "its zero point is no constant number";
  else if (found.zero = zero->front(); found.zero % 2 != 0)
    why = fmt::format("its zero point is {}, an odd number: halves would be rounded the other way", found.zero);
  return found;
}

}  // namespace

Status fuseFakeQuant(Graph& graph, PassContext& context) {
  const Readers readers(graph);
  std::vector<NodeId> gone;
  for (const NodeId id : std::vector<NodeId>(graph.order())) {
    const Node through = graph.node(id);
    if (through.op != "StraightThrough" || through.domain != kInternalDomain) continue;
    std::string why;
    const Found found = find(graph, context.inference, readers, through, why);
    if (!found.quantize) continue;
    if (!why.empty()) {
      context.miss(id, why);
      continue;
    }
    std::vector<NodeId> parts{found.dequantize->id};
    if (found.clip) parts.push_back(found.clip->id);
    parts.push_back(found.quantize->id);
    const ValueId zero = graph.addConstant("zero", Tensor::scalar(DType::kF32, static_cast<double>(found.zero)));
    Node& fused = graph.mutableNode(id);
    fused.domain = "com.microsoft";
    fused.op = "FakeQuant";
    fused.inputs = {through.input(1), through.input(2), zero};
    fused.attrs = {{"quant_min", through.attrs.integer("low", 0)}, {"quant_max", through.attrs.integer("high", 255)}};
    fused.provenance.sources.insert(fused.provenance.sources.end(), parts.begin(), parts.end());
    fused.provenance.pass = graph.pass();
    graph.logChange(id);
    gone.insert(gone.end(), parts.begin(), parts.end());
    context.match();
  }
  graph.removeNodes(gone);
  return {};
}

}  // namespace stepscope
