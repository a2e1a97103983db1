// Opening, building, and what is shown of it.
#include "engine/train/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/build/builder.h"
#include "engine/build/round.h"
#include "engine/build/schedule.h"
#include "engine/build/snapshots.h"
#include "engine/lab/option_proof.h"
#include "engine/profile/roofline.h"
#include "engine/train/fit_dims.h"
#include "engine/train/model_function.h"
#include "engine/train/session_alerts.h"

namespace stepscope {

Session::Session(Observer observer)
    : context_(std::move(observer)),
      plans_(context_),
      numbers_(context_),
      lab_(context_, plans_, feed_,
           [this] {
             BuildRequest alone = buildRequest(options_);
             alone.aloneOf = std::exchange(alone.ranks, 1);  // what is compared sends nothing
             return alone;
           }),
      trained_(context_, plans_, numbers_, ring_, options_) {}

Result<std::unique_ptr<Session>> Session::open(const std::filesystem::path& path, const LoadOptions& load, Observer observer,
                                               std::vector<Problem>* problems, std::shared_ptr<const Registry> registry) {
  std::unique_ptr<Session> session(new Session(std::move(observer)));
  SS_ASSIGN(auto model, importModel(path, load, session->context_.log, problems, std::move(registry)));
  session->plans_.open(std::move(model));
  return session;
}

BuildRequest Session::buildRequest(const TrainOptions& options) {
  BuildRequest request;
  request.options = options;
  request.keep = asked_.keep;
  request.pinned = asked_.pinned;
  request.from = context_.state.counters;
  request.keepGradients = asked_.keepGradients;
  request.threads = threadsOf(options);
  if (context_.ranks) {
    request.ranks = context_.ranks->size();
    request.rank = context_.ranks->rank();
  }
  request.explain = [this](Error error) {
    return withDimHint(std::move(error), imported(), options_, registry().operators());
  };
  request.firstBatch = [this](const Graph& graph, std::vector<std::string>* notes) -> Result<Batch> {
    SS_TRY(feed_.open(*plans_.model(), graph, options_, notes));
    return feed_.batch(counters().entry);
  };
  return request;
}

Status Session::feedWith(BatchFeed::Open open) {
  if (built()) {
    SS_ASSIGN(auto data, open(plans_.step()->graph));
    feed_.take(std::move(data));
  } else {
    feed_.close();
  }
  feed_.openWith(std::move(open));
  return {};
}

Status Session::build() {
  SS_ASSIGN(auto changed, plans_.underChangedPlugins());
  const auto old = changed ? plans_.exchange(std::move(changed)) : nullptr;
  // What a cancelled build puts back.
  const StateCounters counters = context_.state.counters;
  const TrainOptions before = options_;
  std::optional<TrainOptions> wanted = pending_;
  std::unique_ptr<DataSource> data = pending_ ? feed_.giveBack() : nullptr;
  takePending();
  Status made = buildAsAsked();
  if (!made && old) plans_.exchange(old);
  if (made || made.error().code != ErrorCode::kCancelled) return made;
  context_.state.counters = counters;
  if (wanted) {
    options_ = before;
    pending_ = std::move(wanted);
    feed_.close();
    if (data) feed_.take(std::move(data));
  }
  return made;
}

Status Session::buildAsAsked() {
  SS_TRY(checkOptions(options_));
  if (options_.distributed != "off" && !context_.ranks)
    return failOption(ErrorCode::kUnsupported, "distributed",
                      fmt::format("{}; expected off here; hint: `stepscope train` runs ranks", options_.distributed));
  SS_ASSIGN(const auto putBack, trained_.beginWhereAsked(true));
  context_.log.beginBuild();
  const auto make = [&]() -> Status {
    SS_TRY(checkRound(options_, context_.state.counters));
    SS_TRY(settleSchedule(options_, context_.state.counters));
    return makePlans(buildRequest(options_));
  };
  if (Status made = make(); !made) {
    if (putBack) putBack();
    SS_TRY(plans_.comeBack());
    return made;
  }
  if (putBack) context_.log.takeBackFrom(context_.state.counters.step);
  context_.log.built();
  context_.state.counters.willUpdate(plans_.step()->optimizer.states);
  context_.scheduleEndTold = false;
  proof_.reset();  // of a plan that is no more
  context_.notes = StepNotes(options_);
  if (context_.flight.on() != options_.recordFlight) context_.flight = FlightRecorder(options_.recordFlight);
  context_.learningRate.reset();  // the plans know it
  trained_.tellWhatTheFileLacks();
  if (built()) tellOfIdlePredicates(context_.breakpoints, runningGraph(), context_.log);
  if (ring_.empty()) ring_.remember(context_.state, options_.ringBytes);
  return {};
}

Status Session::buildForward(const std::vector<std::string>& fetch) {
  SS_TRY(abandonStep());
  takePending();
  SS_TRY(trained_.beginWhereAsked(false));
  context_.log.beginBuild();
  context_.notes = {};
  context_.flight = FlightRecorder();
  asked_.keep = fetch;
  BuildRequest request = buildRequest(options_);
  request.pinned.clear();
  request.forwardOnly = true;
  return makePlans(std::move(request));
}

std::unique_ptr<ModelFunction> Session::function(FunctionRequest request) {
  return std::make_unique<ModelFunction>(context_, plans_.model(), buildRequest(options()), std::move(request));
}

Status Session::makePlans(BuildRequest request) {
  const std::int64_t startStep = request.forwardOnly ? 0 : options_.startStep;
  return plans_.make(std::move(request), [&]() -> Result<Batch> {
    StateCounters& counters = context_.state.counters;
    if (startStep > 0 && counters.step == 0) {
      counters.step = startStep;
      counters.updatesBefore = startStep / options_.accumulate;
      counters.entry += startStep * (context_.ranks ? context_.ranks->size() : 1);
    }
    return feed_.batch(counters.entry);
  });
}

void Session::joinRanks(Ranks& ranks) {
  context_.ranks = &ranks;
  context_.state.setRanks(ranks.size());
  context_.state.counters.entry += ranks.rank();
}

Status Session::pin(ValueId id, bool pinned) {
  if (!built() || !id || static_cast<std::size_t>(id.index) >= runningGraph().valueCapacity())
    return fail(ErrorCode::kNotFound, fmt::format("value {}: no such value", id.index));
  const ValueKey key = stepper().keys().keyOf(id);
  if (!key)
    return invalid(fmt::format("value '{}': a constant of the build; expected a value of the model or the step",
                               runningGraph().value(id).name));
  const std::set<ValueKey> before = asked_.pinned;
  if (pinned)
    asked_.pinned.insert(key);
  else
    asked_.pinned.erase(key);
  snapshot::OptionProof proof;
  Status done = inStep() ? goOnUnder(buildRequest(options_), proof) : build();
  if (!done && built()) asked_.pinned = before;
  return done;
}

std::vector<snapshot::Option> Session::optionList() const {
  std::vector<snapshot::Option> list;
  std::vector<std::string> waiting;
  if (pending_) waiting = changedOptions(options_, *pending_, registry().options());
  for (const OptionInfo& info : registry().options()) {
    snapshot::Option option;
    const std::string name(info.name);
    option.set_name(name);
    option.set_default_value(std::string(info.defaultValue));
    option.set_doc(std::string(info.doc));
    for (const std::string_view choice : info.choices) option.add_choices(std::string(choice));
    option.set_group(std::string(info.group));
    option.set_kind(std::string(info.kind));
    const auto origin = options().origins.find(name);
    option.set_value(origin == options().origins.end() ? std::string(info.defaultValue) : origin->second.value);
    option.set_set_by(origin == options().origins.end() ? "default" : origin->second.setBy);
    if (built())
      if (const auto effect = stepper().effects().find(name); effect != stepper().effects().end())
        option.set_effect(effect->second);
    if (std::find(waiting.begin(), waiting.end(), name) != waiting.end())
      option.set_effect("pending: from the next step on");
    list.push_back(std::move(option));
  }
  return list;
}

Result<snapshot::Graph> Session::graphSnapshot(const std::string& phase) const {
  if (plans_.stages().empty()) return fail(ErrorCode::kNotFound, "graph: nothing was built yet");
  for (const Stage& stage : plans_.stages())
    if (stage.phase == phase || (phase.empty() && &stage == &plans_.stages().back()))
      return toSnapshot(*stage.graph, stage.phase, plans_.parameters(), lossValue(), registry().operators().ops);
  std::string names;
  for (const Stage& stage : plans_.stages()) names += (names.empty() ? "" : ", ") + stage.phase;
  return fail(ErrorCode::kNotFound, fmt::format("graph: no phase '{}'; kept are {}", phase, names));
}

Result<snapshot::Plan> Session::planSnapshot() const {
  if (!built()) return fail(ErrorCode::kNotFound, "plan: nothing was built yet");
  snapshot::Plan plan = toSnapshot(stepper().executor());
  if (stepper().peak()) addRoofline(stepper().plan(), *stepper().peak(), plan);
  return plan;
}

std::vector<snapshot::Determinism> Session::determinism() const {
  return built() ? determinismOf(stepper().executor()) : std::vector<snapshot::Determinism>{};
}

}  // namespace stepscope
