// SPDX-License-Identifier: GPL-3.0-or-later
// What is printed on: its size, its unit, its letters and colours. Everything on it is measured in units of the device, so
// that text is set as finely as the device can.
#pragma once

#include <QColor>
#include <QFont>
#include <string_view>

class QPagedPaintDevice;

namespace stepscope::print {

struct Paper {
  double width = 0, height = 0;  // of a page without its foot
  double unit = 1;               // of the device in 1/96 inch
  QFont letters;

  static Paper of(const QPagedPaintDevice& device);
  double px(double size) const { return size * unit; }
  QFont font(double size) const;  // in 1/96 inch
};

inline constexpr double kFoot = 28;      // below the text, for the number of the page
inline constexpr double kBodySize = 10;  // of letters
inline constexpr double kSmallSize = 9.3;

// A colour of the palette of reports, as it is on paper; black for a name that is none.
QColor inkOf(std::string_view colour);

}  // namespace stepscope::print
