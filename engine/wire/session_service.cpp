// Which request asks what of the session; opening, options, building, training.
#include "engine/wire/session_service.h"

#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>

#include "engine/build/registry.h"
#include "engine/build/snapshots.h"
#include "engine/data/npy.h"
#include "engine/plugin/guard.h"
#include "engine/plugin/plugin_registry.h"
#include "engine/snapshot/utf8.h"
#include "engine/step/values.h"
#include "engine/wire/border.h"
#include "kernels/device_health.h"

namespace stepscope {
namespace {

void add(const Problem& found, snapshot::ModelInfo& model) {
  auto& problem = *model.add_problems();
  problem.set_where(toUtf8(found.where));
  problem.set_message(toUtf8(found.message));
  problem.set_hint(toUtf8(found.hint));
  problem.set_node(-1);
}

// One for all of them: what is not there is the file that holds them.
Problem lackOfWeights(const Problem& first, const snapshot::ModelInfo& model) {
  const auto lack = std::ranges::count_if(model.parameters(), [](const auto& p) { return p.missing(); });
  return {ErrorCode::kNotFound, "weights",
          fmt::format("{} of {} tensors have no data, '{}' first: {}", lack, model.parameters_size(), first.missingWeight(),
                      first.message),
          first.hint};
}

}  // namespace

SessionService::SessionService(Connection& connection, GoldenReader goldens)
    : connection_(connection),
      goldens_(std::move(goldens)),
      stages_([this](const Stage& stage, const Registry& registry) { sendStage(stage, registry); }) {}

Cancellable SessionService::cancellable() {
  return {[this] {
            const std::lock_guard lock(opening_);
            cancelOpening_ = true;
            if (session_) session_->cancel();
          },
          [this] {
            const std::lock_guard lock(opening_);
            cancelOpening_ = false;
            if (session_) session_->clearCancel();
          }};
}

Status SessionService::serve(const snapshot::Request& request) {
  const Status status = caught("request", [&] { return handle(request); });
  stages_.drop();
  if (!status && status.error().code == ErrorCode::kOutOfMemory && session_)
    (void)caught("step", [&] { return session_->abandonStep(); });  // a half-done step must not go on
  return caught("answer", [&]() -> Status {
    if (status) return {};
    tellBuilds();
    connection_.sendError(request.id(), status.error());
    return {};
  });
}

Status SessionService::answer(std::uint64_t id, snapshot::Response response, bool done) {
  tellBuilds();
  return connection_.trySend(id, std::move(response), done);
}

Status SessionService::needSession() const {
  if (!session_) return invalid("session: no model is open; open one first");
  return {};
}

Status SessionService::needPlan() const {
  SS_TRY(needSession());
  if (!session_->built()) return invalid("value: nothing was built; build first");
  return {};
}

Status SessionService::answerPosition(std::uint64_t id, Result<snapshot::Position> position) {
  if (!position) return tl::make_unexpected(position.error());
  snapshot::Response response;
  *response.mutable_position() = std::move(*position);
  return answer(id, std::move(response), true);
}

Status SessionService::open(const snapshot::Request& request) {
  LoadOptions load;
  if (request.open().missing_weights() == "random") load.missingWeights = LoadOptions::MissingWeights::kRandom;
  for (const std::string& path : request.open().search_paths()) load.searchPaths.emplace_back(path);
  load.cancel = Cancel(&cancelOpening_);
  // Plugins are those of the environment: code is loaded because this machine's user wants it, not because a window asks.
  SS_ASSIGN(PluginWish plugins, pluginWish({}, "environment"));
  if (!plugins.files.empty()) tellPluginCrashes(0);
  SS_ASSIGN(auto registry, registryWith(plugins));
  std::vector<Problem> problems;
  auto session = Session::open(request.open().path(), load, observer(registry), &problems, registry);
  // A look at the graph needs no weights; a build does.
  bool look = !session && !problems.empty() &&
              std::ranges::all_of(problems, [](const Problem& p) { return !p.missingWeight().empty(); });
  if (look) {
    LoadOptions without = load;
    without.missingWeights = LoadOptions::MissingWeights::kRandom;
    auto graph = Session::open(request.open().path(), without, observer(registry), nullptr, registry);
    look = graph.has_value();
    if (look) session = std::move(graph);
  }
  snapshot::Response response;
  if (!session) {
    if (problems.empty()) return tl::make_unexpected(session.error());
    // The window shows every problem with its place, so the answer carries them beside the error.
    auto& model = *response.mutable_model();
    model.set_path(request.open().path());
    for (const Problem& p : problems) {
      add(p, model);
      if (const std::string weight = p.missingWeight(); !weight.empty()) {
        auto& parameter = *model.add_parameters();
        parameter.set_name(toUtf8(weight));
        parameter.set_missing(true);
      }
    }
    SS_TRY(answer(request.id(), std::move(response), false));
    return tl::make_unexpected(session.error());
  }
  {
    const std::lock_guard lock(opening_);
    session_ = std::move(*session);
  }
  malloc_trim(0);  // the memory of the model before counts for nobody
  plugins_ = std::move(plugins);
  toldBuilds_ = shownBuild_ = 0;
  options_ = TrainOptions{};
  options_.missingWeights = request.open().missing_weights() == "random" ? "random" : "error";
  *response.mutable_model() = session_->inspect();
  weightsLack_.reset();
  if (look) {
    const Problem problem = lackOfWeights(problems.front(), response.model());
    weightsLack_ = Error{problem.code, problem.text()};
    add(problem, *response.mutable_model());
  }
  return answer(request.id(), std::move(response), true);
}

Status SessionService::configure(const snapshot::Request& request) {
  SS_TRY(needSession());
  TrainOptions options;
  options.missingWeights = options_.missingWeights;
  SS_TRY(applyEnvironment(options, plugins_, session_->registry().options()));
  for (const snapshot::Setting& setting : request.configure().settings()) {
    const auto equals = setting.value().find('=');
    if (setting.name() == "set" && equals != std::string::npos)
      SS_TRY(applySetting(options, setting.value().substr(0, equals), setting.value().substr(equals + 1), "window",
                          session_->registry().options()));
    else
      SS_TRY(applySetting(options, setting.name(), setting.value(), "window", session_->registry().options()));
  }
  SS_TRY(session_->setOptions(options));
  options_ = options;
  return answerOptions(request.id());
}

// Nothing is set unless all of it can be.
Status SessionService::setOption(const snapshot::Request& request) {
  SS_TRY(needSession());
  TrainOptions options = session_->options();
  const auto set = [&](const std::string& name, const std::string& value) -> Status {
    if (name == "precision.force") SS_TRY(applySetting(options, name, "", "window"));  // the new list, not one more
    return applySetting(options, name, value, "window", session_->registry().options());
  };
  SS_TRY(set(request.set_option().name(), request.set_option().value()));
  for (const snapshot::Setting& setting : request.set_option().more()) SS_TRY(set(setting.name(), setting.value()));
  SS_TRY(session_->setOptions(std::move(options)));
  const std::size_t build = session_->plans().build();
  SS_TRY(session_->applyOptions());
  if (session_->plans().build() != build) tellPlaces();
  return answerOptions(request.id());
}

Status SessionService::answerOptions(std::uint64_t id) {
  snapshot::Response response;
  auto& list = *response.mutable_options();
  for (snapshot::Option& option : session_->optionList()) *list.add_options() = std::move(option);
  if (const auto* proof = session_->optionProof()) *list.mutable_proof() = *proof;
  list.set_waits(session_->optionsWait());
  return answer(id, std::move(response), true);
}

Status SessionService::build(const snapshot::Request& request) {
  SS_TRY(needSession());
  if (weightsLack_) return tl::make_unexpected(*weightsLack_);
  SS_TRY(session_->build());
  stages_.drop();
  // Told by the answer itself; one that failed before it was told by an event.
  const std::size_t newest = session_->log().builds() - 1;
  for (; toldBuilds_ < newest; ++toldBuilds_) connection_.send(0, buildReply(toldBuilds_), false);
  toldBuilds_ = session_->log().builds();
  shownBuild_ = newest;
  return answer(request.id(), buildReply(newest), true);
}

std::optional<Error> SessionService::lost() const {
  return needPlan() ? lostDevice(session_->stepper().executor().device()) : std::nullopt;
}

Status SessionService::train(const snapshot::Request& request) {
  SS_TRY(needSession());
  const std::int64_t steps = request.train().steps();
  for (std::int64_t i = 0; i < steps; ++i) {
    if (reserveIsSpent()) return tl::make_unexpected(outOfMemory(fmt::format("train: after {} of {} steps", i, steps)));
    if (connection_.gone())
      return fail(ErrorCode::kCancelled, fmt::format("train: the client is gone after {} of {} steps", i, steps));
    if (connection_.cancelling())
      return fail(ErrorCode::kCancelled, fmt::format("train: cancelled after {} of {} steps", i, steps));
    session_->numbers().stopAtBreakpoints(request.train().breaks(), request.train().values());
    snapshot::StepRecord record;
    if (Status stepped = session_->step(record, i + 1 < steps); !stepped) {
      if (session_->numbers().stoppedBy().empty()) return stepped;
      return answerPosition(request.id(), session_->position());
    }
    if (!request.train().record()) {
      record.clear_spans();
      record.clear_device();
    }
    snapshot::Response response;
    *response.mutable_step() = std::move(record);
    SS_TRY(answer(request.id(), std::move(response), i + 1 == steps));
  }
  if (steps <= 0) return answerPosition(request.id(), session_->position());
  return {};
}

Status SessionService::handle(const snapshot::Request& request) {
  using R = snapshot::Request;
  const std::uint64_t id = request.id();
  snapshot::Response response;
  switch (request.request_case()) {
    case R::kOpen: return open(request);
    case R::kConfigure: return configure(request);
    case R::kBuild: return build(request);
    case R::kGraph: {
      SS_TRY(needSession());
      SS_ASSIGN(*response.mutable_graph(), session_->graphSnapshot(request.graph().phase()));
      break;
    }
    case R::kPlan: {
      SS_TRY(needSession());
      SS_ASSIGN(*response.mutable_plan(), session_->planSnapshot());
      break;
    }
    case R::kOptions: SS_TRY(needSession()); return answerOptions(id);
    case R::kMachine: *response.mutable_machine() = connection_.machine(); break;
    case R::kDeterminism:
      SS_TRY(needSession());
      response.mutable_determinism();
      for (snapshot::Determinism& verdict : session_->determinism())
        *response.mutable_determinism()->add_nodes() = std::move(verdict);
      break;
    case R::kTrain: return train(request);
    case R::kBeginStep:
      SS_TRY(needSession());
      SS_TRY(session_->beginStep());
      return answerPosition(id, session_->position());
    case R::kStep: SS_TRY(needSession()); return answerPosition(id, session_->stepInstructions(request.step().count()));
    case R::kRunTo: SS_TRY(needSession()); return answerPosition(id, session_->runTo(request.run_to().instruction()));
    case R::kRunToBreak:
      SS_TRY(needSession());
      return answerPosition(id, session_->runToBreak(request.run_to_break().backwards()));
    case R::kStepPhase:
      SS_TRY(needSession());
      return answerPosition(id, session_->stepPhase(request.step_phase().backwards()));
    case R::kFinishStep: {
      SS_TRY(needSession());
      SS_ASSIGN(*response.mutable_step(), session_->finishStep());
      break;
    }
    case R::kAbandonStep:
      SS_TRY(needSession());
      SS_TRY(session_->abandonStep());
      return answerPosition(id, session_->position());
    case R::kRewind:
      SS_TRY(needSession());
      SS_TRY(session_->rewind(request.rewind().step()));
      return answerPosition(id, session_->position());
    case R::kBreakpoints: {
      SS_TRY(needSession());
      SS_TRY(session_->setBreakpoints(
          {request.breakpoints().breakpoints().begin(), request.breakpoints().breakpoints().end()}));
      response.mutable_breakpoints();
      for (const snapshot::Breakpoint& b : session_->breakpoints()) *response.mutable_breakpoints()->add_breakpoints() = b;
      break;
    }
    case R::kFetch: return fetch(request);
    case R::kEdit: return edit(request);
    case R::kPin:
      SS_TRY(needSession());
      SS_TRY(session_->pin(ValueId{request.pin().value()}, request.pin().pinned()));
      tellPlaces();
      return answerPosition(id, session_->position());
    case R::kWatch: {
      SS_TRY(needSession());
      std::vector<ValueId> values;
      for (const std::int32_t v : request.watch().values()) values.push_back(ValueId{v});
      session_->watch(values);
      return answerPosition(id, session_->position());
    }
    case R::kSetOption: return setOption(request);
    case R::kCompareBits: {
      SS_TRY(needSession());
      SS_ASSIGN(*response.mutable_compare(), session_->compareBits());
      break;
    }
    case R::kSaveTensor: {
      SS_TRY(needPlan());
      SS_ASSIGN(const TensorView view, session_->stepper().value(ValueId{request.save_tensor().value()}));
      SS_TRY(writeNpy(request.save_tensor().path(), view));
      return state(id);
    }
    case R::kCompareTensor: return compareTensor(request);
    case R::kRowLosses:
      SS_TRY(needPlan());
      *response.mutable_row_losses() = rowLossesNow(session_->stepper());
      break;
    case R::kRecompute: return recompute(request);
    case R::kPrecision: return precision(request);
    case R::kTrials: return trials(request);
    case R::kLedger: return ledger(request);
    case R::kCapacity: return capacity(request);
    case R::kBisect: return bisect(request);
    case R::kGolden: return golden(request);
    case R::kGradcheck: return gradcheck(request);
    case R::kSaveState:
      SS_TRY(needSession());
      SS_TRY(session_->trained().save(request.save_state().path()));
      return state(id);
    case R::kLoadState:
      SS_TRY(needSession());
      SS_TRY(session_->trained().load(request.load_state().path(), request.load_state().resume()));
      return answerPosition(id, session_->position());
    case R::kState: return state(id);
    case R::kHold: return unsupported("hold: no program is attached to this worker; expected a loop that a program runs");
    case R::kHello:
    case R::kCancel:
    case R::kShutdown:
    case R::REQUEST_NOT_SET: return fail(ErrorCode::kInternal, "request: handled by the reader");
  }
  return answer(id, std::move(response), true);
}

}  // namespace stepscope
