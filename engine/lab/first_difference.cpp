#include "engine/lab/first_difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>

#include "engine/data/safetensors.h"
#include "engine/ir/key_index.h"
#include "engine/lab/free_memory.h"
#include "engine/lab/side_step.h"
#include "engine/lab/sub_graph.h"
#include "engine/lab/tensor_distance.h"
#include "engine/onnx/writer.h"
#include "engine/snapshot/utf8.h"

namespace stepscope {
namespace {

constexpr int kPlacesTried = 20, kPlacesTriedDeeper = 3, kDeepest = 3, kSubGraphsTried = 200;
// A sum of numbers that cancel is rounding below this share of them.
constexpr double kCancelled = 1e-3;

bool sums(const Node& node) {
  static const std::set<std::string_view> ops{"Add", "Sub", "Sum", "ReduceSum", "ReduceMean", "Mean"};
  return node.domain.empty() && ops.contains(node.op);
}

double normOf(const Tensor& tensor) {
  if (tensor.dtype() == DType::kString) return 0;
  double squares = 0;
  for (std::int64_t i = 0; i < tensor.elements(); ++i) {
    const double x = elementAsDouble(tensor.view(), i);
    if (std::isfinite(x)) squares += x * x;
  }
  return std::sqrt(squares);
}

// Relative L2, of at least `floor`.
double errorOf(const Tensor& found, const Tensor& expected, double floor) {
  if (found.dtype() == DType::kString || expected.dtype() == DType::kString) return 0;
  if (found.elements() != expected.elements()) return std::numeric_limits<double>::infinity();
  TensorDistance distance;
  for (std::int64_t i = 0; i < expected.elements(); ++i)
    distance.add(elementAsDouble(found.view(), i), elementAsDouble(expected.view(), i));
  if (distance.notFinite > 0 || distance.difference == 0) return distance.error();
  const double size = std::max(floor, std::sqrt(distance.expected));
  return size > 0 ? std::sqrt(distance.difference) / size : 1;
}

// A sub-graph with its data.
struct Part {
  std::vector<NodeId> nodes;
  ValueId output;
  SubGraph sub;
  Batch batch;
  double error = 0;
};

class Search {
 public:
  Search(const BisectSubject& subject, const BisectQuestion& question, const TrainOptions& reference,
         const TrainOptions& options, BisectReport& report)
      : subject_(subject), question_(question), reference_(reference), options_(options), report_(report) {}

  Status run() {
    SS_ASSIGN(good_, side(reference_));
    SS_ASSIGN(bad_, side(options_));
    if (const std::int64_t bytes = bytesOfValues(), free = freeMemoryBytes(); 2 * bytes >= free) {
      report_.note = fmt::format(
          "the values of a step, {} bytes, do not fit into memory next to it: {} bytes are free; a "
          "smaller batch leads to a sub-graph",
          bytes, free);
      return {};
    }
    SS_TRY(collect());
    SS_TRY(compare());
    if (differing_.empty()) {
      report_.note = "no value that both plans compute differs: what differs was made where the plans have none in common";
      return {};
    }
    return findPart();
  }

 private:
  const Graph& graph() const { return good_->stepper().graph(); }

  Result<std::unique_ptr<SideStep>> side(const TrainOptions& options) const {
    SideSubject side{subject_.model, subject_.request, subject_.batch, subject_.start, subject_.cancelled};
    side.request.options = options;
    side.request.threads = threadsOf(options);
    side.keepGradients = subject_.request.keepGradients;
    side.findLossScale = true;
    return SideStep::make(side);
  }

  std::int64_t bytesOfValues() const {
    std::int64_t bytes = 0;
    for (const Buffer& buffer : good_->stepper().plan().buffers) bytes += buffer.value ? buffer.bytes : 0;
    return bytes;
  }

  // Every value of the reference.
  Status collect() {
    const Executor& executor = good_->stepper().executor();
    const auto keep = [&](ValueId id) {
      if (!id || values_.contains(id)) return;
      if (const auto contents = executor.read(id)) values_.emplace(id, contents->clone());
    };
    SS_TRY(good_->run(subject_.batch, [&](int instruction) -> Status {
      const Instruction& made = good_->stepper().plan().instructions[static_cast<std::size_t>(instruction)];
      if (instruction == 0)
        for (const ValueId id : graph().inputs()) keep(id);
      if (made.kind == InstructionKind::kKernel && made.node)
        for (const ValueId id : graph().node(made.node).outputs) keep(id);
      return {};
    }));
    return {};
  }

  double floorOf(const Node& node) const {
    if (!sums(node)) return 0;
    double most = 0;
    for (const ValueId id : node.inputs)
      if (const auto it = values_.find(id); it != values_.end()) most = std::max(most, normOf(it->second));
    return kCancelled * most;
  }

