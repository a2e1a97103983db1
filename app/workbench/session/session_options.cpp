// SPDX-License-Identifier: GPL-3.0-or-later
// Options that are set while a model is open.
#include <algorithm>
#include <utility>

#include "app/workbench/session/model_session.h"
#include "app/workbench/session/session_desires.h"
#include "app/workbench/session/session_model.h"
#include "views/common/format.h"

namespace stepscope {
namespace {

// "recompute.budget = 7.60 MiB": a size has its unit.
QString settingText(const std::vector<snapshot::Option>& options, const QString& name, const QString& value) {
  const bool size = std::any_of(options.begin(), options.end(), [known = name.toStdString()](const snapshot::Option& o) {
    return o.name() == known && o.kind() == "bytes";
  });
  const std::optional<qint64> bytes = size ? format::bytesOf(value) : std::nullopt;
  return QStringLiteral("%1 = %2").arg(name, bytes && *bytes > 0 ? format::bytes(*bytes) : value);
}

void setInAdvance(const std::pair<QString, QString>& setting, std::vector<snapshot::Option>& options) {
  const std::string name = setting.first.toStdString(), value = setting.second.toStdString();
  for (snapshot::Option& option : options) {
    if (option.name() != name || option.value() == value) continue;
    option.set_value(value);
    option.set_set_by("window");
    option.set_effect("from the next step on");
  }
}

}  // namespace

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

void SessionDesires::setOptions(const OptionSettings& settings) {
  if (settings.empty() || (!parts_.model.built() && link_.refuse())) return;
  desired_.setOptions(settings);
  if (!link_.busy()) {
    catchUp({});
    return;
  }
  showWanted(optionsBefore_ ? *optionsBefore_ : store_.options());
  QStringList names;
  for (const auto& [name, value] : settings) names << settingText(store_.options(), name, value);
  emit session_.note(QStringLiteral("%1 from the next step on").arg(names.join(QStringLiteral(", "))));
  if (run_.fullSpeed) {
    run_.interrupted = true;
    link_.client().cancelAll();
  }
}

void SessionDesires::told(const snapshot::OptionList& options) {
  optionsTouched_ = options.waits();
  showWanted({options.options().begin(), options.options().end()});
}

// The worker's list may be of before it took what was sent: a build that was cancelled reads it, too.
void SessionDesires::showWanted(std::vector<snapshot::Option> workers) {
  optionsBefore_.reset();
  if (!sent_.empty() || optionsWait()) optionsBefore_ = workers;
  for (const auto* wanted : {&std::as_const(sent_), &desired_.options()})
    for (const auto& setting : *wanted) setInAdvance(setting, workers);
  store_.setOptions(std::move(workers));
}

void SessionDesires::sentWasTaken() {
  sent_.clear();
  if (optionsBefore_) showWanted(*std::exchange(optionsBefore_, std::nullopt));
}

void SessionDesires::showOptionsBefore() {
  if (optionsBefore_) store_.setOptions(*std::exchange(optionsBefore_, std::nullopt));
}

void SessionDesires::sendOptions(Then then) {
  const OptionSettings settings = desired_.takeOptions();
  snapshot::Request request;
  auto* set = request.mutable_set_option();
  QStringList text;
  for (const auto& [name, value] : settings) {
    text << settingText(store_.options(), name, value);
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
  link_.move(
      std::move(request), QStringLiteral("setting %1").arg(settings.front().first),
      [this, settings, then, text = text.join(QStringLiteral(", "))] {
        sentWasTaken();
        parts_.model.addOptions(settings);  // for the next worker
        if (!optionsTouched_) parts_.model.shownIsConfigured();
        if (store_.position().in_step()) selection_.setCurrentInstruction(store_.position().instruction());
        emit session_.note(optionsTouched_ ? QStringLiteral("%1 from the next step on").arg(text) : text);
        if (then) then();
      },
      [this, settings, then, ofRun = run_.on] {
        sent_.clear();
        if (!link_.client().alive()) return;
        // Who pauses a run means the run; who cancels a change means the change.
        if (ofRun && link_.newestError() == "cancelled") {
          desired_.giveBack(settings);
          return goOnAfterNewer(then);
        }
        emit session_.optionsRefused(settings);
        // What was shown in advance is not so.
        snapshot::Request options;
        options.mutable_options();
        link_.ask(std::move(options), QStringLiteral("reading the options"), {});
      });
}

}  // namespace stepscope
