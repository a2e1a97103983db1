#include "engine/build/master_weights.h"

#include <memory>
#include <unordered_map>

#include "engine/ops/op_def.h"

namespace stepscope {
namespace {

DType keptAs(const TrainOptions& options, DType inFile) {
  if (options.masterWeights == "fp32" && isLow(inFile)) return DType::kF32;
  if (options.masterWeights == "off" && inFile == DType::kF32 && options.precision != "fp32")
    return options.precision == "bf16" ? DType::kBF16 : DType::kF16;
  return inFile;
}

// Whoever reads the parameter is to read a cast of it.
void castForReaders(Graph& graph, ValueId parameter, DType type, std::unordered_map<ValueId, ValueId>& casts,
                    std::vector<NodeId>& made) {
  const std::string name = graph.value(parameter).name;
  const NodeId id =
      graph.addNode(name + "/cast", "", "Cast", {parameter}, {name + "/cast"}, {{"to", static_cast<std::int64_t>(type)}});
  Node& node = graph.mutableNode(id);
  node.sinceVersion = kInternalOpset;
  node.provenance.pass = graph.pass();
  if (const auto dot = name.rfind('.'); dot != std::string::npos)
    node.provenance.modulePath = InternedText(name.substr(0, dot));
  casts[parameter] = node.output(0);
  made.push_back(id);
}

}  // namespace

Result<MasterWeights> settleMasterWeights(Graph& graph, Inference& inference, const TrainOptions& options,
                                          const std::vector<ValueId>& trained) {
  MasterWeights found;
  const std::vector<NodeId> before = graph.order();
  std::unordered_map<ValueId, ValueId> casts;
  std::vector<NodeId> made;
  for (const ValueId id : trained) {
    const DType inFile = graph.value(id).type.dtype, kept = keptAs(options, inFile);
    found.low += isLow(kept) ? 1 : 0;
    if (kept == inFile) continue;
    ++(kept == DType::kF32 ? found.widened : found.narrowed);
    castForReaders(graph, id, inFile, casts, made);
    Value& value = graph.mutableValue(id);
    value.type.dtype = kept;
    if (!value.data) continue;
    // Made when the state asks for it: where it has the parameter already, nobody does.
    value.data = InitialContents::later(kept, value.data.dims(), [file = value.data, kept]() -> Result<Tensor> {
      SS_ASSIGN(const Tensor contents, file.read());
      return convertTensor(contents.view(), kept);
    });
  }
  if (made.empty()) return found;
  graph.replaceAllUses(casts);
  std::vector<NodeId> order = made;
  order.insert(order.end(), before.begin(), before.end());
  graph.setOrder(std::move(order));
  for (const auto& [parameter, cast] : casts) {
    graph.setInput(graph.value(cast).producer, 0, parameter);  // replaceAllUses changed the cast too
    SS_TRY(inference.inferNode(graph.value(cast).producer));
  }
  return found;
}

bool roundsStochastically(const TrainOptions& options, DType parameter) {
  return options.masterWeights == "off" && isLow(parameter);
}

}  // namespace stepscope
