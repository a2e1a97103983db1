// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/layouts.h"

#include <QJsonArray>
#include <algorithm>

namespace stepscope {
namespace {

const std::array<QString, kAreaCount> kAreaNames = {QStringLiteral("left"), QStringLiteral("centre"),
                                                    QStringLiteral("centre_right"), QStringLiteral("right"),
                                                    QStringLiteral("bottom")};

constexpr int kFarthest = 100'000, kLeast = 200;  // of a window, in pixels

ViewLayout layout(const char* name, QStringList left, QStringList centre, QStringList centreRight, QStringList right,
                  QStringList bottom) {
  ViewLayout l;
  l.name = QLatin1String(name);
  l.views = {std::move(left), std::move(centre), std::move(centreRight), std::move(right), std::move(bottom)};
  return l;
}

// Of a layout that an older version kept: Compare was four views.
QString viewOfNow(const QString& id) {
  for (const char* page : {"compare_options", "compare_times", "divergence"})
    if (id == QLatin1String(page)) return QStringLiteral("compare");
  return id;
}

}  // namespace

QJsonObject ViewLayout::toJson() const {
  QJsonObject json{{"name", name}, {"left", left}, {"right", right}, {"bottom", bottom}, {"centre", centre}};
  QJsonObject areas;
  for (std::size_t i = 0; i < kAreaCount; ++i) {
    areas[kAreaNames[i]] = QJsonObject{{"views", QJsonArray::fromStringList(views[i])}, {"front", front[i]}};
  }
  json["areas"] = areas;
  QJsonArray windows;
  for (const FloatingView& f : floating) {
    const QRect& r = f.geometry;
    windows << QJsonObject{{"view", f.id},
                           {"home", kAreaNames[static_cast<std::size_t>(f.home)]},
                           {"place", QJsonArray{r.x(), r.y(), r.width(), r.height()}}};
  }
  if (!windows.isEmpty()) json["windows"] = windows;
  return json;
}

ViewLayout ViewLayout::fromJson(const QJsonObject& json) {
  ViewLayout l;
  l.name = json["name"].toString();
  const auto share = [&json](const char* key, double fallback) {
    return std::clamp(json[QLatin1String(key)].toDouble(fallback), 0.05, 0.8);
  };
  l.left = share("left", l.left);
  l.right = share("right", l.right);
  l.bottom = share("bottom", l.bottom);
  l.centre = share("centre", l.centre);
  QStringList seen;  // a view stands in one place only
  const QJsonObject areas = json["areas"].toObject();
  for (std::size_t i = 0; i < kAreaCount; ++i) {
    const QJsonObject area = areas[kAreaNames[i]].toObject();
    for (const QJsonValue& id : area["views"].toArray()) {
      const QString view = viewOfNow(id.toString());
      if (!id.isString() || seen.contains(view)) continue;
      seen << view;
      l.views[i] << view;
    }
    l.front[i] = viewOfNow(area["front"].toString());
  }
  for (const QJsonValue& value : json["windows"].toArray()) {
    const QString id = viewOfNow(value["view"].toString());
    const auto home = std::find(kAreaNames.begin(), kAreaNames.end(), value["home"].toString());
    if (id.isEmpty() || seen.contains(id)) continue;
    seen << id;
    const auto number = [&value](int at, int low) {
      return static_cast<int>(std::clamp<double>(value["place"][at].toDouble(low), low, kFarthest));
    };
    l.floating.push_back({id, home == kAreaNames.end() ? Area::kBottom : static_cast<Area>(home - kAreaNames.begin()),
                          QRect(number(0, -kFarthest), number(1, -kFarthest), number(2, kLeast), number(3, kLeast))});
  }
  return l;
}

const std::vector<ViewLayout>& shippedLayouts() {
  static const std::vector<ViewLayout> kLayouts = [] {
    std::vector<ViewLayout> all = {
        layout("Explore", {"model", "instructions"}, {"graph"}, {}, {"node", "tensors", "source"},
               {"alerts", "log", "startup_table", "determinism"}),
        layout(
            "Step", {"instructions", "model", "breakpoints"}, {"graph"}, {}, {"tensors", "node", "watch"},
            {"memory", "timeline", "training", "value_history", "precision", "startup_chart", "batch", "source", "alerts"}),
        layout("Profile", {"instructions", "runs"}, {"timeline", "startup_chart"}, {}, {"node", "options"},
               {"flame", "hot_ops", "ledger", "trials", "startup_table", "training", "value_history", "ranks", "sql"}),
        layout("Memory", {"buffers", "instructions"}, {"memory"}, {}, {"buffer", "tensors", "node"},
               {"recompute", "capacity", "graph", "options"}),
        layout("Compare", {"runs"}, {"compare", "graph"}, {}, {"node", "options"}, {"determinism", "bisect", "sql"}),
    };
    all[2].bottom = 0.42;
    all[3].bottom = 0.36;
    all[4].bottom = 0.4;
    return all;
  }();
  return kLayouts;
}

Area homeOf(const QString& view) {
  for (const ViewLayout& layout : shippedLayouts())
    for (std::size_t area = 0; area < kAreaCount; ++area)
      if (layout.views[area].contains(view)) return static_cast<Area>(area);
  return Area::kBottom;
}

}  // namespace stepscope
