// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/open_dialog/set_up_settings.h"

#include <QObject>
#include <QStringList>
#include <algorithm>
#include <iterator>

#include "views/common/format.h"

namespace stepscope {
namespace {

// Of an extent or an output: its beginning and its end.
QString shortName(const std::string& name) {
  constexpr int kMost = 40;
  const QString text = format::visible(name);
  return text.size() <= kMost ? text : text.left(kMost / 2) + QStringLiteral("…") + text.right(kMost / 2 - 1);
}

}  // namespace

QString sentence(QString text) {
  if (!text.isEmpty()) text[0] = text[0].toUpper();
  return text;
}

QString dimensionsText(const snapshot::ModelInfo& model, bool fromData) {
  if (model.dimensions_size() == 0)
    return QStringLiteral("The inputs have no symbolic dimensions: every extent is in the file");
  if (fromData) return QStringLiteral("The data says how long each is");
  QStringList why;
  for (const auto& d : model.dimensions()) {
    const QString name = shortName(d.name());
    why << (d.fixed() ? QStringLiteral("%1 is %2 because %3").arg(name).arg(d.extent()).arg(format::visible(d.reason()))
                      : QStringLiteral("%1 is %2 unless set").arg(name).arg(d.extent()));
  }
  return why.join(QStringLiteral("\n"));
}

std::vector<std::pair<std::string, std::string>> settingsOf(const snapshot::Configure& configuration) {
  std::vector<std::pair<std::string, std::string>> all;
  for (const auto& s : configuration.settings()) {
    std::string name = s.name(), value = s.value();
    if (const auto equals = value.find('='); name == "set" && equals != std::string::npos) {
      name = value.substr(0, equals);
      value = value.substr(equals + 1);
    }
    if (name != "dim" && name != "group" && name != "pad")
      std::erase_if(all, [&name](const auto& other) { return other.first == name; });
    all.emplace_back(std::move(name), std::move(value));
  }
  return all;
}

bool hasField(const std::string& setting) {
  static constexpr const char* kFields[] = {
      "data",           "dim",        "loss",  "logits", "labels", "loss-fn", "optimizer", "lr", "weight-decay", "momentum",
      "clip-grad-norm", "accumulate", "train", "freeze", "seed",   "threads", "device"};
  return std::find(std::begin(kFields), std::end(kFields), setting) != std::end(kFields);
}

}  // namespace stepscope
