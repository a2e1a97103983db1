#include "engine/wire/attach_service.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/build/registry.h"
#include "engine/build/snapshots.h"
#include "engine/data/npy.h"
#include "engine/snapshot/utf8.h"
#include "engine/step/values.h"
#include "engine/wire/border.h"

namespace stepscope {
namespace {

using R = snapshot::Request;

constexpr R::RequestCase kServed[] = {R::kHello,       R::kOpen,        R::kConfigure,  R::kBuild,      R::kGraph,
                                      R::kPlan,        R::kOptions,     R::kMachine,    R::kTrain,      R::kBeginStep,
                                      R::kStep,        R::kRunTo,       R::kRunToBreak, R::kStepPhase,  R::kFinishStep,
                                      R::kFetch,       R::kWatch,       R::kState,      R::kSaveTensor, R::kCompareTensor,
                                      R::kBreakpoints, R::kDeterminism, R::kShutdown,   R::kCancel,     R::kHold};

std::string nameOf(R::RequestCase request) {
  const auto* field = R::descriptor()->FindFieldByNumber(static_cast<int>(request));
  return field ? field->name() : "empty";
}

tl::unexpected<Error> scriptDrives(const std::string& what) {
  return unsupported(what +
                     ": not in a loop that a script drives; expected the script to do it, or a session of its own "
                     "(stepscope.capture writes one)");
}

const std::vector<Stage>& stagesOf(const AttachedLoop::Shown& shown) { return shown.plans->variant->stages; }

}  // namespace

std::vector<std::string> AttachService::served() {
  std::vector<std::string> names;
  for (const auto request : kServed) names.push_back(nameOf(request));
  return names;
}

AttachService::AttachService(Connection& connection, AttachedLoop& loop, std::string script)
    : connection_(connection), loop_(loop), script_(std::move(script)) {
  loop_.connect();
}

AttachService::~AttachService() { loop_.disconnect(); }

Cancellable AttachService::cancellable() {
  return {[this] { loop_.cancel(); }, [this] { loop_.clearCancel(); }};
}

Status AttachService::serve(const snapshot::Request& request) {
  const Status status = caught("request", [&] { return handle(request); });
  if (status) return {};
  return caught("answer", [&]() -> Status {
    connection_.sendError(request.id(), status.error());
    return {};
  });
}

Status AttachService::answer(const snapshot::Request& request, snapshot::Response response, bool done) {
  return connection_.trySend(request.id(), std::move(response), done);
}

// A script that runs on is not waited for by who only looks.
Status AttachService::read(const std::function<Status()>& work) {
  return loop_.read([&]() -> Status {
    if (!loop_.told().session)
      return fail(ErrorCode::kNotFound, "plan: the script has run no pass since the window came; expected one");
    return work();
  });
}

Result<Stepper*> AttachService::values() const {
  if (Stepper* stepper = loop_.values()) return stepper;
  return fail(ErrorCode::kNotFound, "value: another plan has run since, in the place of the one that is shown; run a step");
}

Status AttachService::open(const snapshot::Request& request) {
  if (!request.open().path().empty()) return scriptDrives(fmt::format("open '{}'", request.open().path()));
  SS_TRY(loop_.waitForPlan());
  loop_.tellShown();
  snapshot::Response response;
  SS_TRY(read([&]() -> Status {
    *response.mutable_model() = loop_.told().session->inspect();
    return {};
  }));
  auto& model = *response.mutable_model();
  model.set_path(toUtf8(script_));
  model.clear_problems();
  model.clear_proposed_data();
  model.clear_data_reason();
  return answer(request, std::move(response));
}

Result<snapshot::Response> AttachService::buildReply() {
  snapshot::Response response;
  SS_TRY(read([&]() -> Status {
    const AttachedLoop::Shown told = loop_.told();
    auto& reply = *response.mutable_build();
    for (const snapshot::PhaseSpan& span : told.session->phases()) *reply.add_phases() = span;
    for (const snapshot::Alert& alert : told.session->alerts()) *reply.add_alerts() = alert;
    for (const Stage& stage : stagesOf(told)) reply.add_stages(stage.phase);
    reply.set_loss(loop_.toldLoss().index);
    return {};
  }));
  return response;
}

Status AttachService::build(const snapshot::Request& request) {
  SS_TRY(loop_.waitForPlan());
  loop_.tellShown();
  SS_ASSIGN(snapshot::Response response, buildReply());
  return answer(request, std::move(response));
}

Status AttachService::tellPlan() {
  SS_ASSIGN(snapshot::Response response, buildReply());
  connection_.send(0, std::move(response), false);
  return {};
}

Status AttachService::graph(const snapshot::Request& request) {
  snapshot::Response response;
  SS_TRY(read([&]() -> Status {
    const AttachedLoop::Shown told = loop_.told();
    const SymbolicStep& step = *told.plans->variant->step;
    const OpRegistry& ops = told.session->registry().operators().ops;
    const std::string& phase = request.graph().phase();
    const auto& stages = stagesOf(told);
    if (phase.empty() || (!stages.empty() && stages.back().phase == phase)) {
      const std::string name = stages.empty() ? "specialise" : stages.back().phase;
      *response.mutable_graph() = toSnapshot(told.plans->variant->graph, name, step.parameters, loop_.toldLoss(), ops);
      return {};
    }
    for (const Stage& stage : stages)
      if (stage.phase == phase) {
        *response.mutable_graph() = toSnapshot(*stage.graph, stage.phase, step.parameters, loop_.toldLoss(), ops);
        return {};
      }
    return fail(ErrorCode::kNotFound, fmt::format("graph: no phase '{}' is kept of this plan", phase));
  }));
  return answer(request, std::move(response));
}

Status AttachService::plan(const snapshot::Request& request) {
  snapshot::Response response;
  SS_TRY(read([&]() -> Status {
    *response.mutable_plan() = toSnapshot(loop_.told().stepper->executor());
    response.mutable_plan()->set_signature(toUtf8(loop_.signatureOf(loop_.told())));
    return {};
  }));
  return answer(request, std::move(response));
}

Status AttachService::options(const snapshot::Request& request) {
  if (request.has_configure() && request.configure().settings_size() > 0)
    return scriptDrives(fmt::format("option '{}'", request.configure().settings(0).name()));
  snapshot::Response response;
  SS_TRY(read([&]() -> Status {
    for (snapshot::Option& option : loop_.told().session->optionList()) {
      option.set_set_by("script");
      *response.mutable_options()->add_options() = std::move(option);
    }
    return {};
  }));
  return answer(request, std::move(response));
}

Status AttachService::determinism(const snapshot::Request& request) {
  snapshot::Response response;
  response.mutable_determinism();
  SS_TRY(read([&]() -> Status {
    for (snapshot::Determinism& verdict : determinismOf(loop_.told().stepper->executor()))
      *response.mutable_determinism()->add_nodes() = std::move(verdict);
    return {};
  }));
  return answer(request, std::move(response));
}

Status AttachService::fetch(const snapshot::Request& request) {
  const snapshot::FetchTensor& f = request.fetch();
  constexpr std::int64_t kWindowElements = 1 << 16, kAll = std::int64_t{1} << 27;
  snapshot::Response response;
  SS_TRY(read([&]() -> Status {
    const Graph& graph = loop_.told().stepper->graph();
    const ValueId id = f.name().empty() ? ValueId{f.value()} : graph.findValue(f.name());
    auto stepper = values();
    auto& tensor = *response.mutable_tensor();
    if (!stepper) {
      if (!id || static_cast<std::size_t>(id.index) >= graph.valueCapacity()) return tl::make_unexpected(stepper.error());
      tensor.set_value(id.index);
      tensor.set_name(toUtf8(graph.value(id).name));
      tensor.set_dtype(std::string(dtypeName(graph.value(id).type.dtype)));
      tensor.set_unavailable(stepper.error().message);
      tensor.set_elsewhere(true);
      return {};
    }
    SS_ASSIGN(tensor, fetchValue(**stepper, id, {f.begin().begin(), f.begin().end()}, {f.extent().begin(), f.extent().end()},
                                 f.statistics(), f.whole() ? kAll : kWindowElements));
    const bool held = loop_.held() && !loop_.atPlace();
    tensor.set_step(loop_.steps() - (held ? 0 : 1));
    tensor.set_current(held || graph.value(id).role != ValueRole::kNodeOutput);
    return {};
  }));
  return answer(request, std::move(response));
}

Status AttachService::saveTensor(const snapshot::Request& request) {
  SS_TRY(read([&]() -> Status {
    SS_ASSIGN(Stepper * stepper, values());
    SS_ASSIGN(const TensorView view, stepper->value(ValueId{request.save_tensor().value()}));
    return writeNpy(request.save_tensor().path(), view);
  }));
  SS_ASSIGN(snapshot::Response response, state());
  return answer(request, std::move(response));
}

Status AttachService::compareTensor(const snapshot::Request& request) {
  const snapshot::CompareTensor& c = request.compare_tensor();
  snapshot::Response response;
  SS_TRY(read([&]() -> Status {
    SS_ASSIGN(Stepper * stepper, values());
    const ValueId id{c.value()};
    SS_ASSIGN(snapshot::ComparisonResult result, c.path().empty() ? compareWithValue(*stepper, id, ValueId{c.other()})
                                                                  : compareWithFile(*stepper, id, c.path()));
    response.mutable_compare()->set_equal(result.equal_bits());
    *response.mutable_compare()->add_values() = std::move(result);
    return {};
  }));
  return answer(request, std::move(response));
}

Status AttachService::handle(const snapshot::Request& request) {
  const auto which = request.request_case();
  if (std::ranges::find(kServed, which) == std::end(kServed)) return scriptDrives(nameOf(which));
  switch (which) {
    case R::kOpen: return open(request);
    case R::kBuild: return build(request);
    case R::kGraph: return graph(request);
    case R::kPlan: return plan(request);
    case R::kConfigure:
    case R::kOptions: return options(request);
    case R::kMachine: {
      snapshot::Response response;
      *response.mutable_machine() = connection_.machine();
      return answer(request, std::move(response));
    }
    case R::kDeterminism: return determinism(request);
    case R::kFetch: return fetch(request);
    case R::kSaveTensor: return saveTensor(request);
    case R::kCompareTensor: return compareTensor(request);
    case R::kBreakpoints: return breakpoints(request);
    case R::kWatch: {
      std::vector<ValueId> watched;
      for (const std::int32_t v : request.watch().values()) watched.push_back(ValueId{v});
      loop_.watch(watched);
      return move(request, {});
    }
    case R::kTrain: return train(request);
    case R::kBeginStep: return move(request, loop_.begin());
    case R::kStep:
      if (loop_.atPlace()) return move(request, loop_.leavePlace(false));
      if (loop_.held() && loop_.instruction() == loop_.count()) return move(request, loop_.runTo(loop_.count() + 1, false));
      return runTo(request, loop_.instruction() + std::min(request.step().count(), loop_.count()));
    case R::kRunTo: return runTo(request, request.run_to().instruction());
    case R::kRunToBreak:
      if (request.run_to_break().backwards()) return scriptDrives("run_to_break backwards");
      return runTo(request, loop_.count(), true);
    case R::kStepPhase: return stepPhase(request);
    case R::kFinishStep: return finish(request);
    case R::kHold: return hold(request);
    case R::kState: {
      SS_ASSIGN(snapshot::Response response, state());
      return answer(request, std::move(response));
    }
    default: return fail(ErrorCode::kInternal, "request: handled by the reader");
  }
}

}  // namespace stepscope
