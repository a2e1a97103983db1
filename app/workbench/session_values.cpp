// SPDX-License-Identifier: GPL-3.0-or-later
// Breakpoints, tensors, options and what else is asked of a built model.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "app/workbench/session.h"
#include "views/common/findings.h"
#include "views/common/format.h"
#include "views/common/names.h"

namespace stepscope {
namespace {
snapshot::Request editRequest(int value, const std::vector<qint64>& index, double number) {
  snapshot::Request request;
  auto* edit = request.mutable_edit();
  edit->set_value(value);
  for (const qint64 i : index) edit->add_index(i);
  edit->set_number(number);
  return request;
}

std::string editText(const snapshot::EditTensor& edit) {
  if (!edit.path().empty()) return fmt::format("loaded from '{}'", edit.path().substr(edit.path().rfind('/') + 1));
  if (edit.fill()) return fmt::format("filled with {:g}", edit.number());
  return fmt::format("element [{}] set to {:g}", fmt::join(edit.index(), ", "), edit.number());
}
}  // namespace

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
  this->request(std::move(request), tr("reading a tensor"), [this, value](const Delivery& d) {
    if (d.response->has_tensor()) {
      absorb(d);
    } else if (d.response->has_error()) {
      // Shown where the values would stand.
      auto tensor = std::make_shared<snapshot::TensorData>();
      tensor->set_value(value);
      tensor->set_unavailable(d.response->error().message());
      store_.addTensor(tensor);
    }
  });
}

void Session::watch(int value, bool on) {
  std::vector<int> values = store_.watched();
  std::erase(values, value);
  if (on) values.push_back(value);
  watchAll(values);
}

void Session::watchAll(const std::vector<int>& values) {
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
    if (store_.position().in_step()) stopped();
    emit note(store_.position().in_step() ? tr("Kept from here on") : tr("Kept from the next step on"));
  });
}

void Session::editTensor(int value, const std::vector<qint64>& index, double number, bool fill) {
  snapshot::Request request = editRequest(value, index, number);
  request.mutable_edit()->set_fill(fill);
  edit(std::move(request));
}

void Session::editElement(int value, const std::vector<qint64>& index, double number, double before, bool undoable) {
  const auto answer = [this, value, index](const QString& problem) { store_.findings().setEdit({value, index, problem}); };
  if (busy_) return answer(tr("Still %1; Esc cancels").arg(client_.activity()));
  edit(
      editRequest(value, index, number), before,
      [this, answer, edit = ElementEdit{value, index, before, number}, undoable] {
        answer({});
        if (undoable) emit elementEdited(edit);
      },
      answer);
}

bool Session::takesBack(const Edit& later, const Edit& earlier) {
  const auto &a = earlier.request.edit(), &b = later.request.edit();
  const bool sameElement =
      a.value() == b.value() && std::equal(a.index().begin(), a.index().end(), b.index().begin(), b.index().end());
  return earlier.before && later.before && sameElement && later.step == earlier.step &&
         later.instruction == earlier.instruction && b.number() == *earlier.before;
}

void Session::edit(snapshot::Request request, std::optional<double> before, Then then,
                   std::function<void(const QString&)> refused) {
  if (refuse()) return;
  const auto& p = store_.position();
  const Edit done{p.step(), p.in_step() ? p.instruction() : -1, request, before};
  move(
      std::move(request), tr("editing"),
      [this, done, then = std::move(then)] {
        edits_.push_back(done);
        if (then) then();
      },
      {}, std::move(refused));
}

void Session::moveEdits(const std::shared_ptr<const GraphSnapshot>& before) {
  const snapshot::Position& p = store_.position();
  const auto& after = store_.graph();
  if (!p.in_step() || !before || !after || before == after) return;
  for (Edit& e : edits_) {
    if (e.step != p.step() || e.instruction < 0) continue;
    const auto* value = before->value(e.request.edit().value());
    const auto& values = after->graph().values();
    const auto same =
        std::find_if(values.begin(), values.end(), [value](const auto& v) { return value && v.name() == value->name(); });
    if (same != values.end()) e.request.mutable_edit()->set_value(same->id());
    e.instruction = std::min(e.instruction, p.instruction());
  }
}

void Session::tellOfHand(std::int64_t step) {
  snapshot::Alert alert;
  alert.set_severity(snapshot::Alert::INFO);
  alert.set_step(step);
  alert.set_node(-1);
  alert.set_value(-1);
  std::vector<const Edit*> standing;
  for (const Edit& e : edits_) {
    if (e.step != step) continue;
    if (!standing.empty() && takesBack(e, *standing.back()))
      standing.pop_back();
    else
      standing.push_back(&e);
  }
  for (const Edit* e : standing) {
    const auto& edit = e->request.edit();
    const auto* value = store_.graph() ? store_.graph()->value(edit.value()) : nullptr;
    alert.set_code("edited");
    alert.set_value(edit.value());
    alert.set_node(value ? store_.graph()->producer(edit.value()) : -1);
    alert.set_instruction(e->instruction);
    alert.set_message(fmt::format("{} by hand: {}", value ? '\'' + value->name() + '\'' : "a value", editText(edit)));
    emit alertRaised(alert);
  }
  if (stops_.count > 0) {
    alert.set_code("stopped");
    alert.set_value(-1);
    alert.set_node(-1);
    alert.set_instruction(stops_.first);
    alert.set_message(fmt::format("stopped {}{}; the time of the step includes the waiting",
                                  stops_.count == 1 ? "once" : fmt::format("{} times", stops_.count),
                                  stops_.breaks.empty() ? "" : fmt::format(" ({})", fmt::join(stops_.breaks, "; "))));
    emit alertRaised(alert);
  }
  stops_ = {};
}

