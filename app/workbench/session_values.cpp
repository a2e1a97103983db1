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
