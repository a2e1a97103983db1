// What the laboratory (engine/lab) is asked by the session.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "engine/lab/capacity.h"
#include "engine/lab/trials.h"
#include "engine/plan/fits.h"
#include "engine/snapshot/utf8.h"
#include "engine/train/fit_dims.h"
#include "engine/train/running.h"

namespace stepscope {
namespace {

constexpr std::int64_t kMostExtent = 4096;
constexpr std::int64_t kTrialBatches = 4;

bool namesBatch(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name.find("batch") != std::string::npos;
}

// The symbol of the batch: named so, or the first one that stands on the first axis of an input. Empty: there is none.
std::string batchDimension(const Graph& graph, const std::vector<DimChoice>& dimensions) {
  for (const DimChoice& choice : dimensions)
    if (namesBatch(choice.name)) return choice.name;
  for (const ValueId id : graph.inputs())
    if (const auto& shape = graph.value(id).type.shape; shape && !shape->empty())
      if (const auto symbol = shape->front().asSymbol()) return *symbol;
  return {};
}

Result<std::string> dimensionNamed(const std::string& name, const std::string& batch,
                                   const std::vector<DimChoice>& dimensions) {
  std::string names;
  for (const DimChoice& choice : dimensions) {
    if (choice.name == name) return name;
    names += (names.empty() ? "" : ", ") + choice.name;
  }
  if (name == "batch" && !batch.empty()) return batch;
  return fail(ErrorCode::kNotFound,
              fmt::format("dimension '{}': no input has it; {}", name,
                          names.empty() ? "the extents of all inputs are numbers" : "expected one of " + names));
}

// What the symbols in the inputs' shapes stand for in a batch of the data.
std::map<std::string, std::int64_t> symbolsIn(const Graph& graph, const Batch& batch) {
  std::map<std::string, std::int64_t> extents;
  for (const ValueId id : graph.inputs()) {
    const Value& input = graph.value(id);
    const auto array = batch.arrays.find(input.name);
    if (array == batch.arrays.end() || !input.type.shape) continue;
    const Dims& dims = array->second.dims();
    for (std::size_t axis = 0; axis < std::min(dims.size(), input.type.shape->size()); ++axis)
      if (const auto symbol = (*input.type.shape)[axis].asSymbol()) extents.emplace(*symbol, dims[axis]);
  }
  return extents;
}

}  // namespace

Result<snapshot::CapacityReport> Session::capacity(const snapshot::GetCapacity& asked) {
  snapshot::GetCapacity question = asked;
  if (question.least() == 0) question.set_least(1);
  if (question.most() == 0) question.set_most(std::max(question.least(), kMostExtent));
  if (question.least() < 1 || question.most() < question.least())
    return invalid(fmt::format("dimension '{}': extents {} to {}; expected at least one from 1 on", question.dimension(),
                               question.least(), question.most()));
  if (question.memory_bytes() <= 0) question.set_memory_bytes(machineMemoryBytes());
  CapacitySubject subject;
  subject.model = model_;
  subject.request = buildRequest(options_);
  subject.batchDimension = batchDimension(model_->graph, dimensions());
  if (!question.dimension().empty()) {
    SS_ASSIGN(subject.dimension, dimensionNamed(question.dimension(), subject.batchDimension, dimensions()));
  }
  std::optional<std::map<std::string, std::int64_t>> ofData;  // extents of its first batch
  subject.batchOf = [&ofData, dimension = subject.dimension, this](const Graph& graph,
                                                                   std::int64_t extent) -> Result<Batch> {
    TrainOptions options = options_;
    if (!options.data.empty() && !ofData) {
      SS_ASSIGN(const auto data, openData(graph, options, nullptr));
      SS_ASSIGN(const Batch first, data->batch(context_.state.counters.step));
      if (dimension.empty()) return first;
      ofData = symbolsIn(model_->graph, first);
    }
    if (ofData) options.dims.insert(ofData->begin(), ofData->end());
    options.data.clear();
    if (!dimension.empty()) options.dims[dimension] = extent;
    return emptyBatch(graph, options, fitDims(model_->graph, options, registry().operators()));
  };
  subject.peak = &cpu::machinePeak(subject.request.threads);
  subject.cancelled = &context_.cancelled;
  subject.progress = context_.log.observer().progress;
  return planCapacity(std::move(subject), question);
}

Result<snapshot::TrialsReport> Session::trials(const snapshot::GetTrials& question,
                                               std::function<void(const snapshot::Trial&)> tried) {
  if (!running_ || !data_) return invalid("trials: nothing was built; build first");
  if (step_->request.forwardOnly)
    return invalid("trials: the model was built without a backward phase; whole steps are compared");
  TrialSubject subject;
  subject.model = model_;
  subject.request = buildRequest(options_);
  const auto take = [](DataSource& data, std::int64_t step, std::vector<Batch> batches) -> Result<std::vector<Batch>> {
    for (std::int64_t k = static_cast<std::int64_t>(batches.size()); k < kTrialBatches; ++k) {
      SS_ASSIGN(Batch batch, data.batch(step + k));
      if (batches.empty() || fits(signatureOf(batches.front()), batch)) batches.push_back(std::move(batch));
    }
    return batches;
  };
  SS_ASSIGN(subject.batches,
            take(*data_, nextStep(), inStep() ? std::vector<Batch>{stepper().batch()} : std::vector<Batch>()));
  if (options_.data.empty()) {
    subject.batchDimension = batchDimension(model_->graph, dimensions());
    const auto symbol = symbolsIn(model_->graph, subject.batches.front());
    if (const auto it = symbol.find(subject.batchDimension); it != symbol.end())
      subject.batch = it->second;
    else
      subject.batchDimension.clear();
  }
  subject.batchesUnder = [this, &take](const Graph& graph, const TrainOptions& options) -> Result<std::vector<Batch>> {
    SS_ASSIGN(const auto data, openData(graph, options, nullptr, fitDims(model_->graph, options, registry().operators())));
    return take(*data, nextStep(), {});
  };
  subject.start = startOfStep();
  subject.cores = threadsOf(TrainOptions{});
  subject.roofs = true;
  subject.cancelled = &context_.cancelled;
  subject.progress = context_.log.observer().progress;
  subject.tried = std::move(tried);
  return runTrials(std::move(subject), question);
}

StateSnapshot Session::startOfStep() const {
  StateSnapshot start = context_.state.copy();
  for (std::size_t i = 0; i < context_.state.keptCount(); ++i)  // what the begun step wrote over
    start.tensors[context_.state.kept(i).first] = context_.state.kept(i).second;
  return start;
}

}  // namespace stepscope
