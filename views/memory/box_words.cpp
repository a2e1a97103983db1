// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/memory/box_words.h"

#include <QRegularExpression>
#include <algorithm>

#include "views/common/format.h"
#include "views/common/names.h"

namespace stepscope {

QString boxName(const MemoryModel& model, const snapshot::Buffer& b, TextCache& text, double room) {
  static const QRegularExpression kSeparators(QStringLiteral("[./:]+")), kLeading(QStringLiteral("^[./:]+"));
  const QString whole = format::visible(b.name().empty() ? "workspace" : b.name());
  QString name = whole;
  while (!name.isEmpty()) {
    // A number belongs to the part before it: "h.0", never "0".
    if (text.width(name) <= room && (name == whole || !name.front().isDigit())) return name;
    const auto at = name.indexOf(kSeparators);
    name = at < 0 ? QString() : name.mid(at).remove(kLeading);
  }
  const snapshot::Instruction* in = b.value() < 0 ? nullptr : model.plan().instruction(b.first());
  const QString op = in == nullptr ? QString() : names::op(*in);
  return text.width(op) <= room ? op : QString();
}

BoxWords boxWords(const MemoryModel& model, const snapshot::Buffer& buffer, TextCache& text, const QRectF& box,
                  std::vector<double> lines) {
  constexpr double kMargin = 5, kGap = 8, kClear = 5;  // to the frame, between name and bytes, to a line
  const QString bytes = format::bytes(buffer.bytes());
  const double bytesWidth = text.width(bytes), left = box.left() + kMargin, right = box.right() - kMargin;
  std::sort(lines.begin(), lines.end());
  BoxWords best;
  const auto offer = [&](double from, double to) {
    if (to - from < bytesWidth) return;
    BoxWords words;
    // The name gives way to the bytes: half a number is a wrong one.
    words.name = boxName(model, buffer, text, to - from - bytesWidth - kGap);
    if (best.width > 0 && words.name.size() <= best.name.size()) return;
    words.bytes = bytes;
    words.x = from;
    words.bytesX = from + (words.name.isEmpty() ? 0 : text.width(words.name) + kGap);
    words.width = words.bytesX + bytesWidth - from;
    best = words;
  };
  double from = left;
  for (const double line : lines) {
    if (line < box.left() || line > box.right()) continue;
    offer(from, std::min(right, line - kClear));
    from = std::max(left, line + kClear);
  }
  offer(from, right);
  // A line through the words is better than none.
  if (best.width == 0) offer(left, right);
  return best;
}

QRectF besideMark(const QRectF& words, double x, double room, const QRectF& area) {
  if (x + room <= words.left() || x - room >= words.right()) return words;
  QRectF moved = words;
  if (x + room + words.width() <= area.right()) {
    moved.moveLeft(x + room);
  } else if (x - room - words.width() >= area.left()) {
    moved.moveRight(x - room);
  }
  return moved;
}

}  // namespace stepscope
