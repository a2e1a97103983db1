// SPDX-License-Identifier: GPL-3.0-or-later
// Options that are set while a model is open, and what may be computed again.
#include <utility>

#include "app/workbench/session.h"
#include "views/common/findings.h"
#include "views/common/format.h"

namespace stepscope {

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

}  // namespace stepscope
