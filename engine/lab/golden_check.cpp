#include "engine/lab/golden_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/lab/golden_causes.h"
#include "engine/snapshot/number_rule.h"

namespace stepscope {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// Dropouts that draw, and other nodes that do.
struct Draws {
  std::vector<NodeId> dropouts, others;
};

Draws drawsOf(const ImportedModel& model) {
  Draws draws;
  const OpRegistry& ops = model.registry->operators().ops;
  for (const NodeId id : model.graph.order()) {
    const Node& node = model.graph.node(id);
    const OpDef* op = ops.find(node);
    if (op == nullptr || !op->random) continue;
    if (node.op != "Dropout" || !node.domain.empty()) {
      draws.others.push_back(id);
      continue;
    }
    const Tensor* training = node.input(2) ? model.inference->constant(node.input(2)) : nullptr;
    const Tensor* ratio = node.input(1) ? model.inference->shapeConstant(node.input(1)) : nullptr;
    const bool off = !node.input(2) || (training && elementAsInt(training->view(), 0) == 0) ||
                     (ratio && elementAsDouble(ratio->view(), 0) == 0);
    if (!off) draws.dropouts.push_back(id);
  }
  return draws;
}

// The same model with these dropouts in test mode.
std::shared_ptr<const ImportedModel> withoutDropout(const ImportedModel& model, const std::vector<NodeId>& dropouts) {
  auto quiet = std::make_shared<ImportedModel>();
  quiet->registry = model.registry;
  quiet->path = model.path;
  quiet->load = model.load;
  quiet->file = model.file;
  quiet->graph = model.graph;
  quiet->stages = model.stages;
  quiet->inference = std::make_unique<Inference>(*model.inference);
  quiet->inference->rebind(quiet->graph);
  for (const NodeId id : dropouts) quiet->graph.setInput(id, 2, {});
  return quiet;
}

// What is compared is the model, under the passes of the run: in float32, one micro step, nothing updated.
Status makeQuiet(TrainOptions& options) {
  for (const char* name : {"precision", "precision.force"})
    SS_TRY(applySetting(options, name, std::string_view(name) == "precision" ? kGoldenPrecision : "", "verify"));
  options.lossScale = "off";
  options.masterWeights = "auto";
  options.optimizer = "sgd";
  options.lr = options.momentum = options.clipGradNorm = 0;
  options.weightDecay = 0;
  options.nesterov = false;
  options.groups.clear();
  options.lrSchedule = "constant";
  options.warmupSteps = 0;
  options.accumulate = 1;
  options.record = "off";
  options.roofline = false;
  return {};
}

// Where the first node that reads a value stands.
void place(const Graph& graph, const UseTable& uses, std::string_view name, GoldenRow& row) {
  const ValueId id = graph.findValue(name);
  if (!id) return;
  for (const Use& use : uses.of(id)) {
    const Provenance& from = graph.node(use.node).provenance;
    if (row.module.empty()) row.module = from.modulePath;
    if (row.source.empty() && !from.sourceFile.empty())
      row.source =
          fmt::format("{}:{}{}{}", from.sourceFile, from.sourceLine, from.sourceCode.empty() ? "" : " ", from.sourceCode);
  }
}

class Check {
 public:
  Check(SideSubject subject, const Golden& golden) : subject_(std::move(subject)), golden_(golden) {}

  Result<GoldenReport> run(const std::vector<Batch>& more) {
    const TrainOptions& asked = subject_.request.options;
    if (asked.precision != kGoldenPrecision)
      report_.notPrecision = asked.precision;
    else if (!asked.precisionForce.empty())
      report_.notPrecision = "precision.force";
    SS_TRY(makeQuiet(subject_.request.options));
    if (!judgeDraws()) return std::move(report_);
    const std::shared_ptr<const ImportedModel> model = subject_.model;
    uses_ = model->graph.uses();
    for (const auto& [module, output] : golden_.outputs)
      if (const ValueId id = outputOf(module)) subject_.request.keep.push_back(model->graph.value(id).name);
    SS_ASSIGN(side_, SideStep::make(subject_));
    SS_TRY(side_->run(subject_.batch));
    for (const auto& [name, gradient] : golden_.gradients) largest_ = std::max(largest_, largestMagnitude(gradient.view()));
    compareLoss(0, side_->loss());
    SS_TRY(compareGradients());
    compareStatistics(golden_.statistics, "state", "");
    compareOutputs();
    for (std::size_t i = 0; i < more.size() && i + 1 < golden_.losses.size(); ++i) {
      SS_TRY(side_->run(more[i]));
      compareLoss(i + 1, side_->loss());
    }
    if (!golden_.later.empty() && !more.empty()) {
      SS_TRY(side_->run(subject_.batch));
      SS_TRY(side_->goOn(more.front()));
      compareStatistics(golden_.later, "state2", ", second batch");
    }
    const auto& arrays = subject_.batch.arrays;
    const std::int64_t rows = arrays.empty() || arrays.begin()->second.dims().empty() ? 0 : arrays.begin()->second.dims()[0];
    findCauses(model->graph, rows, report_);
    return std::move(report_);
  }