  // What of it both compute: `agreed_`, and `differing_` in the order in which the suspect makes it.
  Status compare() {
    const KeyIndex &goodKeys = good_->stepper().keys(), &badKeys = bad_->stepper().keys();
    const Graph& other = bad_->stepper().graph();
    return bad_->run(subject_.batch, [&](int instruction) -> Status {
      const Instruction& made = bad_->stepper().plan().instructions[static_cast<std::size_t>(instruction)];
      if (made.kind != InstructionKind::kKernel || !made.node) return {};
      for (const ValueId id : other.node(made.node).outputs) {
        if (!id) continue;
        const ValueKey key = badKeys.keyOf(id);
        const ValueId same = key ? goodKeys.find(key) : ValueId{};
        const auto expected = values_.find(same);
        if (expected == values_.end() || graph().value(same).role != ValueRole::kNodeOutput) continue;
        const auto found = bad_->stepper().executor().read(id);
        if (!found) continue;
        const double error = errorOf(*found, expected->second, floorOf(graph().node(graph().value(same).producer)));
        if (error <= question_.tolerance)
          agreed_.insert(same);
        else
          differing_.emplace_back(same, error);
      }
      return {};
    });
  }

  // --- a part alone

  Result<Part> partFor(ValueId output, const std::set<ValueId>& cuts) const {
    Part part;
    part.output = output;
    part.nodes = nodesBetween(graph(), output, cuts);
    SS_ASSIGN(part.sub, extract(graph(), part.nodes, output, [&](const Value& value) -> Result<Tensor> {
                const auto it = subject_.start.tensors.find(value.name);
                if (it != subject_.start.tensors.end()) return it->second.clone();
                if (value.data) {
                  SS_ASSIGN(const Tensor contents, value.data.read());
                  return contents.clone();
                }
                return fail(ErrorCode::kNotFound, fmt::format("value '{}': no contents", value.name));
              }));
    for (const auto& [name, id] : part.sub.inputs) {
      SS_ASSIGN(part.batch.arrays[name], contentsOf(id));
    }
    part.batch.label = "a step's values";
    return part;
  }

  Result<Tensor> contentsOf(ValueId id) const {
    if (const auto it = values_.find(id); it != values_.end()) return it->second;
    const Value& value = graph().value(id);
    if (const auto it = subject_.start.tensors.find(value.name); it != subject_.start.tensors.end()) return it->second;
    if (value.data) return value.data.read();
    if (value.role == ValueRole::kState && value.type.shape)
      if (const auto dims = knownDims(*value.type.shape)) return Tensor(value.type.dtype, *dims);
    return fail(ErrorCode::kNotFound, fmt::format("value '{}': the step did not make it", value.name));
  }

  Result<std::shared_ptr<const ImportedModel>> modelOf(const Part& part) const {
    auto model = std::make_shared<ImportedModel>();
    model->registry = subject_.model->registry;
    model->path = "sub-graph";
    model->graph = part.sub.graph;
    model->file.opsets = part.sub.graph.opsets;
    model->inference = std::make_unique<Inference>(model->graph, model->registry->operators());
    SS_TRY(model->inference->run());
    model->graph.markImported();
    return model;
  }

  // The output of a model under these options.
  Result<Tensor> outputOf(const std::shared_ptr<const ImportedModel>& model, const Batch& batch,
                          const TrainOptions& options) const {
    SideSubject side;
    side.model = model;
    side.request.options = options;
    side.request.options.pad.clear();
    side.request.threads = threadsOf(options);
    side.request.forwardOnly = true;
    side.request.explain = [](Error error) { return error; };
    side.batch = batch;
    side.start.counters = subject_.start.counters;
    side.cancelled = subject_.cancelled;
    SS_ASSIGN(const auto step, SideStep::make(side));
    SS_TRY(step->run(batch));
    SS_ASSIGN(const Tensor output, step->stepper().executor().read(step->stepper().graph().outputs().front()));
    return output.clone();
  }

  Result<double> errorOfModel(const std::shared_ptr<const ImportedModel>& model, const Part& part) const {
    SS_ASSIGN(const Tensor expected, outputOf(model, part.batch, reference_));
    SS_ASSIGN(const Tensor found, outputOf(model, part.batch, options_));
    return errorOf(found, expected, floorOf(graph().node(graph().value(part.output).producer)));
  }

  // Nothing where it cannot be built alone; `why_` says it.
  Result<std::optional<Part>> shownBy(ValueId output, const std::set<ValueId>& cuts) {
    if (subject_.cancelled && subject_.cancelled->exchange(false)) return fail(ErrorCode::kCancelled, "bisect: cancelled");
    if (subject_.progress) subject_.progress("bisect: sub-graphs", tried_, 0);
    ++tried_;
    auto part = partFor(output, cuts);
    auto model = part ? modelOf(*part) : tl::make_unexpected(part.error());
    auto error = model ? errorOfModel(*model, *part) : tl::make_unexpected(model.error());
    if (!error) {
      if (error.error().code == ErrorCode::kCancelled) return tl::make_unexpected(error.error());
      why_ = error.error().message;
      return std::optional<Part>();
    }
    part->error = *error;
    if (*error > question_.tolerance) return std::optional<Part>(std::move(*part));
    return std::optional<Part>();
  }

