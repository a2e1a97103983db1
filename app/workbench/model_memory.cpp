// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/model_memory.h"

#include <QJsonDocument>
#include <QJsonObject>
#include <algorithm>

#include "app/workbench/panel_board.h"
#include "app/workbench/session/model_session.h"
#include "app/workbench/toolbar_facts.h"
#include "app/workbench/window_settings.h"

namespace stepscope {
namespace {

const QString kModelKey = QStringLiteral("view_model");
const QString kBreaksKey = QStringLiteral("view_model_breaks");
// Views whose state names parts of a model.
const QStringList kOfAModel = {QStringLiteral("graph"),   QStringLiteral("instructions"), QStringLiteral("model"),
                               QStringLiteral("buffers"), QStringLiteral("options"),      QStringLiteral("value_history")};

// Views whose state is more than a filter.
const QStringList kLasting = {QStringLiteral("graph"),  QStringLiteral("sql"),    QStringLiteral("log"),
                              QStringLiteral("source"), QStringLiteral("ledger"), QStringLiteral("compare")};
const QString kNan = QStringLiteral("nan"), kInf = QStringLiteral("inf"), kNothing = QStringLiteral("off");
const QString kFilter = QStringLiteral("filter");  // beside others, in an object

}  // namespace

ModelMemory::ModelMemory(const WindowParts& parts, ToolbarFacts& breaks, WindowSettings& settings)
    : parts_(parts), breaks_(breaks), settings_(settings) {
  if (settings_.remember()) {
    model_ = stored_ = settings_.read().text(kModelKey);
    restoreBreaks();
  }
  connect(&parts_.session, &ModelSession::modelInspected, this, [this] { changeTo(parts_.session.modelPath()); });
}

QString ModelMemory::stateFor(const QString& view, const QString& stored) const {
  return !kOfAModel.contains(view) || model_ == stored_ ? lasting(view, stored) : kept_.value(model_).views.value(view);
}

QString ModelMemory::lasting(const QString& view, const QString& state) {
  if (!kLasting.contains(view)) return {};
  QJsonObject object = QJsonDocument::fromJson(state.toUtf8()).object();
  if (!object.contains(kFilter)) return state;
  object[kFilter] = QString();
  return QString::fromUtf8(QJsonDocument(object).toJson(QJsonDocument::Compact));
}

void ModelMemory::remember() {
  settings_.set(kModelKey, stored_ = model_);
  QStringList breaks;
  if (breaksOn(snapshot::Breakpoint::kNan)) breaks << kNan;
  if (breaksOn(snapshot::Breakpoint::kNewInf)) breaks << kInf;
  settings_.set(kBreaksKey, breaks.isEmpty() ? kNothing : breaks.join(','));
}

void ModelMemory::restoreBreaks() {
  const SettingsReader settings = settings_.read();
  const QString text = settings.text(kBreaksKey);
  if (text.isEmpty()) return;
  QStringList breaks = text == kNothing ? QStringList() : text.split(',');
  const bool nan = breaks.removeAll(kNan) > 0, inf = breaks.removeAll(kInf) > 0;
  if (!breaks.isEmpty()) return settings.refuse(kBreaksKey, text, QStringLiteral("nan, inf, nan,inf or off"));
  if (!nan || !inf) breaks_.setBreakOn(nan, inf);
}

bool ModelMemory::breaksOn(int condition) const {
  const auto& all = parts_.store.breakpoints();
  return std::any_of(all.begin(), all.end(),
                     [condition](const auto& b) { return b.condition_case() == condition && b.enabled(); });
}

void ModelMemory::changeTo(const QString& model) {
  if (model.isEmpty() || model == model_) return;
  if (!model_.isEmpty()) {
    Kept& before = kept_[model_];
    before.nan = breaksOn(snapshot::Breakpoint::kNan);
    before.inf = breaksOn(snapshot::Breakpoint::kNewInf);
    for (const QString& id : kOfAModel)
      if (const View* view = parts_.board.find(id)) before.views[id] = view->saveState();
    const Kept now = kept_.value(model);
    for (const QString& id : kOfAModel)
      if (View* view = parts_.board.find(id)) view->restoreState(now.views.value(id));
    if (breaksOn(snapshot::Breakpoint::kNan) != now.nan || breaksOn(snapshot::Breakpoint::kNewInf) != now.inf)
      breaks_.setBreakOn(now.nan, now.inf);
  }
  model_ = model;
}

}  // namespace stepscope