 private:
  const Graph& graph() const { return subject_.model->graph; }

  std::optional<double> toleranceOf(std::string_view kind, const std::string& name) const {
    const auto it = golden_.tolerances.find(fmt::format("{}/{}", kind, name));
    return it == golden_.tolerances.end() ? std::nullopt : std::optional(it->second);
  }

  // False: what was drawn decides the numbers, so nothing can be compared.
  bool judgeDraws() {
    const Draws draws = drawsOf(*subject_.model);
    const auto first = [&](const std::vector<NodeId>& nodes) {
      return nodes.empty() ? std::string() : graph().node(nodes.front()).label();
    };
    if (golden_.draws == GoldenDraws::kDrawn)
      report_.unchecked = "PyTorch drew random numbers that cannot be switched off";
    else if (!draws.others.empty())
      report_.unchecked = fmt::format("{} draws random numbers, which are others than PyTorch's", first(draws.others));
    else if (!draws.dropouts.empty() && golden_.draws == GoldenDraws::kUnknown)
      report_.unchecked = fmt::format(
          "{} draws random numbers, and the capture does not say that they were switched off; hint: capture the model again",
          first(draws.dropouts));
    if (!report_.unchecked.empty()) return false;
    if (!draws.dropouts.empty()) subject_.model = withoutDropout(*subject_.model, draws.dropouts);
    if (golden_.draws != GoldenDraws::kUnknown && (golden_.draws == GoldenDraws::kSwitchedOff || !draws.dropouts.empty())) {
      GoldenRow row;
      row.kind = GoldenRow::Kind::kDraws;
      row.name = "dropout";
      if (draws.dropouts.empty()) {
        row.verdict = GoldenVerdict::kDiffers;
        row.words = "PyTorch draws random numbers and the file draws none";
        row.cause = "dropout lost: the exporter left it out, or wrote it in test mode";
      } else if (golden_.draws == GoldenDraws::kNone) {
        row.verdict = GoldenVerdict::kDiffers;
        row.words = fmt::format("{} draws random numbers and PyTorch draws none", first(draws.dropouts));
        row.cause = "dropout active: the exporter wrote it in training mode";
      } else {
        row.words = "switched off for the comparison, here and in PyTorch";
      }
      report_.rows.push_back(std::move(row));
    }
    return true;
  }

  void compareLoss(std::size_t batch, double found) {
    if (batch >= golden_.losses.size()) return;
    const double expected = golden_.losses[batch];
    const Tensor a = Tensor::scalar(DType::kF64, found), b = Tensor::scalar(DType::kF64, expected);
    GoldenRow row = compareTensor(GoldenRow::Kind::kLoss, batch == 0 ? "loss" : fmt::format("loss of batch {}", batch),
                                  a.view(), b.view(), golden_.lossTolerance, std::max(1.0, std::abs(expected)));
    report_.rows.push_back(std::move(row));
  }

  void add(GoldenRow row) {
    place(graph(), uses_, row.name, row);
    report_.rows.push_back(std::move(row));
  }

  void addWords(GoldenRow::Kind kind, const std::string& name, const Dims& dims, double largest, GoldenVerdict verdict,
                std::string words) {
    GoldenRow row;
    row.kind = kind;
    row.name = name;
    row.dims = dims;
    row.elements = elementCount(dims);
    row.largest = largest;
    row.maxAbs = verdict == GoldenVerdict::kDiffers ? largest : 0;
    row.cosine = kNaN;
    row.verdict = verdict;
    row.words = std::move(words);
    add(std::move(row));
  }

