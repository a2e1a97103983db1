#include "engine/train/model_function.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "engine/train/data.h"

namespace stepscope {
namespace {

constexpr std::size_t kPlansKept = 16;

}  // namespace

ModelCall::ModelCall(StepContext& context, std::shared_ptr<FunctionPlans> plans, std::unique_ptr<Stepper> stepper,
                     std::uint64_t seed, PassWatcher* watcher)
    : context_(context), plans_(std::move(plans)), stepper_(std::move(stepper)), seed_(seed), watcher_(watcher) {}

ModelCall::~ModelCall() { plans_->idle.push_back(std::move(stepper_)); }

const OuterStep* ModelCall::outer() const {
  const auto& outer = stepper_->step().outer;
  return outer ? &*outer : nullptr;
}

Executor::RunOptions ModelCall::runOptions() const {
  Executor::RunOptions run = stepper_->runOptions();
  run.key.step = seed_;
  run.update = true;
  run.cancel = &context_.cancelled;
  return run;
}

// The first instruction that reads a fed gradient: where the backward pass begins.
int ModelCall::firstSeedReader() const {
  const ExecutionPlan& plan = stepper_->plan();
  const auto isSeed = [&](int buffer) {
    if (buffer < 0) return false;
    const ValueId value = plan.buffers[static_cast<std::size_t>(plan.root(buffer))].value;
    return std::ranges::any_of(outer()->seeds, [&](const OuterStep::Seed& seed) { return seed.gradient == value; });
  };
  for (int i = 0; i < stepper_->count(); ++i)
    if (std::ranges::any_of(plan.instructions[static_cast<std::size_t>(i)].inputs, isSeed)) return i;
  return stepper_->count();
}

Status ModelCall::run(int begin, int end) {
  Executor::RunOptions run = runOptions();
  const auto ran = [&]() -> Status {
    SS_ASSIGN(const int at, stepper_->executor().run(begin, end, run));
    SS_CHECK(at == end);
    return {};
  };
  if (!watcher_ || begin == end || !watcher_->listens()) return ran();
  static std::atomic<std::uint64_t> calls = 0;
  if (number_ == 0) number_ = ++calls;
  std::vector<Span> spans;
  const WatchedPass pass{plans_, stepper_.get(), &spans, number_, begin, end, end == stepper_->count()};
  spans.reserve(static_cast<std::size_t>(end - begin));
  run.spans = &spans;
  run.before = [this](int instruction) {
    watcher_->before(instruction);
    return true;
  };
  run.after = [this](int instruction) -> Status {
    watcher_->after(instruction);
    return {};
  };
  watcher_->begins(pass);
  const Status status = ran();
  watcher_->ends(pass, !status);
  return status;
}

Status ModelCall::forward(const Batch& batch) {
  SS_TRY(stepper_->feed(batch));
  SS_TRY(run(0, outer() ? firstSeedReader() : stepper_->count()));
  return outer() ? writeUpdates() : Status{};
}

bool ModelCall::isReadBackward(const std::string& state) const {
  const ExecutionPlan& plan = stepper_->plan();
  const ValueId value = stepper_->graph().findValue(state);
  const auto at = static_cast<std::size_t>(value.index);
  if (!value || at >= plan.bufferOfValue.size() || plan.bufferOfValue[at] < 0) return false;
  const int memory = plan.root(plan.bufferOfValue[at]);
  for (int i = firstSeedReader(); i < stepper_->count(); ++i)
    for (const int input : plan.instructions[static_cast<std::size_t>(i)].inputs)
      if (input >= 0 && plan.root(input) == memory) return true;
  return false;
}

Status ModelCall::writeUpdates() {
  const auto& updates = outer()->updates;
  std::vector<Tensor> nexts;  // all before any is written: the next contents of a state may be what another one holds
  for (std::size_t u = 0; u < updates.size(); ++u) {
    const OuterStep::Update& update = updates[u];
    const double factor = stepper_->variant().sampleFactors[u];
    SS_ASSIGN(Tensor next, stepper_->executor().read(update.next));
    const Tensor old = context_.state.read(update.state);
    if (isReadBackward(update.state)) before_[update.state] = old.clone();
    for (const auto& [name, id] : outer()->outputs)
      if (const auto output = stepper_->executor().read(id); output && old.bytes() > 0 && output->data() == old.data())
        outputs_[name] = output->clone();
    if (factor == 1) {
      nexts.push_back(updates.size() > 1 ? next.clone() : std::move(next));
      continue;
    }
    Tensor joined(next.dtype(), next.dims());
    for (std::int64_t i = 0; i < next.elements(); ++i)
      storeElement(
          joined.view(), i,
          factor * elementAsDouble(next.view(), i) + (1 - factor) * update.momentum * elementAsDouble(old.view(), i));
    nexts.push_back(std::move(joined));
  }
  for (std::size_t u = 0; u < updates.size(); ++u) context_.state.write(updates[u].state, nexts[u].view());
  return {};
}

Result<Tensor> ModelCall::output(const std::string& name) const {
  const Graph& graph = stepper_->graph();
  if (const OuterStep* step = outer()) {
    if (const auto kept = outputs_.find(name); kept != outputs_.end()) return kept->second;
    for (const auto& [known, id] : step->outputs)
      if (known == name) return stepper_->executor().read(id);
  } else {
    for (const ValueId id : graph.outputs())
      if (graph.value(id).name == name) return stepper_->executor().read(id);
  }
  return fail(ErrorCode::kNotFound, fmt::format("output '{}': the model has none of this name", name));
}

Status ModelCall::feed(const OuterStep::Seed& seed, const Tensor& gradient) {
  if (std::ranges::find(outer()->gradients, seed.gradient, &OuterStep::Gradient::value) != outer()->gradients.end()) {
    const ValueType& type = stepper_->graph().value(seed.gradient).type;
    if (gradient.dtype() != type.dtype || gradient.dims() != knownDims(*type.shape))
      return invalid(fmt::format("gradient of output '{}': found {}{}; expected {}", seed.output,
                                 dtypeName(gradient.dtype()), dimsText(gradient.dims()), type.text()));
    handedOn_[seed.gradient] = gradient.clone();
  }
  return stepper_->executor().setInput(seed.gradient, gradient.view());
}

Status ModelCall::backward(const std::map<std::string, Tensor>& gradients) {
  const OuterStep* step = outer();
  if (!step) return invalid("backward: this forward pass was run without one; expected outputs that take a gradient");
  if (wentBack_)
    return invalid("backward: it ran already, and its activations were given up on the way; expected a forward pass before");
  for (const auto& [name, gradient] : gradients) {
    const auto seed = std::ranges::find(step->seeds, name, &OuterStep::Seed::output);
    if (seed == step->seeds.end())
      return fail(ErrorCode::kNotFound,
                  fmt::format("gradient of output '{}': none was asked for when the function was made", name));
    SS_TRY(feed(*seed, gradient));
  }
  for (const OuterStep::Seed& seed : step->seeds) {
    if (gradients.contains(seed.output)) continue;
    const ValueType& type = stepper_->graph().value(seed.gradient).type;
    SS_TRY(feed(seed, Tensor(type.dtype, *knownDims(*type.shape))));
  }
  wentBack_ = true;
  // Several forward passes may have changed the state since; the backward pass sees what its own one read.
  std::map<std::string, Tensor> now;
  for (const auto& [state, contents] : before_) {
    now[state] = context_.state.read(state).clone();
    context_.state.write(state, contents.view());
  }
  const Status ran = run(firstSeedReader(), stepper_->count());
  for (const auto& [state, contents] : now) context_.state.write(state, contents.view());
  return ran;
}

// No state, constant or input, and neither an output nor the gradient of something else too.
bool ModelCall::isAlone(ValueId gradient) const {
  const ExecutionPlan& plan = stepper_->plan();
  const auto rootOf = [&plan](ValueId id) {
    const auto at = static_cast<std::size_t>(id.index);
    const int buffer = id && at < plan.bufferOfValue.size() ? plan.bufferOfValue[at] : -1;
    return buffer < 0 ? -1 : plan.root(buffer);
  };
  const int root = rootOf(gradient);
  if (root < 0) return false;
  const Buffer& memory = plan.buffers[static_cast<std::size_t>(root)];
  if (memory.home != Home::kArena || memory.space != Space::kHost) return false;
  return std::ranges::count_if(outer()->gradients, [&](const auto& g) { return rootOf(g.value) == root; }) == 1 &&
         std::ranges::none_of(outer()->outputs, [&](const auto& output) { return rootOf(output.second) == root; });
}

Result<std::optional<CallGradient>> ModelCall::gradient(const std::string& name) const {
  const OuterStep* step = outer();
  if (!step || !wentBack_)
    return fail(ErrorCode::kNotFound, fmt::format("gradient of '{}': no backward pass ran; expected one before", name));
  const auto found = std::ranges::find(step->gradients, name, &OuterStep::Gradient::name);
  if (found == step->gradients.end())
    return fail(ErrorCode::kNotFound, fmt::format("gradient of '{}': neither a trained parameter nor a wanted input", name));
  if (!found->value) return std::optional<CallGradient>();
  if (const auto fed = handedOn_.find(found->value); fed != handedOn_.end()) return CallGradient{fed->second};
  SS_ASSIGN(Tensor contents, stepper_->executor().read(found->value));
  return CallGradient{std::move(contents), isAlone(found->value)};
}

ModelFunction::ModelFunction(StepContext& context, std::shared_ptr<const ImportedModel> model, BuildRequest request,
                             FunctionRequest of)
    : context_(context), model_(std::move(model)), request_(std::move(request)), of_(std::move(of)) {
  request_.keep.clear();
  request_.pinned.clear();
  request_.ranks = 1;
  request_.forwardOnly = of_.outputs.empty();
  if (!request_.forwardOnly) request_.outer = OuterRequest{of_.outputs, of_.inputs};
}

Result<std::shared_ptr<FunctionPlans>> ModelFunction::plansFor(const Batch& batch) {
  for (auto known = plans_.begin(); known != plans_.end(); ++known)
    if (fits((*known)->variant->signature, batch)) {
      std::rotate(known, known + 1, plans_.end());
      return plans_.back();
    }
  const Builder builder(model_, context_.log, Cancel(&context_.cancelled));
  context_.log.beginBuild();
  if (!step_) {
    BuildRequest request = request_;
    request.firstBatch = [&batch](const Graph&, std::vector<std::string>*) -> Result<Batch> { return batch; };
    std::vector<Stage> stages;
    SS_ASSIGN(step_, builder.build(std::move(request), stages));
  }
  auto plans = std::make_shared<FunctionPlans>();
  std::vector<Stage> bound;
  const Signature signature = signatureOf(batch);
  SS_ASSIGN(plans->variant, builder.specialise(step_, signature, "a call: " + signature.text(), bound));
  plans_.push_back(plans);
  if (plans_.size() > kPlansKept) plans_.erase(plans_.begin());  // calls that are open hold theirs
  return plans;
}

Result<std::unique_ptr<ModelCall>> ModelFunction::forward(const std::map<std::string, Tensor>& arrays, std::uint64_t seed) {
  SS_ASSIGN(const Batch batch, batchOf(model_->graph, "forward", arrays));
  SS_ASSIGN(const auto plans, plansFor(batch));
  std::unique_ptr<Stepper> stepper;
  if (plans->idle.empty()) {
    SS_ASSIGN(stepper, Stepper::bind(plans->variant, context_, Cancel(&context_.cancelled)));
    ++plans->made;
  } else {
    stepper = std::move(plans->idle.back());
    plans->idle.pop_back();
  }
  auto call = std::make_unique<ModelCall>(context_, plans, std::move(stepper), seed, watcher_);
  SS_TRY(call->forward(batch));
  return call;
}

}  // namespace stepscope
