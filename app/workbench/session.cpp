// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/session.h"

#include <algorithm>

#include "views/common/format.h"
#include "views/common/names.h"

namespace stepscope {
namespace {
// A larger model would stop the window's work for longer than a step takes; it restarts from its file instead.
constexpr std::int64_t kKeepStateBytes = 512LL << 20;
}  // namespace

Session::Session(SnapshotStore& store, SelectionModel& selection, QObject* parent)
    : QObject(parent), store_(store), selection_(selection) {
  connect(&client_, &WorkerClient::event, this, &Session::absorb);
  connect(&client_, &WorkerClient::text, this, [this](const QString& line) { store_.addLog({QStringLiteral("info"), line, 0}); });
  connect(&client_, &WorkerClient::stateChanged, this, [this] { store_.setWorkerState(client_.state(), client_.activity()); });
  connect(&client_, &WorkerClient::died, this, [this](const QString& reason) {
    running_ = false;
    setBusy(false);
    store_.setWorkerState(WorkerState::kDead, reason);
    emit problem(reason, QStringLiteral("worker_died"));
  });
}

void Session::setBusy(bool busy) {
  if (busy == busy_) return;
  busy_ = busy;
  emit busyChanged();
}

bool Session::refuse() {
  if (!built_) {
    emit note(store_.readOnly() ? tr("A recorded project: it can be looked at, not run") : tr("Open a model first"));
    return true;
  }
  if (busy_) {
    emit note(tr("Still %1; Esc cancels").arg(client_.activity()));
    return true;
  }
  return false;
}

void Session::absorb(const Delivery& d) {
  const snapshot::Response& r = *d.response;
  switch (r.response_case()) {
    case snapshot::Response::kHello:
      store_.setMachine(std::make_shared<const snapshot::MachineInfo>(r.hello().machine()));
      break;
    case snapshot::Response::kMachine: store_.setMachine(std::make_shared<const snapshot::MachineInfo>(r.machine())); break;
    case snapshot::Response::kModel: store_.setModel(std::make_shared<const snapshot::ModelInfo>(r.model())); break;
    case snapshot::Response::kBuild: {
      store_.setPhases({r.build().phases().begin(), r.build().phases().end()});
      QStringList stages;
      for (const std::string& s : r.build().stages()) stages << format::visible(s);
      store_.setStages(stages);
      // The reply lists all alerts, those that came as events among them.
      store_.clearAlerts();
      for (const auto& alert : r.build().alerts()) store_.addAlert(alert);
      break;
    }
    case snapshot::Response::kGraph: store_.setGraph(d.graph); break;
    case snapshot::Response::kPlan: store_.setPlan(d.plan); break;
    case snapshot::Response::kOptions: store_.setOptions({r.options().options().begin(), r.options().options().end()}); break;
    case snapshot::Response::kDeterminism: store_.setDeterminism({r.determinism().nodes().begin(), r.determinism().nodes().end()}); break;
    case snapshot::Response::kStep: {
      auto step = std::make_shared<const snapshot::StepRecord>(r.step());
      store_.addStep(step);
      emit stepRecorded(step);
      break;
    }
    case snapshot::Response::kPosition: store_.setPosition(r.position()); break;
    case snapshot::Response::kTensor: store_.addTensor(std::make_shared<const snapshot::TensorData>(r.tensor())); break;
    case snapshot::Response::kCompare: store_.setComparison(std::make_shared<const snapshot::CompareReply>(r.compare())); break;
    case snapshot::Response::kState:
      if (r.state().has_position()) store_.setPosition(r.state().position());
      break;
    case snapshot::Response::kBreakpoints:
      store_.setBreakpoints({r.breakpoints().breakpoints().begin(), r.breakpoints().breakpoints().end()});
      break;
    case snapshot::Response::kProgress:
      emit progress(format::visible(r.progress().what()), r.progress().done(), r.progress().total());
      break;
    case snapshot::Response::kLog:
      store_.addLog({format::visible(r.log().level()), QString::fromStdString(r.log().text()), r.log().ns()});
      break;
    case snapshot::Response::kAlert:
      store_.addAlert(r.alert());
      emit alertRaised(r.alert());
      break;
    case snapshot::Response::kPhase: emit progress(tr("building: %1").arg(format::visible(r.phase().name())), 0, 0); break;
    case snapshot::Response::kError:
    case snapshot::Response::RESPONSE_NOT_SET: break;
  }
}

void Session::move(snapshot::Request request, const QString& what, Then then, Then failed) {
  setBusy(true);
  client_.request(std::move(request), what, [this, then = std::move(then), failed = std::move(failed)](const Delivery& d) {
    absorb(d);
    if (!d.response->done()) return;
    setBusy(false);
    if (d.response->has_error()) {
      running_ = false;
      const auto& error = d.response->error();
      if (error.code() == "cancelled") {
        emit note(tr("Cancelled"));
      } else if (error.code() != "worker_died") {
        emit problem(format::visible(error.message()), format::visible(error.code()));
      }
      if (failed) failed();
      return;
    }
    if (then) then();
  });
}

void Session::ask(snapshot::Request request, const QString& what, std::function<void(const Delivery&)> answer, bool quiet) {
  client_.request(
      std::move(request), what,
      [this, answer = std::move(answer)](const Delivery& d) {
        if (d.response->has_error()) {
          const auto& error = d.response->error();
          if (error.code() != "worker_died" && error.code() != "cancelled") emit note(format::visible(error.message()));
        } else if (answer) {
          answer(d);
        } else {
          absorb(d);
        }
      },
      quiet);
}

void Session::begin(const Then& then) {
  if (client_.alive()) {
    then();
    return;
  }
  // One-shot: the context object goes with the first start.
  auto* once = new QObject(this);
  connect(&client_, &WorkerClient::started, once, [once, then] {
    once->deleteLater();
    then();
  });
  connect(&client_, &WorkerClient::died, once, &QObject::deleteLater);
  client_.start();
}

void Session::inspect(const QString& path, const QString& missingWeights) {
  if (busy_) {
    emit note(tr("Still %1; Esc cancels").arg(client_.activity()));
    return;
  }
  built_ = false;
  keptStep_ = -1;
  path_ = path;
  missingWeights_ = missingWeights;
  configuration_.Clear();
  // Breakpoints that name no place of the old model stay.
  std::vector<snapshot::Breakpoint> kept = store_.breakpoints();
  std::erase_if(kept, [](const snapshot::Breakpoint& b) {
    return b.condition_case() == snapshot::Breakpoint::kNode || b.condition_case() == snapshot::Breakpoint::kInstruction ||
           b.condition_case() == snapshot::Breakpoint::kPredicate;
  });
  store_.clear();
  store_.setReadOnly(false);
  store_.setBreakpoints(kept);
  selection_.reset();
  selection_.setCurrentInstruction(-1);
  emit builtChanged();
  setBusy(true);
  begin([this] {
    snapshot::Request request;
    request.mutable_open()->set_path(path_.toStdString());
    request.mutable_open()->set_missing_weights(missingWeights_.toStdString());
    move(std::move(request), tr("reading %1").arg(format::visible(path_.section('/', -1))), [this] { emit modelInspected(); });
  });
}

void Session::build(const snapshot::Configure& configuration) {
  if (busy_) {
    emit note(tr("Still %1; Esc cancels").arg(client_.activity()));
    return;
  }
  configuration_ = configuration;
  snapshot::Request configure;
  *configure.mutable_configure() = configuration;
  move(std::move(configure), tr("setting up"), [this] {
    snapshot::Request build;
    build.mutable_build();
    move(std::move(build), tr("building"), [this] {
      refreshBuild([this] {
        built_ = true;
        snapshot::Request state;
        state.mutable_state();
        move(std::move(state), tr("reading the state"), [this] {
          const auto wanted = store_.breakpoints();
          setBreakpoints(wanted);
          emit builtChanged();
          comeBack();
        });
      });
    });
  });
}

void Session::comeBack() {
  if (!returnTo_) return;
  const snapshot::Position goal = *returnTo_;
  returnTo_.reset();
  const auto walk = [this, goal] {
    if (goal.in_step() && store_.position().step() == goal.step()) runTo(goal.instruction());
  };
  if (keptStep_ <= 0) {
    walk();
    return;
  }
  snapshot::Request load;
  load.mutable_load_state()->set_path(scratch_.filePath(QStringLiteral("state.safetensors")).toStdString());
  load.mutable_load_state()->set_resume(true);
  move(std::move(load), tr("returning to step %1").arg(keptStep_), [this, walk] {
    snapshot::Request state;
    state.mutable_state();
    move(std::move(state), tr("reading the state"), walk);
  });
}

void Session::openAndBuild(const QString& path, const snapshot::Configure& configuration) {
  auto* once = new QObject(this);
  connect(this, &Session::modelInspected, once, [this, once, configuration] {
    once->deleteLater();
    build(configuration);
  });
  connect(this, &Session::problem, once, &QObject::deleteLater);
  inspect(path, missingWeights_);
}

void Session::refreshBuild(Then then) {
  snapshot::Request graph;
  graph.mutable_graph();
  move(std::move(graph), tr("reading the graph"), [this, then] {
    snapshot::Request plan;
    plan.mutable_plan();
    move(std::move(plan), tr("reading the plan"), [this, then] {
      snapshot::Request options;
      options.mutable_options();
      move(std::move(options), tr("reading the options"), [this, then] {
        then();
        emit planRebuilt();
      });
    });
  });
}

void Session::close() {
  running_ = false;
  built_ = false;
  client_.cancelAll();
  store_.clear();
  selection_.reset();
  selection_.setCurrentInstruction(-1);
  emit builtChanged();
}

void Session::restart() {
  if (path_.isEmpty()) return;
  running_ = false;
  const bool wasBuilt = built_;
  returnTo_.reset();
  if (wasBuilt) returnTo_ = store_.position();
  const auto again = [this, wasBuilt] {
    snapshot::Request request;
    request.mutable_open()->set_path(path_.toStdString());
    request.mutable_open()->set_missing_weights(missingWeights_.toStdString());
    move(std::move(request), tr("reading the model again"), [this, wasBuilt] {
      if (!wasBuilt) {
        emit modelInspected();
        return;
      }
      build(configuration_);
    });
  };
  if (client_.alive()) {
    auto* once = new QObject(this);
    connect(&client_, &WorkerClient::died, once, [this, once, again] {
      once->deleteLater();
      setBusy(true);
      QMetaObject::invokeMethod(this, [this, again] { begin(again); }, Qt::QueuedConnection);
    });
    client_.kill();
    return;
  }
  setBusy(true);
  begin(again);
}

void Session::inStep(Then then) {
  if (store_.position().in_step()) {
    then();
    return;
  }
  snapshot::Request request;
  request.mutable_begin_step();
  move(std::move(request), tr("beginning step %1").arg(store_.position().step()), [this, then] {
    if (!optionsTouched_) {
      then();
      return;
    }
    optionsTouched_ = false;
    refreshBuild(then);
  });
}

void Session::stopped() {
  const snapshot::Position& p = store_.position();
  selection_.setCurrentInstruction(p.in_step() ? p.instruction() : -1);
  if (p.in_step() && store_.plan() && p.instruction() < store_.plan()->size()) {
    selection_.select(Selection::ofInstruction(p.instruction()));
  }
}

void Session::run(bool backwards) {
  if (refuse()) return;
  if (backwards) {
    if (!store_.position().in_step()) {
      emit note(tr("Between steps; rewind goes to an earlier step"));
      return;
    }
    snapshot::Request request;
    request.mutable_run_to_break()->set_backwards(true);
    move(std::move(request), tr("running backwards"), [this] { stopped(); });
    return;
  }
  running_ = true;
  emit busyChanged();
  runOn();
}

void Session::runOn() {
  inStep([this] {
    snapshot::Request request;
    request.mutable_run_to_break();
    move(
        std::move(request), tr("running"),
        [this] {
          const snapshot::Position& p = store_.position();
          const bool atEnd = p.in_step() && store_.plan() && p.instruction() >= store_.plan()->size();
          if (p.breakpoint() != 0 || !running_ || (p.in_step() && !atEnd)) {
            running_ = false;
            emit busyChanged();
            stopped();
            return;
          }
          if (!p.in_step()) {
            keepState();
            runOn();
            return;
          }
          snapshot::Request finish;
          finish.mutable_finish_step();
          move(
              std::move(finish), tr("finishing the step"),
              [this] {
                settle([this] {
                  if (running_) runOn();
                });
              },
              [this] { stopped(); });
        },
        [this] { stopped(); });
  });
}

void Session::step(int count) {
  if (refuse()) return;
  const snapshot::Position& p = store_.position();
  if (count < 0 && (!p.in_step() || p.instruction() <= 0)) {
    emit note(tr("At the start of the step; rewind goes to an earlier step"));
    return;
  }
  if (count > 0 && p.in_step() && store_.plan() && p.instruction() >= store_.plan()->size()) {
    finishStep();
    return;
  }
  inStep([this, count] {
    snapshot::Request request;
    request.mutable_step()->set_count(count);
    move(std::move(request), tr("stepping"), [this] { stopped(); });
  });
}

void Session::stepPhase(bool backwards) {
  if (refuse()) return;
  const snapshot::Position& p = store_.position();
  if (backwards && (!p.in_step() || p.instruction() <= 0)) {
    emit note(tr("At the start of the step; rewind goes to an earlier step"));
    return;
  }
  if (!backwards && p.in_step() && store_.plan() && p.instruction() >= store_.plan()->size()) {
    finishStep();
    return;
  }
  inStep([this, backwards] {
    snapshot::Request request;
    request.mutable_step_phase()->set_backwards(backwards);
    move(std::move(request), tr("running the phase"), [this] { stopped(); });
  });
}

void Session::finishStep() {
  if (refuse()) return;
  inStep([this] {
    snapshot::Request request;
    request.mutable_finish_step();
    move(std::move(request), tr("finishing the step"), [this] { settle({}); });
  });
}

void Session::settle(Then then) {
  snapshot::Request state;
  state.mutable_state();
  move(std::move(state), tr("reading the state"), [this, then] {
    stopped();
    keepState();
    if (then) then();
  });
}

void Session::runTo(int instruction) {
  if (refuse()) return;
  inStep([this, instruction] {
    snapshot::Request request;
    request.mutable_run_to()->set_instruction(instruction);
    move(std::move(request), tr("running to %1").arg(instruction), [this] { stopped(); });
  });
}

void Session::abandon() {
  if (refuse() || !store_.position().in_step()) return;
  snapshot::Request request;
  request.mutable_abandon_step();
  move(std::move(request), tr("going back"), [this] { stopped(); });
}

void Session::rewind(std::int64_t step) {
  if (refuse()) return;
  snapshot::Request request;
  request.mutable_rewind()->set_step(step);
  move(std::move(request), tr("rewinding to step %1").arg(step), [this, step] {
    store_.dropStepsFrom(step);
    stopped();
    keepState();
  });
}

void Session::train(std::int64_t steps) {
  if (refuse()) return;
  const auto go = [this, steps] {
    snapshot::Request request;
    request.mutable_train()->set_steps(steps);
    request.mutable_train()->set_record(true);
    running_ = true;
    emit busyChanged();
    const auto ended = [this] {
      running_ = false;
      settle({});
    };
    move(std::move(request), tr("training"), ended, [this, ended] { if (client_.alive()) ended(); });
  };
  if (!store_.position().in_step()) {
    go();
    return;
  }
  snapshot::Request finish;
  finish.mutable_finish_step();
  move(std::move(finish), tr("finishing the step"), go);
}

void Session::pause() {
  running_ = false;
  emit busyChanged();
  client_.cancelAll();
}

void Session::keepState() {
  if (!scratch_.isValid() || store_.position().in_step() || !store_.plan()) return;
  if (store_.plan()->plan().persistent_bytes() > kKeepStateBytes) return;
  const std::int64_t step = store_.position().step();
  const QString path = scratch_.filePath(QStringLiteral("state.new.safetensors"));
  snapshot::Request request;
  request.mutable_save_state()->set_path(path.toStdString());
  client_.request(
      std::move(request), tr("keeping the state"),
      [this, step, path](const Delivery& d) {
        if (!d.response->done() || d.response->has_error()) return;
        const QString kept = scratch_.filePath(QStringLiteral("state.safetensors"));
        QFile::remove(kept);
        if (QFile::rename(path, kept)) keptStep_ = step;
      },
      true);
}

void Session::setBreakpoints(const std::vector<snapshot::Breakpoint>& breakpoints) {
  snapshot::Request request;
  request.mutable_breakpoints();
  std::vector<snapshot::Breakpoint> numbered = breakpoints;
  for (auto& b : numbered) nextBreakpoint_ = std::max(nextBreakpoint_, b.id() + 1);
  for (auto& b : numbered) {
    if (b.id() == 0) b.set_id(nextBreakpoint_++);
    *request.mutable_breakpoints()->add_breakpoints() = b;
  }
  store_.setBreakpoints(numbered);
  if (built_) ask(std::move(request), tr("setting breakpoints"), [](const Delivery&) {});
}

void Session::toggleBreakpoint(int instruction) {
  auto all = store_.breakpoints();
  const auto same = [instruction](const snapshot::Breakpoint& b) {
    return b.condition_case() == snapshot::Breakpoint::kInstruction && b.instruction() == instruction;
  };
  if (std::erase_if(all, same) == 0) {
    snapshot::Breakpoint b;
    b.set_instruction(instruction);
    b.set_enabled(true);
    all.push_back(b);
  }
  setBreakpoints(all);
}

void Session::fetchTensor(int value, const std::vector<qint64>& begin, const std::vector<qint64>& extent) {
  if (!built_ || !client_.alive()) return;
  snapshot::Request request;
  auto* fetch = request.mutable_fetch();
  fetch->set_value(value);
  fetch->set_statistics(true);
  for (const qint64 b : begin) fetch->add_begin(b);
  for (const qint64 e : extent) fetch->add_extent(e);
  fetch->set_whole(extent.empty() && begin.empty());
  client_.request(
      std::move(request), tr("reading a tensor"),
      [this, value](const Delivery& d) {
        if (d.response->has_tensor()) {
          absorb(d);
        } else if (d.response->has_error()) {
          // Shown where the values would stand.
          auto tensor = std::make_shared<snapshot::TensorData>();
          tensor->set_value(value);
          tensor->set_unavailable(d.response->error().message());
          store_.addTensor(tensor);
        }
      },
      true);
}

void Session::watch(int value, bool on) {
  std::vector<int> values = store_.watched();
  std::erase(values, value);
  if (on) values.push_back(value);
  store_.setWatched(values);
  if (!built_) return;
  snapshot::Request request;
  auto* watch = request.mutable_watch();
  for (const int v : values) watch->add_values(v);
  ask(std::move(request), tr("watching"), {});
}

void Session::pin(int value, bool on) {
  if (refuse()) return;
  std::vector<int> values = store_.pinned();
  std::erase(values, value);
  if (on) values.push_back(value);
  snapshot::Request request;
  request.mutable_pin()->set_value(value);
  request.mutable_pin()->set_pinned(on);
  move(std::move(request), tr("pinning"), [this, values] {
    store_.setPinned(values);
    optionsTouched_ = true;
    emit note(tr("Kept from the next step on"));
  });
}

void Session::editTensor(int value, const std::vector<qint64>& index, double number, bool fill) {
  if (refuse()) return;
  snapshot::Request request;
  auto* edit = request.mutable_edit();
  edit->set_value(value);
  for (const qint64 i : index) edit->add_index(i);
  edit->set_number(number);
  edit->set_fill(fill);
  move(std::move(request), tr("editing"));
}

void Session::setOption(const QString& name, const QString& value) {
  if (refuse()) return;
  snapshot::Request request;
  request.mutable_set_option()->set_name(name.toStdString());
  request.mutable_set_option()->set_value(value.toStdString());
  move(std::move(request), tr("setting %1").arg(name), [this, name, value] {
    optionsTouched_ = true;
    const bool midStep = store_.position().in_step();
    emit note(midStep ? tr("%1 = %2 from the next step on").arg(name, value) : tr("%1 = %2").arg(name, value));
    if (midStep) {
      snapshot::Request options;
      options.mutable_options();
      ask(std::move(options), tr("reading the options"), {});
    } else {
      optionsTouched_ = false;
      refreshBuild([] {});
    }
  });
}

void Session::determinism() {
  if (!built_) return;
  snapshot::Request request;
  request.mutable_determinism();
  ask(std::move(request), tr("checking determinism"), {}, false);
}

void Session::compareBits() {
  if (refuse()) return;
  snapshot::Request request;
  request.mutable_compare_bits();
  move(std::move(request), tr("running the step twice"), [this] {
    const auto& result = store_.comparison();
    if (result) emit note(result->equal() ? tr("Both runs are equal, bit for bit") : tr("The runs differ; see Determinism"));
  });
}

void Session::stageGraph(const QString& stage) {
  if (!built_ || store_.graphOf(stage)) return;
  snapshot::Request request;
  request.mutable_graph()->set_phase(stage.toStdString());
  ask(std::move(request), tr("reading the graph of %1").arg(stage), [this, stage](const Delivery& d) {
    if (d.graph) store_.addStage(stage, d.graph);
  });
}

void Session::saveTensor(int value, const QString& path) {
  if (!built_) return;
  snapshot::Request request;
  request.mutable_save_tensor()->set_value(value);
  request.mutable_save_tensor()->set_path(path.toStdString());
  ask(std::move(request), tr("saving"), [this, path](const Delivery&) { emit note(tr("Saved %1").arg(format::visible(path))); });
}

void Session::saveState(const QString& path) {
  if (refuse()) return;
  snapshot::Request request;
  request.mutable_save_state()->set_path(path.toStdString());
  move(std::move(request), tr("saving"), [this, path] { emit note(tr("Saved %1").arg(format::visible(path))); });
}

}  // namespace stepscope
