#include "engine/passes/graph_cost.h"

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "kernels/dtype.h"
#include "kernels/strided_view.h"

namespace stepscope {
namespace {

using Extents = std::vector<std::int64_t>;

struct Operand {
  ValueId id;
  Extents dims;
  std::int64_t bytes = 0;
  std::optional<std::int64_t> seen;  // bytes of the view that the node reads
};

class Meter {
 public:
  Meter(const Graph& graph, const OpRegistry& ops, const std::map<std::string, Dim>& extents, const Roof& roof)
      : graph_(graph), ops_(ops), extents_(extents), roof_(roof) {}

  void add(const Node& node, GraphCost& cost) {
    const OpDef* op = ops_.find(node);
    if (!op || op->view) return;
    if (!read(node.inputs, inputs_) || !read(node.outputs, outputs_)) {
      ++cost.unknown;
      return;
    }
    for (std::size_t i = 0; i < inputs_.size(); ++i) findView(node, i);
    const std::int64_t bytes = bytesOf(*op);
    const double flops = flopsOf(*op, node);
    cost.bytes += bytes;
    cost.flops += flops;
    const double compute = roof_.operationsPerSecond > 0 ? flops / roof_.operationsPerSecond : 0;
    const double traffic = roof_.bytesPerSecond > 0 ? static_cast<double>(bytes) / roof_.bytesPerSecond : 0;
    cost.ns += 1e9 * std::max(compute, traffic);
  }

 private:
  bool read(const std::vector<ValueId>& ids, std::vector<Operand>& operands) const {
    operands.clear();
    for (const ValueId id : ids) {
      Operand& operand = operands.emplace_back();
      operand.id = id;
      if (!id) continue;
      const ValueType& type = graph_.value(id).type;
      if (!type.shape) return false;
      std::int64_t count = 1;
      for (const Dim& dim : *type.shape) {
        const std::optional<std::int64_t> extent = dim.known()        ? dim.asKnown()
                                                   : extents_.empty() ? std::nullopt
                                                                      : dim.substitute(extents_).asKnown();
        if (!extent) return false;
        operand.dims.push_back(*extent);
        count *= *extent;
      }
      operand.bytes = count * static_cast<std::int64_t>(dtypeSize(type.dtype));
    }
    return true;
  }

  void findView(const Node& node, std::size_t i) {
    if (!seesView(node.domain, node.op, i, node.attrs)) return;
    Operand& operand = inputs_[i];
    const std::int64_t count = elementCount(operand.dims);
    const auto view = seenOperand(node.domain, node.op, i, operand.dims, node.attrs);
    if (view && count > 0) operand.seen = operand.bytes / count * elementCount(view->dims);
  }

  // An operand that comes more than once is read once, its views one after the other.
  std::int64_t bytesRead(std::size_t i) const {
    std::int64_t seen = 0;
    bool views = false;
    for (const Operand& o : inputs_)
      if (o.id == inputs_[i].id) {
        seen += o.seen.value_or(o.bytes);
        views |= o.seen.has_value();
      }
    return views ? std::min(seen, inputs_[i].bytes) : inputs_[i].bytes;
  }

  std::int64_t bytesOf(const OpDef& op) const {
    const Traffic& traffic = op.traffic;
    const bool part = traffic.base >= 0 && static_cast<std::size_t>(traffic.updates) < inputs_.size();
    const std::int64_t written = outputs_.empty() ? 0 : outputs_[0].bytes;
    const std::int64_t changed =
        part ? std::min(written, inputs_[static_cast<std::size_t>(traffic.updates)].bytes) : written;
    std::int64_t bytes = 0;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const auto before = inputs_.begin() + static_cast<std::ptrdiff_t>(i);
      if (std::any_of(inputs_.begin(), before, [&](const Operand& o) { return o.id == inputs_[i].id; })) continue;
      const bool base = part && static_cast<int>(i) == traffic.base;
      bytes += base ? changed : maskHas(traffic.picked, i) ? std::min(written, inputs_[i].bytes) : bytesRead(i);
    }
    for (std::size_t o = 0; o < outputs_.size(); ++o) bytes += o == 0 ? changed : outputs_[o].bytes;
    return bytes;
  }

  double flopsOf(const OpDef& op, const Node& node) {
    if (!op.flops) {
      std::int64_t count = outputs_.empty() || op.traffic.moves ? 0 : 1;
      if (count > 0)
        for (const std::int64_t extent : outputs_[0].dims) count *= extent;
      return static_cast<double>(count);
    }
    inputDims_.clear();
    outputDims_.clear();
    for (const Operand& o : inputs_) inputDims_.emplace_back(o.dims);
    for (const Operand& o : outputs_) outputDims_.emplace_back(o.dims);
    return op.flops({inputDims_, outputDims_, &node.attrs});
  }

  const Graph& graph_;
  const OpRegistry& ops_;
  const std::map<std::string, Dim>& extents_;
  const Roof& roof_;
  std::vector<Operand> inputs_, outputs_;  // of the node at hand
  std::vector<std::span<const std::int64_t>> inputDims_, outputDims_;
};

}  // namespace

GraphCost graphCost(const Graph& graph, const OpRegistry& ops, const std::map<std::string, Dim>& extents, const Roof& roof) {
  GraphCost cost;
  Meter meter(graph, ops, extents, roof);
  for (const NodeId id : graph.order()) meter.add(graph.node(id), cost);
  return cost;
}

}  // namespace stepscope
