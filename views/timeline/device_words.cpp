// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/timeline/device_words.h"

#include "views/common/format.h"

namespace stepscope {

QStringList deviceLines(const snapshot::DeviceWork& device) {
  if (device.rung().empty()) return {};
  const std::string& rung = device.rung();
  QStringList lines{
      QStringLiteral("work of the device (rung %1): %2")
          .arg(format::visible(rung), rung == "counters"   ? QStringLiteral("by records of the profiler, and counted")
                                      : rung == "activity" ? QStringLiteral("by records of the profiler")
                                      : rung == "events"   ? QStringLiteral("by events around it")
                                                         : QStringLiteral("not recorded, by the times of the host alone"))};
  if (!device.rung_reason().empty())
    lines << QStringLiteral("no higher rung: %1").arg(format::visible(device.rung_reason()));
  if (!device.counted().empty()) lines << QStringLiteral("counted: %1").arg(format::visible(device.counted()));
  if (device.uncounted() > 0) lines << QStringLiteral("kernels without counters: %1").arg(format::count(device.uncounted()));
  if (device.lost() > 0) lines << QStringLiteral("records that are missing: %1").arg(format::count(device.lost()));
  return lines;
}

}  // namespace stepscope
