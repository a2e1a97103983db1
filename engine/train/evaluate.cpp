#include "engine/train/evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "engine/build/attach_loss.h"
#include "engine/build/evaluation_graph.h"

namespace stepscope {
namespace {

constexpr std::int64_t kSyntheticBatches = 8;

// The imported model with its loss as the first output, as it is evaluated.
struct EvaluationModel {
  std::shared_ptr<ImportedModel> model;
  ValueId loss;
  std::optional<ScoredLabels> scored;
};

Result<EvaluationModel> evaluationModel(const ImportedModel& imported, const TrainOptions& options) {
  EvaluationModel made;
  made.model = std::make_shared<ImportedModel>();
  ImportedModel& model = *made.model;
  model.registry = imported.registry;
  model.path = imported.path;
  model.load = imported.load;
  model.file = imported.file;
  model.graph = imported.graph;
  model.inference = std::make_unique<Inference>(*imported.inference);
  model.inference->rebind(model.graph);
  model.stages = imported.stages;
  Graph& graph = model.graph;
  graph.setPass("evaluate");
  SS_ASSIGN(const LossChoice choice, attachLoss(graph, *model.inference, options, model.registry));
  made.loss = choice.loss;
  made.scored = scoredLabels(graph, made.loss);
  std::vector<ValueId> outputs{made.loss};
  if (made.scored)
    for (const ValueId id : {made.scored->scores, made.scored->labels})
      if (graph.value(id).role == ValueRole::kNodeOutput) outputs.push_back(id);
  graph.mutableOutputs() = outputs;
  graph.stateUpdates.clear();
  graph.removeDeadNodes();
  SS_TRY(evaluateGraph(graph, "evaluate"));
  graph.removeDeadNodes();
  return made;
}

// Labels that count, and those whose class has the largest score, the first of equal ones.
void count(const TensorView& scores, const TensorView& labels, const std::optional<std::int64_t>& ignored,
           EvaluatedBatch& batch) {
  if (scores.dims.size() < 2) return;
  const std::int64_t rows = scores.dims[0], classes = scores.dims[1],
                     inner = rows * classes == 0 ? 0 : scores.elements() / rows / classes;
  if (labels.elements() != rows * inner) return;
  const bool plain = scores.dtype == DType::kF32;
  const auto scoreAt = [&](std::int64_t i) {
    return plain ? static_cast<double>(scores.as<const float>()[static_cast<std::size_t>(i)]) : elementAsDouble(scores, i);
  };
  for (std::int64_t k = 0; k < rows * inner; ++k) {
    const std::int64_t label = elementAsInt(labels, k);
    if (ignored && label == *ignored) continue;
    ++batch.labels;
    const std::int64_t first = k / inner * classes * inner + k % inner;
    std::int64_t best = 0;
    for (std::int64_t c = 1; c < classes; ++c)
      if (scoreAt(first + c * inner) > scoreAt(first + best * inner)) best = c;
    batch.correct += best == label;
  }
}

}  // namespace

Result<Evaluation> Laboratory::evaluate(std::int64_t batches, const std::function<void(const EvaluatedBatch&)>& each,
                                        const BatchFeed::Open& from) {
  if (plans_.made() && plans_.stepper().inStep())
    return invalid("evaluate: a step is begun; expected a place between two steps: finish it or go to its start");
  if (batches < 0) return invalidOption("batches", fmt::format("found {}; expected 1 or more, or 0 for all", batches));
  BuildRequest request = request_();
  const TrainOptions options = request.options;
  SS_TRY(checkOptions(options));
  SS_ASSIGN(const EvaluationModel evaluated, evaluationModel(model(), options));
  context_.log.beginBuild();
  request.keep.clear();
  request.pinned.clear();
  request.forwardOnly = true;
  std::unique_ptr<DataSource> other;
  if (from)
    request.firstBatch = [&](const Graph& graph, std::vector<std::string>*) -> Result<Batch> {
      SS_ASSIGN(other, from(graph));
      return other->batch(0);
    };
  const Cancel cancel(&context_.cancelled);
  const Builder builder(evaluated.model, context_.log, cancel);
  std::vector<Stage> stages;
  SS_ASSIGN(const auto step, builder.build(std::move(request), stages));
  Evaluation total;
  total.synthetic = options.data.empty() && !from;
  total.crossEntropy = evaluated.scored.has_value();
  total.weighted = total.crossEntropy && evaluated.scored->mean;
  DataSource& source = other ? *other : feed_.source();
  if (batches == 0) batches = source.entries() > 0 ? source.entries() : kSyntheticBatches;
  if (source.entries() > 0 && batches > source.entries())
    return invalidOption("batches", fmt::format("found {}; expected at most {}, the entries of the data: none counts twice",
                                                batches, source.entries()));
  std::vector<std::unique_ptr<Stepper>> plans;
  double sum = 0, weights = 0;
  for (std::int64_t index = 0; index < batches; ++index) {
    SS_ASSIGN(const Batch batch, source.batch(index));
    auto plan = std::ranges::find_if(plans, [&](const auto& p) { return fits(p->variant().signature, batch); });
    if (plan == plans.end()) {
      std::vector<Stage> bound;
      SS_ASSIGN(auto variant, builder.specialise(step, signatureOf(batch), "evaluation", bound));
      SS_ASSIGN(auto bind, Stepper::bind(std::move(variant), context_, cancel));
      plan = plans.insert(plans.end(), std::move(bind));
    }
    Stepper& stepper = **plan;
    const std::int64_t begin = monotonicNs();
    SS_TRY(stepper.feed(batch));
    Executor::RunOptions run = stepper.runOptions();
    run.cancel = &context_.cancelled;
    SS_TRY(stepper.executor().run(0, stepper.count(), run));
    total.ns += monotonicNs() - begin;
    EvaluatedBatch one{index, batch.label};
    SS_ASSIGN(const Tensor loss, stepper.executor().read(evaluated.loss));
    one.loss = elementAsDouble(loss.view(), 0);
    if (evaluated.scored) {
      SS_ASSIGN(const Tensor scores, stepper.executor().read(evaluated.scored->scores));
      SS_ASSIGN(const Tensor labels, stepper.executor().read(evaluated.scored->labels));
      count(scores.view(), labels.view(), evaluated.scored->ignored, one);
    }
    const double weight = total.weighted ? static_cast<double>(one.labels) : 1;
    if (weight > 0) sum += weight * one.loss;  // the loss of a batch without labels is no number
    weights += weight;
    total.labels += one.labels;
    total.correct += one.correct;
    ++total.batches;
    if (each) each(one);
  }
  total.plans = std::ssize(plans);
  total.loss = weights > 0 ? sum / weights : std::numeric_limits<double>::quiet_NaN();
  return total;
}

}  // namespace stepscope
