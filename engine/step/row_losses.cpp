#include "engine/step/row_losses.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "engine/ops/class_loss.h"
#include "engine/ops/op_def.h"
#include "engine/snapshot/utf8.h"
#include "kernels/kernel.h"
#include "kernels/strided_view.h"

namespace stepscope {
namespace {

constexpr std::int64_t kMostRows = 1 << 20;

snapshot::RowLosses never(std::string reason) {
  snapshot::RowLosses losses;
  losses.set_instruction(-1);
  losses.set_unavailable(toUtf8(reason));
  return losses;
}

const Node* producerOf(const Graph& graph, ValueId id) {
  if (!id) return nullptr;
  const Value& value = graph.value(id);
  return value.role == ValueRole::kNodeOutput && value.producer ? &graph.node(value.producer) : nullptr;
}

bool onlyReshapes(const Node& node) {
  return node.domain.empty() && (node.op == "Identity" || node.op == "Cast" || node.op == "Reshape" ||
                                 node.op == "Squeeze" || node.op == "Unsqueeze");
}

// What `loss` is a cast or another shape of.
const Node* reducingNode(const Graph& graph, ValueId loss) {
  const Node* node = producerOf(graph, loss);
  while (node && onlyReshapes(*node)) node = producerOf(graph, node->input(0));
  return node;
}

// The sum of a chain of elementwise nodes, which are nowhere else (pass fuse_pointwise).
bool sumsChain(const Node& node) { return node.domain == kInternalDomain && node.op == "PointwiseSum"; }
bool isReduction(const Node& node) {
  return sumsChain(node) || (node.domain.empty() && (node.op == "ReduceMean" || node.op == "ReduceSum"));
}

// Of one row whose classes lie `stride` apart.
double logSumExp(const TensorView& scores, std::int64_t first, std::int64_t classes, std::int64_t stride) {
  double most = -std::numeric_limits<double>::infinity(), sum = 0;
  for (std::int64_t c = 0; c < classes; ++c) {
    const double x = elementAsDouble(scores, first + c * stride);
    if (std::isnan(x)) return x;
    most = std::max(most, x);
  }
  if (std::isinf(most)) return most;
  for (std::int64_t c = 0; c < classes; ++c) sum += std::exp(elementAsDouble(scores, first + c * stride) - most);
  return most + std::log(sum);
}

struct CrossEntropy {
  TensorView scores, labels, weights;  // weights absent: all 1
  std::optional<std::int64_t> ignored;
  bool normalised = false;  // scores are log-probabilities

  std::string problem() const {
    if (scores.dims.size() < 2 || labels.dims.size() + 1 != scores.dims.size() || !isInteger(labels.dtype))
      return "the labels are no class numbers";
    if (scores.dims[0] * scores.dims[1] == 0 || labels.elements() != scores.elements() / scores.dims[1])
      return "scores and labels differ in shape";
    if (weights.present() && weights.elements() != scores.dims[1]) return "the weights do not fit the classes";
    return labels.elements() > kMostRows ? "too many rows" : "";
  }

