#include "engine/train/trained_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "engine/train/session_alerts.h"

namespace stepscope {

namespace {

// What the update divides by was fed with the step.
Tensor withoutLossScale(Tensor gradient, const Stepper& stepper) {
  const ValueId unscale = stepper.step().optimizer.lossUnscale;
  const auto contents = unscale ? stepper.executor().read(unscale) : Result<Tensor>(Tensor());
  if (!unscale || !contents) return gradient;
  const double factor = elementAsDouble(contents->view(), 0);
  for (std::int64_t i = 0; i < gradient.elements(); ++i)
    storeElement(gradient.view(), i, elementAsDouble(gradient.view(), i) * factor);
  return gradient;
}

}  // namespace

Result<Tensor> TrainedState::gradient(const std::string& parameter) const {
  const SymbolicStep* step = plans_.step();
  if (!step) return invalid(fmt::format("gradient of '{}': nothing was built; build first", parameter));
  for (std::size_t i = 0; i < step->trained.size(); ++i) {
    if (step->graph.value(step->trained[i]).name != parameter) continue;
    const ValueId id = step->optimizer.averaged[i];
    if (!id) {
      // The loss does not depend on it through what ran: its gradient is zero.
      const Tensor& state = *context_.state.find(parameter);
      return Tensor(state.dtype(), state.dims());
    }
    const auto contents = plans_.stepper().executor().read(id);
    if (!step->request.keepGradients || !contents)
      return fail(ErrorCode::kNotFound,
                  fmt::format("gradient of '{}': not kept; ask for gradients before the build", parameter));
    // A gradient that the update reads in a low type is told in the type of the parameter, as PyTorch's .grad: the same
    // number.
    const Tensor* state = context_.state.find(parameter);
    if (state && state->dtype() == DType::kF32 && isLow(contents->dtype()))
      return withoutLossScale(convertTensor(contents->view(), DType::kF32), plans_.stepper());
    return withoutLossScale(contents->clone(), plans_.stepper());
  }
  return fail(ErrorCode::kNotFound, fmt::format("gradient of '{}': not a trained parameter", parameter));
}

std::map<std::string, TensorView> TrainedState::named(bool optimizer) const {
  std::map<std::string, TensorView> named;
  for (const ParameterChoice& parameter : plans_.parameters()) {
    const Value& value = plans_.valueOf(parameter);
    if (!isFloating(value.type.dtype)) continue;
    if (const auto whole = whole_.find(value.name); whole != whole_.end())
      named[value.name] = whole->second.view();
    else if (context_.state.contains(value.name))
      named[value.name] = context_.state.read(value.name).view();
    else if (const auto contents = value.data.inMemory())
      named[value.name] = contents->view();
    else if (auto again = value.data ? value.data.read() : Tensor())
      named[value.name] = (readAgain_[value.name] = std::move(*again)).view();
    else
      context_.log.warn("parameter_not_available", fmt::format("parameter '{}': {}", value.name, again.error().message));
  }
  if (optimizer)
    for (const auto& [name, tensor] : context_.state.tensors())
      if (tensor.dtype() != DType::kString && !context_.state.isLowCopy(name))
        named[name] = context_.state.read(name).view();
  return named;
}

bool TrainedState::keepsParts() const {
  return context_.ranks != nullptr && plans_.step() && !plans_.step()->optimizer.parts.empty();
}

bool TrainedState::isPart(const std::string& name) const {
  return keepsParts() && plans_.step()->optimizer.parts.contains(name);
}

Status TrainedState::bringTogether() {
  if (!keepsParts()) return {};
  for (const ParameterChoice& parameter : plans_.parameters()) {
    const std::string& name = plans_.valueOf(parameter).name;
    if (!isPart(name)) continue;
    TensorView whole{nullptr, context_.state.find(name)->dtype(), plans_.step()->optimizer.parts.at(name)};
    if (context_.ranks->rank() == 0) whole = (whole_[name] = Tensor(whole.dtype, whole.dims)).view();
    const CollectivePlace place{fmt::format("state '{}'", name), context_.state.counters.step};
    SS_TRY(context_.ranks->gatherToFirst(place, context_.state.read(name).view(), whole));
  }
  return {};
}

Status TrainedState::save(const std::filesystem::path& path) const {
  std::map<std::string, TensorView> named = this->named(true);
  if (!keepsParts()) return saveStateFile(path, named, context_.state.counters, properties_);
  const std::map<std::string, Dims>& parts = plans_.step()->optimizer.parts;
  const auto gather = [&](const std::string& name, const TensorView& whole) {
    const CollectivePlace place{fmt::format("state '{}'", name), context_.state.counters.step};
    return context_.ranks->gatherToFirst(place, context_.state.read(name).view(), whole);
  };
  for (const auto& [name, dims] : parts) named[name] = {nullptr, context_.state.find(name)->dtype(), dims};
  std::set<std::string> came;
  Tensor whole;
  Status written;
  if (context_.ranks->rank() == 0)
    written = saveStateFile(path, named, context_.state.counters, properties_,
                            [&](const std::string& name, const TensorView& tensor) -> Result<TensorView> {
                              whole = Tensor(tensor.dtype, tensor.dims);
                              came.insert(name);
                              SS_TRY(gather(name, whole.view()));
                              return whole.view();
                            });
  // The others send all of them, whatever becomes of the file.
  for (const auto& [name, dims] : parts) {
    if (came.contains(name)) continue;
    if (context_.ranks->rank() == 0) whole = Tensor(named[name].dtype, named[name].dims);
    SS_TRY(gather(name, context_.ranks->rank() == 0 ? whole.view() : named[name]));
  }
  return written;
}

Status TrainedState::write(const std::string& name, const TensorView& contents) {
  if (inStep()) return invalid(fmt::format("state '{}': a step is begun; expected a place between two steps", name));
  SS_TRY(obtainInitializer(name));
  const Tensor* present = context_.state.find(name);
  if (!present || present->dtype() == DType::kString || context_.state.isLowCopy(name))
    return fail(ErrorCode::kNotFound, fmt::format("state '{}': no parameter or optimizer state of this name", name));
  const bool converts = isFloating(present->dtype()) && isFloating(contents.dtype);
  if (present->dims() != contents.dims || (present->dtype() != contents.dtype && !converts))
    return invalid(fmt::format("state '{}': {}{}; expected {}{}", name, dtypeName(contents.dtype), dimsText(contents.dims),
                               dtypeName(present->dtype()), dimsText(present->dims())));
  if (present->dtype() == contents.dtype)
    context_.state.write(name, contents);
  else
    context_.state.write(name, convertTensor(contents, present->dtype()).view());
  ++context_.places;
  return {};
}

// What the model brings becomes state when a plan asks for it, or before the build when somebody writes or places it.
Status TrainedState::obtainInitializer(const std::string& name) {
  if (context_.state.contains(name)) return {};
  const Graph& imported = plans_.model()->graph;
  const ValueId id = imported.findValue(name);
  if (!id || imported.value(id).role != ValueRole::kInitializer) return {};
  SS_TRY(context_.state.obtain(imported.value(id)));
  return {};
}

Status TrainedState::place(std::map<std::string, Tensor> memory, bool take) {
  if (inStep()) return invalid("state: a step is begun; expected a place between two steps to share memory");
  for (const auto& [name, tensor] : memory) {
    SS_TRY(obtainInitializer(name));
    if (const Tensor* present = context_.state.find(name);
        !present || present->dtype() != tensor.dtype() || present->dims() != tensor.dims())
      return context_.state.place(name, tensor, take);  // which says what is wrong
  }
  for (auto& [name, tensor] : memory) SS_TRY(context_.state.place(name, std::move(tensor), take));
  ++context_.places;
  ring_.clear();
  return plans_.made() ? plans_.bindAgain() : Status{};
}

Status TrainedState::load(const std::filesystem::path& path, bool resume) {
  if (plans_.made()) plans_.stepper().abandon();
  SS_TRY(read(path, resume));
  context_.log.takeBackFrom(context_.state.counters.step);
  return {};
}

Status TrainedState::read(const std::filesystem::path& path, bool resume) {
  const Graph& named = plans_.step() ? plans_.step()->graph : plans_.model()->graph;
  StatePart part;
  if (context_.ranks && options_.rankShard != "off") part = {context_.ranks->rank(), context_.ranks->size()};
  SS_ASSIGN(loaded_, loadStateFile(path, resume, named, context_.state, part));
  if (resume && context_.ranks) context_.state.counters.entry += context_.ranks->rank();
  for (auto& [name, value] : loaded_->properties) properties_[name] = std::move(value);
  if (plans_.made()) tellWhatTheFileLacks();
  ring_.clear();
  ++context_.places;
  context_.watched.takeBackFrom(0);
  numbers_.restart();
  context_.resumed = true;
  return {};
}

// Once: a build that follows goes on with the state that there is.
Result<std::function<void()>> TrainedState::beginWhereAsked(bool resume) {
  if (options_.startState == begunWith_) return std::function<void()>();
  std::string wanted = options_.startState;
  if (wanted.empty()) {
    std::swap(begunWith_, wanted);
    return [this, before = std::move(wanted)] { begunWith_ = before; };
  }
  if (plans_.made()) plans_.stepper().giveWay(false);
  struct Before {
    State::Held held;
    StateSnapshot contents;
    StateRing ring;
    PropertyBag properties;
    std::optional<StateNames> loaded;
    std::string begunWith;
    bool resumed;
  };
  const auto before = std::make_shared<Before>(Before{context_.state.hold(), context_.state.copy(), ring_, properties_,
                                                      loaded_, std::exchange(begunWith_, wanted), context_.resumed});
  const auto putBack = [this, before] {
    context_.state.putBack(before->held);
    context_.state.restore(before->contents);
    context_.state.counters = before->contents.counters;
    ring_ = std::move(before->ring);
    properties_ = std::move(before->properties);
    loaded_ = std::move(before->loaded);
    begunWith_ = before->begunWith;
    context_.resumed = before->resumed;
  };
  if (Status loaded = read(wanted, resume); !loaded) {
    putBack();
    if (plans_.made()) SS_TRY(plans_.stepper().comeBack());
    Error why = loaded.error();
    why.option = "start-state";
    return tl::make_unexpected(std::move(why));
  }
  return putBack;
}

void TrainedState::tellWhatTheFileLacks() { stepscope::tellWhatTheFileLacks(loaded_, *plans_.step(), context_.log); }

}  // namespace stepscope
