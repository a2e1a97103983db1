// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/window_settings.h"

#include <QSettings>

#include "views/common/snapshot_store.h"

namespace stepscope {

SettingsReader WindowSettings::read() {
  return SettingsReader([this](const QString& problem) {
    if (told_.contains(problem)) return;
    told_ << problem;
    store_.addLog({QStringLiteral("warning"), problem});
  });
}

void WindowSettings::set(const QString& key, const QVariant& value) const {
  if (remember_) QSettings().setValue(key, value);
}

}  // namespace stepscope