  Status compareGradients() {
    using Kind = GoldenRow::Kind;
    if (golden_.gradients.empty()) return {};
    const SymbolicStep& step = side_->step();
    std::map<std::string, std::size_t> trained;
    for (std::size_t i = 0; i < step.trained.size(); ++i) trained.emplace(step.graph.value(step.trained[i]).name, i);
    std::map<std::string, std::string> reasons;  // of what is not trained
    for (const ParameterChoice& choice : step.parameters)
      if (!choice.trained) reasons[graph().value(choice.value).name] = choice.reason;
    for (const auto& [name, expected] : golden_.gradients) {
      const double largest = largestMagnitude(expected.view());
      const auto at = trained.find(name);
      if (at != trained.end()) {
        const ValueId id = step.optimizer.accumulated[at->second];
        Tensor found(expected.dtype(), expected.dims());  // zeros: the loss does not depend on it through what ran
        if (id) {
          SS_ASSIGN(const Tensor computed, side_->stepper().executor().read(id));
          found = computed.clone();
          for (std::int64_t i = 0; i < found.elements() && golden_.gradientFactor != 1; ++i)
            storeElement(found.view(), i, golden_.gradientFactor * elementAsDouble(found.view(), i));
        }
        if (found.dims() != expected.dims()) {
          addWords(Kind::kGradient, name, expected.dims(), largest, GoldenVerdict::kDiffers,
                   fmt::format("extents {} here and {} in PyTorch", dimsText(found.dims()), dimsText(expected.dims())));
          continue;
        }
        GoldenRow row =
            compareTensor(Kind::kGradient, name, found.view(), expected.view(), toleranceOf("grad", name), largest_);
        if (golden_.unused.contains(name) && row.verdict == GoldenVerdict::kDiffers)
          row.words = "PyTorch makes no gradient for it (None)";
        add(std::move(row));
        continue;
      }
      const auto reason = reasons.find(name);
      const bool chosen = reason != reasons.end() && (reason->second.starts_with("matched by --freeze") ||
                                                      reason->second.starts_with("not matched by --train"));
      if (chosen)
        addWords(Kind::kGradient, name, expected.dims(), largest, GoldenVerdict::kSkipped, "not trained: " + reason->second);
      else if (largest == 0)
        addWords(Kind::kGradient, name, expected.dims(), largest, GoldenVerdict::kAgrees,
                 "all zero in PyTorch, not trained here");
      else if (reason != reasons.end())
        addWords(Kind::kGradient, name, expected.dims(), largest, GoldenVerdict::kDiffers,
                 "a gradient in PyTorch, not trained here: " + reason->second);
      else
        addWords(Kind::kGradient, name, expected.dims(), largest, GoldenVerdict::kDiffers,
                 "a gradient in PyTorch, and no such parameter in the file");
    }
    for (const auto& [name, i] : trained) {
      if (golden_.gradients.contains(name)) continue;
      const ValueId id = step.optimizer.accumulated[i];
      double largest = 0;
      Dims dims;
      if (id) {
        SS_ASSIGN(const Tensor found, side_->stepper().executor().read(id));
        largest = largestMagnitude(found.view());
        dims = found.dims();
      }
      addWords(
          Kind::kGradient, name, dims, 0, GoldenVerdict::kDiffers,
          fmt::format("trained here (largest element of its gradient {:.3g}), and PyTorch has no gradient for it", largest));
      report_.rows.back().maxAbs = largest;
    }
    return {};
  }

  // What batches made of the buffers. `of`: the prefix of their tolerances; `when` is said behind their names.
  void compareStatistics(const std::map<std::string, Tensor>& statistics, const char* of, const char* when) {
    using Kind = GoldenRow::Kind;
    const Graph& ran = side_->stepper().graph();
    for (const auto& [name, expected] : statistics) {
      const double largest = largestMagnitude(expected.view());
      const ValueId id = graph().findValue(name);
      const InitialContents data = id ? graph().value(id).data : nullptr;
      const bool held = side_->state().contains(name);
      if (!held && !data) {
        addWords(Kind::kStatistic, name, expected.dims(), largest, GoldenVerdict::kDiffers,
                 "PyTorch's forward pass changes it, and it is not in the file");
        continue;
      }
      const auto read = held ? Result<Tensor>(side_->state().read(name)) : data.read();
      if (!read) {
        addWords(Kind::kStatistic, name, expected.dims(), largest, GoldenVerdict::kDiffers, read.error().message);
        continue;
      }
      const Tensor& found = *read;
      if (found.dims() != expected.dims()) {
        addWords(Kind::kStatistic, name, expected.dims(), largest, GoldenVerdict::kDiffers,
                 fmt::format("extents {} here and {} in PyTorch", dimsText(found.dims()), dimsText(expected.dims())));
        continue;
      }
      GoldenRow row = compareTensor(Kind::kStatistic, name, found.view(), expected.view(), toleranceOf(of, name), 0);
      const bool written = std::any_of(ran.stateUpdates.begin(), ran.stateUpdates.end(),
                                       [&](const StateUpdate& update) { return ran.value(update.state).name == name; });
      if (row.verdict == GoldenVerdict::kDiffers && !written) {
        row.words = "PyTorch's forward pass changes it, nothing here writes it";
        row.cause = "statistics frozen, or a buffer that forward() updates: the file reads it and does not write it";
      } else if (row.verdict == GoldenVerdict::kDiffers) {
        comparePopulation(name, found, expected, data, row);
      }
      add(std::move(row));
      report_.rows.back().name += when;
    }
  }

