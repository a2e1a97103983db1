// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/toolbar_facts.h"

#include <algorithm>

#include "app/workbench/session/model_session.h"
#include "app/workbench/status_line.h"
#include "app/workbench/toolbar.h"
#include "views/common/format.h"

namespace stepscope {

ToolbarFacts::ToolbarFacts(const WindowParts& parts, Toolbar& toolbar)
    : parts_(parts), store_(parts.store), toolbar_(toolbar) {
  connect(&store_, &SnapshotStore::optionsChanged, this, &ToolbarFacts::updateOptions);
  connect(&store_, &SnapshotStore::alertsChanged, this, &ToolbarFacts::updateAlerts);
  connect(&store_, &SnapshotStore::breakpointsChanged, this, &ToolbarFacts::updateBreakOn);
  // A build is no moment, and what it is built for cannot run yet.
  const auto running = [this] { toolbar_.setRunning(parts_.session.busy() || parts_.session.running(), store_.building()); };
  connect(&parts_.session, &ModelSession::busyChanged, this, running);
  connect(&store_, &SnapshotStore::buildingChanged, this, running);
  connect(&store_, &SnapshotStore::workerChanged, this, [this] {
    const snapshot::AttachedScript* script = parts_.session.attached();
    parts_.status.setScript(!script                    ? QString()
                            : script->script().empty() ? QStringLiteral("script")
                                                       : QString::fromStdString(script->script()));
  });
  setBreakOn(true, true);
  updateBreakOn();
}

void ToolbarFacts::updateOptions() {
  int on = 0, total = 0;
  for (const auto& option : store_.options()) {
    // Settings of the training, such as Nesterov momentum, are no optimisations.
    const bool isSwitch = option.choices_size() == 2 && option.choices(0) == "on" &&
                          (option.name().starts_with("pass.") || option.name().starts_with("memory."));
    total += isSwitch;
    on += isSwitch && option.value() == "on";
  }
  toolbar_.setOptions(on, total);
  const auto value = [this](const char* name) {
    for (const auto& o : store_.options())
      if (o.name() == name) return format::visible(o.value());
    return QString();
  };
  QString device = value("device");
  device = device == u"emulated" || device == u"mirror" ? device.left(1).toUpper() + device.mid(1) : device.toUpper();
  const QString precision = value("precision");
  const QString where =
      device.isEmpty() || precision.isEmpty() ? device + precision : QStringLiteral("%1 · %2").arg(device, precision);
  parts_.status.setDevice(where);
  toolbar_.setDevice(where);
}

void ToolbarFacts::updateAlerts() {
  int notes = 0, warnings = 0, errors = 0;
  for (const auto& alert : store_.alerts()) {
    warnings += alert.severity() == snapshot::Alert::WARNING;
    errors += alert.severity() == snapshot::Alert::ERROR;
    notes += alert.severity() == snapshot::Alert::INFO;
  }
  toolbar_.setAlerts(notes, warnings, errors);
}

void ToolbarFacts::setBreakOn(bool nan, bool inf) {
  auto all = store_.breakpoints();
  const auto ofKind = [](auto kind) { return [kind](const snapshot::Breakpoint& b) { return b.condition_case() == kind; }; };
  const auto apply = [&](bool on, auto kind, auto make) {
    const auto it = std::find_if(all.begin(), all.end(), ofKind(kind));
    if (it != all.end()) {
      it->set_enabled(on);
    } else if (on) {
      snapshot::Breakpoint b;
      make(b);
      b.set_enabled(true);
      all.push_back(b);
    }
  };
  apply(nan, snapshot::Breakpoint::kNan, [](auto& b) { b.set_nan(true); });
  apply(inf, snapshot::Breakpoint::kNewInf, [](auto& b) { b.set_new_inf(true); });
  parts_.session.setBreakpoints(all);
}

void ToolbarFacts::updateBreakOn() {
  bool nan = false, inf = false;
  for (const auto& b : store_.breakpoints()) {
    nan = nan || (b.condition_case() == snapshot::Breakpoint::kNan && b.enabled());
    inf = inf || (b.condition_case() == snapshot::Breakpoint::kNewInf && b.enabled());
  }
  toolbar_.setBreakOn(nan && inf ? QStringLiteral("NaN, Inf")
                      : nan      ? QStringLiteral("NaN")
                      : inf      ? QStringLiteral("Inf")
                                 : QStringLiteral("nothing"));
}

}  // namespace stepscope