  void measure(snapshot::RowLosses& out) const {
    const std::int64_t classes = scores.dims[1], stride = elementCount(scores.dims) / (scores.dims[0] * classes);
    bool any = false;
    for (std::int64_t row = 0; row < labels.elements(); ++row) {
      const std::int64_t label = elementAsInt(labels, row), first = row / stride * classes * stride + row % stride;
      const bool ignore = ignored && label == *ignored;
      any = any || ignore;
      out.add_ignored(ignore);
      if (ignore) {
        out.add_values(0);
      } else if (label < 0 || label >= classes) {
        out.add_values(std::numeric_limits<double>::quiet_NaN());
      } else {
        const double score = elementAsDouble(scores, first + label * stride);
        const double weight = weights.present() ? elementAsDouble(weights, label) : 1;
        out.add_values(weight * ((normalised ? 0 : logSumExp(scores, first, classes, stride)) - score));
      }
    }
    if (!any) out.clear_ignored();
  }
};

// What was measured of some rows (pass sparse_labels) at the places of all: the others are ignored.
snapshot::RowLosses spread(const snapshot::RowLosses& some, const Node& gather,
                           const std::function<Result<TensorView>(ValueId)>& read) {
  const auto all = read(gather.input(0)), rows = read(gather.input(1));
  snapshot::RowLosses out;
  out.set_quantity(some.quantity());
  if (!all || !rows) {
    out.set_unavailable(toUtf8((all ? rows : all).error().message));
    return out;
  }
  if (all->elements() > kMostRows || rows->elements() != some.values_size()) return never("the rows of the loss are picked");
  std::vector<double> values(static_cast<std::size_t>(all->elements()), 0);
  std::vector<bool> ignored(values.size(), true);
  for (std::int64_t i = 0; i < rows->elements(); ++i) {
    const std::int64_t row = elementAsInt(*rows, i);
    if (row < 0 || row >= all->elements()) return never("the rows of the loss are picked by numbers out of range");
    if (static_cast<int>(i) < some.ignored_size() && some.ignored(static_cast<int>(i))) continue;
    values[static_cast<std::size_t>(row)] = some.values(static_cast<int>(i));
    ignored[static_cast<std::size_t>(row)] = false;
  }
  for (std::size_t row = 0; row < values.size(); ++row) {
    out.add_values(values[row]);
    out.add_ignored(ignored[row]);
  }
  return out;
}

snapshot::RowLosses ofCrossEntropy(const Graph& graph, const Node& node,
                                   const std::function<Result<TensorView>(ValueId)>& read) {
  CrossEntropy entropy;
  entropy.ignored = ignoredLabel(graph, node);
  entropy.normalised = node.op == "NegativeLogLikelihoodLoss";
  auto scores = read(node.input(0));
  if (!scores && node.output(1)) {
    scores = read(node.output(1));
    entropy.normalised = true;
  }
  auto labels = read(node.input(1));
  snapshot::RowLosses out;
  out.set_quantity(toUtf8(
      fmt::format("cross entropy of '{}' at '{}'", graph.value(node.input(0)).name, graph.value(node.input(1)).name)));
  if (!scores || !labels) {
    out.set_unavailable(toUtf8((scores ? labels : scores).error().message));
    return out;
  }
  entropy.scores = *scores;
  entropy.labels = *labels;
  if (node.input(2)) {
    const auto weights = read(node.input(2));
    if (!weights) {
      out.set_unavailable(toUtf8(weights.error().message));
      return out;
    }
    entropy.weights = *weights;
  }
  if (std::string problem = entropy.problem(); !problem.empty()) return never(std::move(problem));
  entropy.measure(out);
  if (const Node* gather = producerOf(graph, node.input(1)); gather && gather->op == "Gather")
    return spread(out, *gather, read);
  return out;
}

// The elements that a chain sums, computed once more from its operands.
Result<Tensor> elementsOf(const Graph& graph, const Node& sum, const std::function<Result<TensorView>(ValueId)>& read) {
  KernelSpec spec;
  spec.domain = kInternalDomain;
  spec.op = "Pointwise";
  for (const char* name : {"steps", "output_type"})
    if (const AttrValue* value = sum.attrs.find(name)) spec.attrs.set(name, *value);
  std::vector<TensorView> operands;
  Dims dims;
  for (std::size_t i = 0; i < sum.inputs.size(); ++i) {
    SS_ASSIGN(operands.emplace_back(), read(sum.inputs[i]));
    SS_ASSIGN(const StridedView seen, seenOperand(sum.domain, sum.op, i, operands.back().dims, sum.attrs));
    if (seesView(sum.domain, sum.op, i, sum.attrs))
      spec.attrs.set(std::string(viewAttributeOf(spec.domain, spec.op, i)), seen.attribute());
    SS_ASSIGN(dims, broadcastDims(dims, seen.dims));
    spec.inputs.push_back({operands.back().dtype, operands.back().dims, false, {}});
  }
  Tensor result(graph.value(sum.output(0)).type.dtype, dims);
  spec.outputs.push_back({result.dtype(), dims, false, {}});
  SS_ASSIGN(const auto kernel, makeKernel(Backend::kCpu, spec));
  const Tensor room(DType::kU8, {static_cast<std::int64_t>(kernel->workspaceBytes())});
  std::vector<TensorView> results{result.view()};
  KernelCall call;
  call.inputs = operands;
  call.outputs = results;
  call.workspace = {static_cast<std::byte*>(room.data()), room.bytes()};
  SS_TRY(kernel->run(call));
  return result;
}

snapshot::RowLosses ofReduction(const Graph& graph, const Node& node,
                                const std::function<Result<TensorView>(ValueId)>& read) {
  const bool chain = sumsChain(node), mean = chain ? node.attrs.integer("mean", 0) != 0 : node.op == "ReduceMean";
  snapshot::RowLosses out;
  out.set_quantity(toUtf8(fmt::format("{} of '{}' over each row", mean ? "mean" : "sum",
                                      graph.value(chain ? node.output(0) : node.input(0)).name)));
  Tensor computed;
  Result<TensorView> view = TensorView();
  if (chain) {
    if (auto elements = elementsOf(graph, node, read)) {
      computed = std::move(*elements);
      view = computed.view();
    } else {
      view = tl::make_unexpected(elements.error());
    }
  } else {
    view = read(node.input(0));
  }
  if (!view) {
    out.set_unavailable(toUtf8(view.error().message));
    return out;
  }
  if (view->dims.empty() || view->elements() == 0 || view->dims[0] > kMostRows)
    return never("what the loss reduces has no rows");
  const std::int64_t rows = view->dims[0], length = view->elements() / rows;
  for (std::int64_t row = 0; row < rows; ++row) {
    double sum = 0;
    for (std::int64_t i = 0; i < length; ++i) sum += elementAsDouble(*view, row * length + i);
    out.add_values(mean ? sum / static_cast<double>(length) : sum);
  }
  return out;
}

}  // namespace

const Node* rowLossNode(const Graph& graph, ValueId loss) {
  const Node* node = reducingNode(graph, loss);
  return node && (isClassLoss(*node) || isReduction(*node)) ? node : nullptr;
}

snapshot::RowLosses rowLosses(const Graph& graph, ValueId loss, const std::function<Result<TensorView>(ValueId)>& read,
                              const std::function<int(NodeId)>& instructionOf) {
  const Node* node = reducingNode(graph, loss);
  if (!node) return never("the loss is computed by no node");
  if (!isClassLoss(*node) && !isReduction(*node))
    return never(fmt::format("the loss comes from {}, which has no value per row", node->label()));
  snapshot::RowLosses out = isClassLoss(*node) ? ofCrossEntropy(graph, *node, read) : ofReduction(graph, *node, read);
  if (out.instruction() == 0) out.set_instruction(instructionOf(node->id));
  return out;
}

}  // namespace stepscope
