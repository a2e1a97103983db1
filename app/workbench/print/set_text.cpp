// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/print/set_text.h"

#include <QPainter>
#include <QTextCharFormat>
#include <QTextOption>
#include <algorithm>

#include "storage/report/format.h"

namespace stepscope::print {
namespace {

using storage::doc::Style;
using storage::doc::TextPart;

constexpr double kWidest = 1e7;
constexpr double kSmallText = 0.72;  // of the letters around it

QTextCharFormat formatOf(const Paper& paper, const TextPart& part, const TextLook& look) {
  QTextCharFormat format;
  switch (part.style) {
    case Style::kPlain:
    case Style::kMono: break;  // names break less well in letters of one width, and take more room
    case Style::kStrong: format.setFontWeight(QFont::DemiBold); break;
    case Style::kDim: format.setForeground(inkOf("muted")); break;
    case Style::kBad: format.setForeground(inkOf("error")); break;
    case Style::kChip: format.setForeground(inkOf(part.colour.empty() ? "muted" : part.colour)); break;
    case Style::kSmall: {
      QFont small = paper.font(look.size * kSmallText);
      format.setFont(small);
      format.setForeground(inkOf("muted"));
      break;
    }
  }
  return format;
}

}  // namespace

SetText::SetText(const Paper& paper, const storage::doc::Text& text, const TextLook& look, double width) {
  QString all;
  QList<QTextLayout::FormatRange> ranges;
  const auto add = [&](const QString& shown, const QTextCharFormat& format) {
    ranges.push_back({static_cast<int>(all.size()), static_cast<int>(shown.size()), format});
    all += shown;
  };
  if (!look.swatch.empty()) {
    QTextCharFormat square;
    square.setForeground(inkOf(look.swatch));
    add(QStringLiteral("■ "), square);
  }
  for (const TextPart& part : text.parts)
    add(QString::fromStdString(storage::visibleText(part.text)).replace('\n', QChar(QChar::LineSeparator)),
        formatOf(paper, part, look));
  QFont font = paper.font(look.size);
  if (look.bold) font.setWeight(QFont::DemiBold);
  QTextCharFormat base;
  base.setForeground(look.colour);
  ranges.prepend({0, static_cast<int>(all.size()), base});
  layout_ = std::make_unique<QTextLayout>(all, font);
  layout_->setFormats(ranges);
  QTextOption option(look.right && width > 0 ? Qt::AlignRight : Qt::AlignLeft);
  option.setWrapMode(width > 0 ? QTextOption::WrapAtWordBoundaryOrAnywhere : QTextOption::NoWrap);
  option.setUseDesignMetrics(true);
  layout_->setTextOption(option);
  layout_->beginLayout();
  for (QTextLine line = layout_->createLine(); line.isValid(); line = layout_->createLine()) {
    line.setLineWidth(width > 0 ? width : kWidest);
    line.setPosition(QPointF(0, height_));
    height_ += line.height();
    width_ = std::max(width_, line.naturalTextWidth());
  }
  layout_->endLayout();
}

void SetText::draw(QPainter& painter, QPointF upperLeft) const { layout_->draw(&painter, upperLeft); }

}  // namespace stepscope::print
