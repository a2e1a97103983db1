// SPDX-License-Identifier: GPL-3.0-or-later
// Layouts: which view stands where. Shipped ones are data; saved ones are JSON in the settings.
#pragma once

#include <QJsonObject>
#include <QRect>
#include <QString>
#include <QStringList>
#include <array>
#include <vector>

namespace stepscope {

enum class Area { kLeft, kCentre, kCentreRight, kRight, kBottom };
constexpr int kAreaCount = 5;

// A view in a window of its own.
struct FloatingView {
  QString id;
  Area home = Area::kBottom;  // where it comes back to
  QRect geometry;             // on the screen, when it was left

  bool operator==(const FloatingView&) const = default;
};

struct ViewLayout {
  QString name;
  std::array<QStringList, kAreaCount> views;  // ids, in tab order; the first is in front unless `front` names another
  std::array<QString, kAreaCount> front;
  std::vector<FloatingView> floating;                             // none of them in `views`
  double left = 0.21, right = 0.22, bottom = 0.26, centre = 0.5;  // shares of the window's width and height

  bool operator==(const ViewLayout&) const = default;
  QJsonObject toJson() const;
  // A layout from settings may be anything: unknown areas are ignored and shares are brought into range.
  static ViewLayout fromJson(const QJsonObject& json);
};

// Explore, Step, Profile, Memory, Compare.
const std::vector<ViewLayout>& shippedLayouts();
// The area of a view in the first of them that has it.
Area homeOf(const QString& view);

}  // namespace stepscope