  // --- smaller

  Result<Part> smaller(Part part, std::set<ValueId> cuts) {
    const auto improve = [&](ValueId output, std::set<ValueId> with) -> Result<bool> {
      if (nodesBetween(graph(), output, with).size() >= part.nodes.size() || tried_ >= kSubGraphsTried) return false;
      SS_ASSIGN(auto found, shownBy(output, with));
      if (!found) return false;
      part = std::move(*found);
      cuts = std::move(with);
      return true;
    };
    // An earlier end.
    for (const NodeId id : std::vector<NodeId>(part.nodes)) {
      bool found = false;
      for (const ValueId output : graph().node(id).outputs) {
        if (!output || output == part.output || !values_.contains(output) || found) continue;
        SS_ASSIGN(found, improve(output, cuts));
      }
      if (found) break;
    }
    // A later beginning: the last ones first, because they cut off most.
    std::vector<NodeId> nodes(part.nodes.rbegin(), part.nodes.rend());
    for (const NodeId id : nodes)
      for (const ValueId value : graph().node(id).outputs) {
        if (!value || value == part.output || !values_.contains(value) || cuts.contains(value)) continue;
        std::set<ValueId> more = cuts;
        more.insert(value);
        SS_TRY(improve(part.output, std::move(more)));
      }
    return part;
  }

  void describe(ValueId output, double error) {
    const Node& node = graph().node(graph().value(output).producer);
    report_.value = toUtf8(graph().value(output).name);
    report_.valueError = error;
    report_.label = toUtf8(node.label());
    report_.module = toUtf8(std::string(node.provenance.modulePath));
    report_.source = node.provenance.sourceFile.empty()
                         ? std::string()
                         : toUtf8(fmt::format("{}:{}", node.provenance.sourceFile.view(), node.provenance.sourceLine));
  }

  // What the part reads is computed in it.
  void withoutInputs(ValueId output, std::set<ValueId>& cuts) const {
    for (const NodeId id : nodesBetween(graph(), output, cuts))
      for (const ValueId input : graph().node(id).inputs) cuts.erase(input);
  }

  Status findPart() {
    describe(differing_.front().first, differing_.front().second);
    // A pass may have put nodes behind a value that agrees: then its producer belongs to the part, and that one's.
    for (int depth = 0; depth <= kDeepest; ++depth) {
      int places = 0;
      for (const auto& [value, error] : differing_) {
        if (places++ == (depth == 0 ? kPlacesTried : kPlacesTriedDeeper)) break;
        std::set<ValueId> cuts = agreed_;
        for (int k = 0; k < depth; ++k) withoutInputs(value, cuts);
        SS_ASSIGN(auto part, shownBy(value, cuts));
        if (!part) continue;
        describe(value, error);
        SS_ASSIGN(const Part least, smaller(std::move(*part), std::move(cuts)));
        report_.shown = true;
        report_.shownError = least.error;
        return write(least);
      }
    }
    report_.note = why_.empty() ? "no part of the graph shows the difference alone: it needs the rest of the step, such as "
                                  "memory that several values use"
                                : "no part of the graph shows the difference alone; of the last one tried: " + why_;
    return {};
  }

  Status write(const Part& part) {
    for (const NodeId id : part.nodes) report_.nodes.push_back(toUtf8(graph().node(id).label()));
    for (const auto& [name, value] : part.sub.inputs) report_.inputs.push_back(toUtf8(name));
    if (question_.file.empty()) return {};
    report_.file = question_.file;
    report_.data = question_.file;
    report_.data.replace_extension(".safetensors");
    SS_TRY(writeModel(part.sub.graph, report_.file, {}));
    std::map<std::string, TensorView> arrays;
    for (const auto& [name, tensor] : part.batch.arrays) arrays[name] = tensor.view();
    SS_TRY(writeSafetensors(report_.data, arrays));
    // What was written is what was judged.
    BuildLog log{Observer{}};
    SS_ASSIGN(const auto model, importModel(report_.file, {}, log, nullptr, subject_.model->registry));
    SS_ASSIGN(report_.shownError, errorOfModel(model, part));
    report_.shown = report_.shownError > question_.tolerance;
    if (!report_.shown) report_.note = "the file alone does not show the difference, although the graph in memory does";
    return {};
  }

  const BisectSubject& subject_;
  const BisectQuestion& question_;
  const TrainOptions &reference_, &options_;
  BisectReport& report_;
  std::unique_ptr<SideStep> good_, bad_;
  std::map<ValueId, Tensor> values_;  // of the reference
  std::set<ValueId> agreed_;
  std::vector<std::pair<ValueId, double>> differing_;
  int tried_ = 0;
  std::string why_;
};

}  // namespace

Status findFirstDifference(const BisectSubject& subject, const BisectQuestion& question, const TrainOptions& reference,
                           const TrainOptions& options, BisectReport& report) {
  return Search(subject, question, reference, options, report).run();
}

}  // namespace stepscope
