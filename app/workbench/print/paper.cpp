// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/print/paper.h"

#include <QFontDatabase>
#include <QPagedPaintDevice>
#include <algorithm>

#include "storage/report/style.h"

namespace stepscope::print {

Paper Paper::of(const QPagedPaintDevice& device) {
  Paper paper;
  paper.unit = device.logicalDpiY() / 96.0;
  paper.width = device.width();
  paper.height = device.height() - paper.px(kFoot);
  paper.letters = QFontDatabase::systemFont(QFontDatabase::GeneralFont);
  paper.letters.setHintingPreference(QFont::PreferNoHinting);
  return paper;
}

QFont Paper::font(double size) const {
  QFont font = letters;
  font.setPixelSize(std::max(1, qRound(px(size))));
  return font;
}

QColor inkOf(std::string_view colour) {
  for (const storage::PaletteColour& known : storage::palette())
    if (known.name == colour) return QColor(QLatin1String(known.light.data(), static_cast<qsizetype>(known.light.size())));
  return Qt::black;
}

}  // namespace stepscope::print
