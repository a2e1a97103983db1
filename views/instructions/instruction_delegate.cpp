// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/instructions/instruction_delegate.h"

#include <QPainter>
#include <QPainterPath>

#include "views/common/format.h"
#include "views/common/tokens.h"
#include "views/instructions/instruction_model.h"

namespace stepscope {
namespace {

// Have room beside the bytes, or the bytes make room for them.
const QString kUsualOp = QStringLiteral("BatchedMatMul"), kUsualPlace = QStringLiteral("h.11.mlp.fc");

struct Columns {
  int number, time, bytes, gap, edge, mark;
};

Columns columnsOf(int lines, const QFontMetrics& small) {
  const Metrics m = Metrics::current();
  const int digits = std::max(3, static_cast<int>(QString::number(lines).size()));
  return {small.horizontalAdvance(QString(digits, '0')) + 2,
          small.horizontalAdvance(QStringLiteral("00.0 ms")),
          small.horizontalAdvance(QStringLiteral("000 MiB")),
          qRound(0.6 * m.unit),
          qRound(0.4 * m.unit),
          qRound(0.62 * m.unit)};
}

// "h.1.mlp.proj · d weight" in that width: the module whole and what of the rest has room, or both ends of the module.
QString shortPlace(const QString& place, const QFontMetrics& metrics, int width) {
  if (metrics.horizontalAdvance(place) <= width) return place;
  const auto at = place.indexOf(QStringLiteral(" · "));
  const QString module = at < 0 ? place : place.left(at);
  if (metrics.horizontalAdvance(module) > width) return format::elided(module, metrics, width);
  constexpr int kLeastLetters = 8;  // " · d wei…"
  const QString rest =
      metrics.elidedText(place.mid(module.size()), Qt::ElideRight, width - metrics.horizontalAdvance(module));
  return rest.size() > kLeastLetters ? module + rest : module;
}

}  // namespace

InstructionDelegate::InstructionDelegate(const SelectionModel& selection, QObject* parent)
    : QStyledItemDelegate(parent), selection_(selection) {}

int InstructionDelegate::gutterWidth() { return qRound(1.3 * Metrics::current().unit); }

QSize InstructionDelegate::sizeHint(const QStyleOptionViewItem&, const QModelIndex&) const {
  return {160, Metrics::current().row};
}

void InstructionDelegate::paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const {
  const auto* model = static_cast<const InstructionModel*>(index.model());
  const InstructionModel::Line line = model->line(index.row());
  const Tokens& t = Tokens::current();
  const Metrics m = Metrics::current();
  const QRect r = option.rect;
  const QFont small = smallFont();
  const QFontMetrics smallMetrics(small);
  painter->save();
  painter->setRenderHint(QPainter::Antialiasing);

  if (line.kind == InstructionModel::kPhase) {
    painter->fillRect(r, t.raised);
    painter->fillRect(r.left(), r.top(), r.width(), 1, t.border);
    painter->fillRect(r.left(), r.bottom(), r.width(), 1, t.border);
    QFont strong = small;
    strong.setWeight(QFont::DemiBold);
    painter->setFont(strong);
    painter->setPen(t.muted);
    const QRect inner = r.adjusted(m.padding, 0, -qRound(0.4 * m.unit), 0);
    const int title = QFontMetrics(strong).horizontalAdvance(line.op) + m.padding;
    painter->drawText(inner, Qt::AlignVCenter | Qt::AlignLeft, line.op);
    painter->setFont(small);
    painter->drawText(inner.adjusted(title, 0, 0, 0), Qt::AlignVCenter | Qt::AlignRight,
                      smallMetrics.elidedText(line.place, Qt::ElideRight, inner.width() - title));
    painter->restore();
    return;
  }
  if (line.kind == InstructionModel::kGap) {
    painter->setFont(small);
    painter->setPen(t.faint);
    painter->drawText(
        r, Qt::AlignCenter,
        QStringLiteral("⋯ ") + QStringLiteral("%1 left out").arg(format::count(line.hidden)) + QStringLiteral(" ⋯"));
    painter->restore();
    return;
  }

  const bool current = selection_.currentInstruction() == line.index;
  const bool selected = selection_.selection().instruction == line.index;
  // Others of the selected group: the bar of a selection without its ground.
  if (!selected && selection_.selection().group && selection_.selection().group->contains(model->nodeOf(line.index))) {
    painter->fillRect(r, mixed(t.select, t.panel, 0.5));
    painter->fillRect(r.left(), r.top(), 2, r.height(), t.accent);
  }
  if (current) painter->fillRect(r, t.currentRow);
  if (selected) {
    painter->fillRect(r, current ? mixed(t.select, t.currentRow, 0.35) : t.select);
    painter->fillRect(r.left(), r.top(), 2, r.height(), t.accent);
  } else if (option.state & QStyle::State_MouseOver && !current) {
    painter->fillRect(r, t.hover);
  }

  const int gutter = gutterWidth();
  const QPointF middle(r.left() + gutter / 2.0 + 1, r.center().y() + 0.5);
  // Both have room beside each other, the dot next to the row as in the graph.
  const bool both = current && (line.breakpoint || line.breakpointOff);
  const double dot = (both ? 0.28 : 0.33) * m.unit, arrowSize = both ? 0.85 : 1;
  const QPointF dotAt = middle + QPointF(both ? 0.36 * m.unit : 0, 0);
  if (line.breakpoint) {
    painter->setPen(Qt::NoPen);
    painter->setBrush(t.error);
    painter->drawEllipse(dotAt, dot, dot);
  } else if (line.breakpointOff) {
    painter->setPen(QPen(t.error, 1.3));
    painter->setBrush(Qt::NoBrush);
    painter->drawEllipse(dotAt, dot - 0.5, dot - 0.5);
  }
  if (current) {
    const QPointF arrowAt = middle - QPointF(both ? 0.33 * m.unit : 0, 0);
    const auto corner = [&](double x, double y) { return arrowAt + arrowSize * m.unit * QPointF(x, y); };
    QPainterPath arrow(corner(-0.3, -0.42));
    arrow.lineTo(corner(0.42, 0));
    arrow.lineTo(corner(-0.3, 0.42));
    arrow.closeSubpath();
    painter->setPen(Qt::NoPen);
    painter->setBrush(t.warn);
    painter->drawPath(arrow);
  }

  const auto [number, time, bytes, gap, edge, mark] = columnsOf(model->rowCount(), smallMetrics);
  int right = r.right() - edge;
  painter->setFont(small);
  // Narrow panels lose the bytes first, then the time: operator and module stay readable.
  const bool showBytes = hasRoomForBytes(r.width(), model->rowCount(), option.fontMetrics, smallMetrics),
             showTime = r.width() > 11 * m.unit;
  // What takes no time says why there.
  const QString told = !showBytes && line.time.isEmpty() ? line.bytes : line.time;
  if (showBytes) {
    painter->setPen(t.muted);
    painter->drawText(QRect(right - bytes - gap, r.top(), bytes + gap, r.height()), Qt::AlignVCenter | Qt::AlignRight,
                      line.bytes);
    right -= bytes + gap;
  }
  if (showTime) {
    QFont f = small;
    f.setItalic(!line.fresh && !line.left && !line.time.isEmpty());
    painter->setFont(f);
    painter->setPen(line.fresh || selected || current ? t.muted : t.faint);
    const int width = line.left ? smallMetrics.horizontalAdvance(told) : time;
    painter->drawText(QRect(right - width - gap, r.top(), width + gap, r.height()), Qt::AlignVCenter | Qt::AlignRight, told);
    // The name has what a short time leaves.
    right -= std::min(width, smallMetrics.horizontalAdvance(told)) + gap;
  }
  int x = r.left() + gutter;
  painter->setFont(small);
  painter->setPen(selected || current ? t.muted : t.faint);
  painter->drawText(QRect(x, r.top(), number, r.height()), Qt::AlignVCenter | Qt::AlignRight, QString::number(line.index));
  x += number + qRound(0.5 * m.unit);
  QColor hue = t.category(line.category);
  if (!line.fresh && !current && !selected) hue = mixed(hue, t.panel, 0.6);
  painter->setPen(Qt::NoPen);
  painter->setBrush(hue);
  painter->drawRoundedRect(QRectF(x, r.center().y() - mark / 2.0 + 0.5, mark, mark), 2, 2);
  x += mark + qRound(0.45 * m.unit);
  const int room = right - x;
  const Words shown = words(line.op, line.place, option.fontMetrics, smallMetrics, room);
  painter->setFont(option.font);
  painter->setPen(line.fresh || current || selected ? t.text : t.muted);
  painter->drawText(QRect(x, r.top(), room, r.height()), Qt::AlignVCenter | Qt::AlignLeft, shown.op);
  if (!shown.place.isEmpty()) {
    painter->setFont(small);
    painter->setPen(selected || current || line.fresh ? t.muted : t.faint);
    painter->drawText(QRect(x + shown.opWidth, r.top(), room - shown.opWidth, r.height()), Qt::AlignVCenter | Qt::AlignLeft,
                      shown.place);
  }
  painter->restore();
}

int InstructionDelegate::columnsWidth(int lines, const QFontMetrics& small) {
  const auto [number, time, bytes, gap, edge, mark] = columnsOf(lines, small);
  return gutterWidth() + number + mark + qRound(0.5 * Metrics::current().unit) + qRound(0.45 * Metrics::current().unit) +
         time + bytes + 2 * gap + edge;
}

bool InstructionDelegate::hasRoomForBytes(int width, int lines, const QFontMetrics& op, const QFontMetrics& small) {
  const int names =
      op.horizontalAdvance(kUsualOp) + small.horizontalAdvance(kUsualPlace) + qRound(0.5 * Metrics::current().unit);
  return width - columnsWidth(lines, small) >= names;
}

InstructionDelegate::Words InstructionDelegate::words(const QString& op, const QString& place, const QFontMetrics& opMetrics,
                                                      const QFontMetrics& placeMetrics, int room) {
  const Metrics m = Metrics::current();
  const int gap = qRound(0.4 * m.unit), shared = room - gap, least = 3 * m.unit;
  Words words;
  if (place.isEmpty() || shared < 2 * least) {
    words.op = format::elided(op, opMetrics, room);
    words.opWidth = opMetrics.horizontalAdvance(words.op);
    return words;
  }
  const auto at = place.indexOf(QStringLiteral(" · "));
  const int module = placeMetrics.horizontalAdvance(at < 0 ? place : place.left(at));
  words.op = format::elided(op, opMetrics, shared - std::min(module + 1, shared / 2));
  words.opWidth = opMetrics.horizontalAdvance(words.op) + gap;
  words.place = shortPlace(place, placeMetrics, room - words.opWidth);
  return words;
}

}  // namespace stepscope