void Session::setOptions(const OptionSettings& settings) {
  if (settings.empty() || (!built_ && refuse())) return;
  for (const auto& setting : settings) {
    std::erase_if(waiting_, [&setting](const auto& w) { return w.first == setting.first; });
    waiting_.push_back(setting);
  }
  if (!busy_) {
    sendOptions({});
    return;
  }
  QStringList names;
  if (!optionsBefore_) optionsBefore_ = store_.options();
  auto shown = store_.options();
  for (const auto& [name, value] : settings) {
    names << tr("%1 = %2").arg(name, value);
    for (auto& option : shown) {
      if (QString::fromStdString(option.name()) != name) continue;
      option.set_value(value.toStdString());
      option.set_set_by("window");
      option.set_effect(tr("from the next step on").toStdString());
    }
  }
  store_.setOptions(std::move(shown));
  emit note(tr("%1 from the next step on").arg(names.join(QStringLiteral(", "))));
  if (training_) {
    interrupted_ = true;
    client_.cancelAll();
  }
}

void Session::sendOptions(Then then) {
  const OptionSettings settings = std::exchange(waiting_, {});
  if (settings.empty()) {
    if (then) then();
    return;
  }
  snapshot::Request request;
  auto* set = request.mutable_set_option();
  QStringList text;
  for (const auto& [name, value] : settings) {
    text << tr("%1 = %2").arg(name, value);
    if (text.size() == 1) {
      set->set_name(name.toStdString());
      set->set_value(value.toStdString());
      continue;
    }
    auto* more = set->add_more();
    more->set_name(name.toStdString());
    more->set_value(value.toStdString());
  }
  sent_ = settings;
  move(
      std::move(request), tr("setting %1").arg(settings.front().first),
      [this, settings, then, text = text.join(QStringLiteral(", "))] {
        sent_.clear();
        addSettings(settings, configuration_);  // for the next worker
        if (!optionsTouched_) shownWith_ = configuration_;
        if (store_.position().in_step()) selection_.setCurrentInstruction(store_.position().instruction());
        emit note(optionsTouched_ ? tr("%1 from the next step on").arg(text) : text);
        if (then) then();
      },
      [this] {
        sent_.clear();
        // What was shown in advance is not so.
        snapshot::Request options;
        options.mutable_options();
        if (client_.alive()) ask(std::move(options), tr("reading the options"), {});
      });
}

void Session::recompute(bool whatIf, const QString& plan, qint64 budget) {
  if (!built_ || !client_.alive()) return;
  const RecomputeAnswer question{whatIf, plan, budget, {}};
  // One at a time: of those that come meanwhile only the newest matters.
  if (askingRecompute_) {
    nextRecompute_ = question;
    return;
  }
  askingRecompute_ = true;
  snapshot::Request request;
  request.mutable_recompute()->set_what_if(whatIf);
  request.mutable_recompute()->set_plan(plan.toStdString());
  request.mutable_recompute()->set_budget(budget);
  this->request(
      std::move(request), tr("judging what may be computed again"),
      [this, question](const Delivery& d) {
        if (!d.response->done()) return;
        askingRecompute_ = false;
        const std::optional<RecomputeAnswer> next = std::exchange(nextRecompute_, std::nullopt);
        RecomputeAnswer answer = question;
        const bool sound = d.response->has_recompute();
        if (d.response->has_error())
          answer.problem = QString::fromStdString(d.response->error().message());
        else if (!sound)
          answer.problem = tr("recompute: the worker answered something else; expected a report");
        if (built_)
          store_.findings().setRecompute(
              sound ? std::make_shared<const snapshot::RecomputeReport>(d.response->recompute()) : nullptr,
              std::move(answer));
        if (next) recompute(next->whatIf, next->plan, next->budget);
      },
      !whatIf && store_.findings().recompute());
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
  ask(std::move(request), tr("saving"),
      [this, path](const Delivery&) { emit note(tr("Saved %1").arg(format::visible(path))); });
}

void Session::saveState(const QString& path) {
  if (refuse()) return;
  snapshot::Request request;
  request.mutable_save_state()->set_path(path.toStdString());
  move(std::move(request), tr("saving"), [this, path] { emit note(tr("Saved %1").arg(format::visible(path))); });
}

}  // namespace stepscope