  // PyTorch keeps the sample variance of a batch, ONNX (BatchNormalization) the population's, n - 1 over n of it. What
  // they were before the batch is the file's, and then each its own.
  void comparePopulation(const std::string& name, const Tensor& found, const Tensor& golden, const InitialContents& initial,
                         GoldenRow& row) {
    const Graph& ran = side_->stepper().graph();
    if (!initial || initial.elements() != golden.elements()) return;
    const auto inFile = initial.read();
    if (!inFile) return;
    const auto first = populations_.find(name);
    const Tensor& oldPopulation = first == populations_.end() ? *inFile : first->second;
    const Tensor& oldGolden = first == populations_.end() ? *inFile : golden_.statistics.at(name);
    for (const StateUpdate& update : ran.stateUpdates) {
      const Value& next = ran.value(update.next);
      if (ran.value(update.state).name != name || !next.producer || next.outputIndex != 2) continue;
      const Node& node = ran.node(next.producer);
      if (node.attrs.integer("sample_variance", 0) != 0) return;
      const auto& shape = ran.value(node.input(0)).type.shape;
      const auto dims = shape ? knownDims(*shape) : std::nullopt;
      if (!node.op.ends_with("BatchNormalization") || !dims) return;
      const double momentum = node.attrs.real("momentum", 0.9F);
      const double n =
          static_cast<double>(elementCount(*dims)) / static_cast<double>(std::max<std::int64_t>(1, golden.elements()));
      if (n <= 1) return;
      const Tensor population = golden.clone();
      for (std::int64_t c = 0; c < golden.elements(); ++c) {
        const double ofBatch = elementAsDouble(golden.view(), c) - momentum * elementAsDouble(oldGolden.view(), c);
        storeElement(population.view(), c, momentum * elementAsDouble(oldPopulation.view(), c) + ofBatch * (n - 1) / n);
      }
      GoldenRow other = compareTensor(row.kind, name, found.view(), population.view(), row.tolerance, 0);
      if (other.verdict != GoldenVerdict::kAgrees) return;
      row = std::move(other);
      row.words = fmt::format("population variance, as ONNX says; PyTorch's is that of a sample of {:.0f}", n);
      if (first == populations_.end()) populations_[name] = population;
      return;
    }
  }

  ValueId outputOf(const std::string& module) const {
    ValueId output;
    for (const NodeId id : graph().order())
      if (const Node& node = graph().node(id); node.provenance.modulePath == module && node.output(0))
        output = node.output(0);
    return output;
  }

  void compareOutputs() {
    std::vector<std::pair<int, std::string>> differing;
    for (const auto& [module, expected] : golden_.outputs) {
      const ValueId id = outputOf(module);
      if (!id) continue;
      const ValueId here = side_->stepper().graph().findValue(graph().value(id).name);
      const auto found = here ? side_->stepper().executor().read(here) : Result<Tensor>(Tensor());
      if (!here || !found || found->dims() != expected.dims() || !isFloating(found->dtype())) continue;
      GoldenRow row = compareTensor(GoldenRow::Kind::kOutput, module, found->view(), expected.view(),
                                    toleranceOf("output", module), largestMagnitude(expected.view()));
      const Node& node = graph().node(graph().value(id).producer);
      row.module = module;
      if (!node.provenance.sourceFile.empty())
        row.source = fmt::format("{}:{} {}", node.provenance.sourceFile.view(), node.provenance.sourceLine,
                                 node.provenance.sourceCode.view());
      if (row.verdict == GoldenVerdict::kDiffers) {
        const auto at = std::find(graph().order().begin(), graph().order().end(), node.id) - graph().order().begin();
        differing.emplace_back(static_cast<int>(at), module);
      }
      report_.rows.push_back(std::move(row));
    }
    if (!differing.empty()) report_.firstOutput = std::min_element(differing.begin(), differing.end())->second;
  }

  SideSubject subject_;
  const Golden& golden_;
  std::unique_ptr<SideStep> side_;
  UseTable uses_;
  double largest_ = 0;                         // gradient of the model
  std::map<std::string, Tensor> populations_;  // PyTorch's variances after the first batch, as ONNX would have them
  GoldenReport report_;
};

}  // namespace

Result<GoldenReport> compareWithGolden(SideSubject subject, const std::vector<Batch>& more, const Golden& golden) {
  return Check(std::move(subject), golden).run(more);
}

}  // namespace stepscope
