// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/session.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "views/common/findings.h"
#include "views/common/format.h"
#include "views/common/pass_stages.h"

namespace stepscope {

void addSettings(const OptionSettings& settings, snapshot::Configure& to) {
  for (const auto& [name, value] : settings) {
    if (name == u"precision.force") {  // the worker was given the new list; in a configuration settings of it add up
      auto& all = *to.mutable_settings();
      const auto isForce = [](const auto& s) {
        return s.name() == "precision.force" || (s.name() == "set" && s.value().starts_with("precision.force="));
      };
      all.erase(std::remove_if(all.begin(), all.end(), isForce), all.end());
    }
    auto* kept = to.add_settings();
    kept->set_name("set");
    kept->set_value(name.toStdString() + '=' + value.toStdString());
  }
}

Session::Session(SnapshotStore& store, SelectionModel& selection, QObject* parent)
    : QObject(parent), store_(store), selection_(selection) {
  connect(&client_, &WorkerClient::event, this, &Session::absorb);
  connect(&client_, &WorkerClient::text, this, [this](const QString& line) {
    store_.addLog({QStringLiteral("info"), line, 0});
  });
  connect(&client_, &WorkerClient::stateChanged, this, [this] {
    store_.setWorkerState(client_.state(), client_.activity());
    if (client_.state() != WorkerState::kUnresponsive || !wanted_) return;
    // It does not stop for the model that is wanted now.
    const Opening next = *std::exchange(wanted_, std::nullopt);
    leave();
    replaceWorker([this, next] { inspect(next.path, next.missingWeights); });
  });
  connect(&client_, &WorkerClient::died, this, [this](const QString& reason) {
    running_ = false;
    replaying_ = training_ = interrupted_ = false;
    opening_.reset();
    store_.setWorkerState(WorkerState::kDead, reason);
    if (restarting_)
      trace_.clear();  // by the user, and a new one comes
    else
      tellOfDeath(reason);
    waiting_.clear();
    sent_.clear();
    optionsBefore_.reset();
    setBusy(false);
  });
}

void Session::setBusy(bool busy) {
  if (busy == busy_) return;
  busy_ = busy;
  emit busyChanged();
  // In a turn of its own: what follows the request that ended comes first.
  if (!busy_ && !waiting_.empty()) {
    QMetaObject::invokeMethod(
        this,
        [this] {
          if (!busy_ && !running_ && !waiting_.empty()) sendOptions({});
        },
        Qt::QueuedConnection);
  }
  if (!busy_ && wantedPlace_) {
    QMetaObject::invokeMethod(
        this,
        [this] {
          if (busy_ || running_ || !wantedPlace_) return;
          const auto [step, instruction] = *std::exchange(wantedPlace_, std::nullopt);
          if (built_) goTo(step, instruction);
        },
        Qt::QueuedConnection);
  }
  if (!busy_ && wanted_) {
    QMetaObject::invokeMethod(
        this,
        [this] {
          if (busy_ || !wanted_) return;
          const Opening next = *std::exchange(wanted_, std::nullopt);
          inspect(next.path, next.missingWeights);
        },
        Qt::QueuedConnection);
  }
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
    case snapshot::Response::kModel: {
      auto model = std::make_shared<const snapshot::ModelInfo>(r.model());
      if (opening_)
        opening_->model = std::move(model);
      else
        store_.setModel(std::move(model));
      break;
    }
    case snapshot::Response::kBuild: {
      trace_.clear();
      store_.setPhases({r.build().phases().begin(), r.build().phases().end()});
      const bool again = r.id() == 0;
      if (again && (!built_ || building_)) break;  // it failed: where, the phases tell; there is no graph to go with it
      const bool resumed = again && !r.build().kept().empty();
      rebuilt_ = !again ? Other::kNone : resumed ? Other::kResumed : Other::kRebuilt;
      QStringList stops;
      for (const std::string& s : r.build().stages()) stops << format::visible(s);
      PassStages::of(store_).set(stops);
      stops.removeIf(&PassStages::isPass);
      store_.setStages(stops);
      // The reply lists all alerts, those that came as events among them.
      // A worker that takes the place of a dead one knows nothing of the steps before.
      std::vector<snapshot::Alert> more;
      if (returnTo_)
        std::copy_if(store_.alerts().begin(), store_.alerts().end(), std::back_inserter(more),
                     [](const auto& alert) { return alert.step() >= 0; });
      store_.clearAlerts();
      for (const auto& alert : r.build().alerts()) store_.addAlert(alert);
      if (again || returnTo_) {  // the model is the one that was compared
        const auto compared = captureAlerts();
        more.insert(more.begin(), compared.begin(), compared.end());
      }
      for (const auto& alert : more)
        if (!told(alert)) store_.addAlert(alert);
      if (resumed)
        emit planResumed(QString::fromStdString(r.build().kept()));
      else if (again)
        emit phasesTold();
      break;
    }
    case snapshot::Response::kGraph:
      if (r.id() == 0) {
        if (d.graph) trace_.graph(d.graph);
      } else {
        store_.setGraph(d.graph);
      }
      break;
    case snapshot::Response::kPlan: store_.setPlan(d.plan); break;
    case snapshot::Response::kOptions:
      optionsBefore_.reset();
      store_.setOptions({r.options().options().begin(), r.options().options().end()});
      optionsTouched_ = r.options().waits();
      if (r.options().has_proof())
        store_.findings().setOptionProof(std::make_shared<const snapshot::OptionProof>(r.options().proof()));
      break;
    case snapshot::Response::kDeterminism:
      store_.setDeterminism({r.determinism().nodes().begin(), r.determinism().nodes().end()});
      break;
    case snapshot::Response::kStep: {
      if (replaying_) break;  // shown and recorded the first time
      auto step = std::make_shared<const snapshot::StepRecord>(r.step());
      store_.addStep(step);
      emit stepRecorded(step, !training_);
      tellOfHand(step->step());
      break;
    }
    case snapshot::Response::kPosition: reached(r.position()); break;
    case snapshot::Response::kTensor: store_.addTensor(std::make_shared<const snapshot::TensorData>(r.tensor())); break;
    case snapshot::Response::kCompare:
      store_.setComparison(std::make_shared<const snapshot::CompareReply>(r.compare()));
      break;
    case snapshot::Response::kRowLosses:
      store_.findings().setRowLosses(std::make_shared<const snapshot::RowLosses>(r.row_losses()));
      break;
    case snapshot::Response::kRecompute: break;  // belongs to its question: see recompute()
    case snapshot::Response::kPrecision:         // likewise: see studyPrecision(),
    case snapshot::Response::kTrials:            // tryOptions(),
    case snapshot::Response::kGolden: break;     // compareWithCapture()
    case snapshot::Response::kState:
      if (r.state().has_position()) reached(r.state().position());
      break;
    case snapshot::Response::kBreakpoints:
      store_.setBreakpoints({r.breakpoints().breakpoints().begin(), r.breakpoints().breakpoints().end()});
      break;
    case snapshot::Response::kProgress:
      if (store_.findings().trials().running())
        store_.findings().trials().setProgress(QString::fromStdString(r.progress().what()), r.progress().done(),
                                               r.progress().total());
      emit progress(format::visible(r.progress().what()), r.progress().done(), r.progress().total());
      break;
    case snapshot::Response::kLog:
      store_.addLog({format::visible(r.log().level()), QString::fromStdString(r.log().text()), r.log().ns()});
      break;
    case snapshot::Response::kAlert:
      if (opening_) {
        opening_->alerts.push_back(r.alert());
        break;
      }
      if (replaying_ && told(r.alert())) break;
      store_.addAlert(r.alert());
      emit alertRaised(r.alert());
      break;
    case snapshot::Response::kPhase:
      trace_.phase(r.phase());
      if (r.phase().ns() == -1) emit progress(tr("building: %1").arg(format::visible(r.phase().name())), 0, 0);
      break;
    case snapshot::Response::kError:
    case snapshot::Response::RESPONSE_NOT_SET: break;
  }
}

bool Session::told(const snapshot::Alert& alert) const {
  const auto same = [&alert](const snapshot::Alert& other) {
    return other.step() == alert.step() && other.code() == alert.code() && other.node() == alert.node() &&
           other.message() == alert.message();
  };
  return std::any_of(store_.alerts().begin(), store_.alerts().end(), same);
}

void Session::reached(const snapshot::Position& position) {
  store_.setPosition(position);
  if (replaying_) return;
  for (const auto& value : position.watched()) {
    // What a step changes of the state is compared as the step left it.
    const auto* known = store_.graph() ? store_.graph()->value(value.value()) : nullptr;
    const bool state = known && (known->role() == snapshot::INITIALIZER || known->role() == snapshot::STATE);
    if (value.step() >= 0 && !(state && position.in_step())) emit watchedRead(value);
  }
}

}  // namespace stepscope
