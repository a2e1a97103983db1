#include "engine/train/fit_dims.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "engine/build/step_inputs.h"
#include "engine/passes/infer.h"
#include "engine/train/label_extents.h"
#include "engine/train/synthetic_dims.h"

namespace stepscope {
namespace {

constexpr int kMostTrials = 32;

// Where the graph cannot be: after how many nodes, why, and the numbers that may be meant instead.
struct Contradiction {
  std::size_t at = 0;
  std::string message;
  std::vector<std::int64_t> numbers;
  std::int64_t beyond = 0;  // by how much an index leaves its table
};

// Labels of an attached loss follow the output: they fix nothing.
std::vector<ValueId> fedInputs(const Graph& graph) {
  std::vector<ValueId> fed;
  for (const ValueId id : graph.inputs())
    if (!isStepInput(graph.value(id).name) && !comparedOutput(graph, id)) fed.push_back(id);
  return fed;
}

// The integers of a synthetic batch: what indexes tables.
void bindIntegers(const Graph& graph, const TrainOptions& options, const std::map<std::string, std::int64_t>& extents,
                  Inference& inference) {
  Graph integers = graph;
  auto inputs = fedInputs(graph);
  std::erase_if(inputs, [&](ValueId id) {
    return !isInteger(graph.value(id).type.dtype) && graph.value(id).type.dtype != DType::kBool;
  });
  integers.mutableInputs() = inputs;
  TrainOptions data;
  data.seed = options.seed;
  data.padding = options.padding;
  data.pad = options.pad;
  std::erase_if(data.pad, [&](const auto& pad) {
    return std::find(inputs.begin(), inputs.end(), graph.findValue(pad.first)) == inputs.end();
  });
  data.dims = extents;
  const SyntheticDims used(integers, inputs, extents);
  for (const std::string& name : used.unused()) data.dims.erase(name);
  const auto source = openData(integers, data, inference.operators(), nullptr);
  const auto batch = source ? (*source)->batch(0) : Result<Batch>(Batch{});
  if (!batch) return;
  for (const auto& [name, tensor] : batch->arrays)
    inference.setConstant(graph.findValue(name), std::make_shared<const Tensor>(tensor));
}

std::vector<std::int64_t> numbersAt(const Graph& graph, const Node& node) {
  std::vector<std::int64_t> numbers;
  for (const ValueId in : node.inputs) {
    if (!in || !graph.value(in).type.shape) continue;
    for (const Dim& dim : *graph.value(in).type.shape)
      if (dim.known() && dim.value() > 0) numbers.push_back(dim.value());
  }
  std::sort(numbers.begin(), numbers.end(), std::greater());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

std::optional<Contradiction> indexBeyond(const Graph& graph, const Inference& inference, const Node& node) {
  if (node.op != "Gather" || !node.domain.empty() || !graph.value(node.input(0)).type.shape) return std::nullopt;
  const Shape& table = *graph.value(node.input(0)).type.shape;
  const std::int64_t axis = node.attrs.integer("axis", 0);
  const auto at = static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(table.size()) : axis);
  const auto indices = inference.integers(node.input(1));
  if (at >= table.size() || !table[at].known() || !indices || indices->empty()) return std::nullopt;
  const std::int64_t rows = table[at].value(), largest = *std::max_element(indices->begin(), indices->end());
  if (largest < rows) return std::nullopt;
  return Contradiction{
      0, fmt::format("{}: index {} for a table of {} rows", node.label(), largest, rows), {rows}, largest - rows + 1};
}

std::optional<Contradiction> tryExtents(const Graph& imported, const TrainOptions& options,
                                        const std::map<std::string, std::int64_t>& extents, const Operators& operators) {
  Graph graph = imported;
  const auto fed = fedInputs(graph);
  const SyntheticDims dims(graph, fed, extents);
  for (const ValueId id : fed) {
    Value& value = graph.mutableValue(id);
    if (!value.type.shape) continue;
    Shape shape;
    for (const Dim& dim : *value.type.shape) {
      const auto extent = dims.extent(value.name, dim);
      if (!extent) return Contradiction{0, extent.error().message, {}, 0};
      shape.push_back(Dim(*extent));
    }
    value.type.shape = std::move(shape);
  }
  Inference inference(graph, operators);
  bindIntegers(graph, options, extents, inference);
  std::size_t at = 0;
  for (const NodeId id : graph.order()) {
    ++at;
    const Node& node = graph.node(id);
    if (auto beyond = indexBeyond(graph, inference, node)) {
      beyond->at = at;
      return beyond;
    }
    if (const Status status = inference.inferNode(id); !status)
      return Contradiction{at, status.error().message, numbersAt(graph, node), 0};
  }
  return std::nullopt;
}

std::string dimHint(const Graph& graph, const TrainOptions& options, const Operators& operators) {
  if (!options.data.empty()) return {};
  std::string hint;
  TrainOptions free = options;
  free.dims.clear();
  const std::vector<DimChoice> wanted = fitDims(graph, free, operators);
  for (const DimChoice& need : wanted) {
    const auto given = options.dims.find(need.name);
    const std::int64_t extent = given == options.dims.end() ? need.extent : given->second;
    hint += fmt::format("{}dimension '{}' of the synthetic data is {} ({})", hint.empty() ? "" : ", ", need.name, extent,
                        given == options.dims.end() ? need.fixed ? "derived" : "default" : "--dim");
    if (need.fixed && extent != need.extent)
      hint += fmt::format(" and the model needs {}: --dim {}={}", need.extent, need.name, need.extent);
  }
  if (hint.empty()) return {};
  return "; hint: " + hint + (hint.find("--dim ") == std::string::npos ? "; --dim NAME=N sets one" : "");
}

}  // namespace

std::vector<DimChoice> fitDims(const Graph& graph, const TrainOptions& options, const Operators& operators) {
  const SyntheticDims start(graph, fedInputs(graph), options.dims);
  std::map<std::string, std::int64_t> extents = options.dims;
  std::vector<DimChoice> open;
  for (const DimChoice& choice : start.choices()) {
    extents[choice.name] = choice.extent;
    if (!options.dims.contains(choice.name)) open.push_back(choice);
  }
  if (open.empty()) return {};
  const std::vector<DimChoice> defaults = open;
  int trials = 0;
  auto wrong = tryExtents(graph, options, extents, operators);
  while (wrong) {
    // The larger extents first: a sequence sooner than a batch.
    std::vector<DimChoice*> order;
    for (DimChoice& choice : open) order.push_back(&choice);
    std::stable_sort(order.begin(), order.end(),
                     [](const DimChoice* a, const DimChoice* b) { return a->extent > b->extent; });
    std::optional<Contradiction> best;
    DimChoice* moved = nullptr;
    std::int64_t to = 0;
    bool fits = false;
    for (DimChoice* choice : order) {
      std::vector<std::int64_t> candidates;
      const auto propose = [&](std::int64_t number) {
        if (number > 0 && number != choice->extent &&
            std::find(candidates.begin(), candidates.end(), number) == candidates.end())
          candidates.push_back(number);
      };
      if (wrong->beyond > 0) propose(choice->extent - wrong->beyond);
      for (const std::int64_t number : wrong->numbers) propose(number);
      // An axis may be a multiple of the symbol.
      for (const std::int64_t found : wrong->numbers)
        for (const std::int64_t number : wrong->numbers)
          if (found != number && choice->extent * number % found == 0) propose(choice->extent * number / found);
      for (const std::int64_t number : candidates) {
        if (++trials > kMostTrials) return defaults;
        auto tried = extents;
        tried[choice->name] = number;
        auto next = tryExtents(graph, options, tried, operators);
        if (next && next->at <= (best ? best->at : wrong->at)) continue;
        best = std::move(next);
        moved = choice;
        to = number;
        fits = !best;
        if (fits) break;
      }
      if (fits) break;
    }
    if (!moved) return defaults;
    if (!moved->fixed) moved->reason = fmt::format("{} does not fit: {}", moved->extent, wrong->message);
    moved->extent = extents[moved->name] = to;
    moved->fixed = true;
    wrong = std::move(best);
    if (fits) break;
  }
  return open;
}

Error withDimHint(Error error, const Graph& graph, const TrainOptions& options, const Operators& operators) {
  if (error.code == ErrorCode::kInvalidArgument && options.data.empty() &&
      error.message.find("; hint: ") == std::string::npos)
    error.message += dimHint(graph, options, operators);
  return error;
}

}  // namespace stepscope
