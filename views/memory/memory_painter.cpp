// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/memory/memory_painter.h"

#include <QPaintEngine>
#include <QPainterPath>
#include <QRegularExpression>
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "views/common/format.h"
#include "views/common/names.h"
#include "views/drawing/axis_ticks.h"
#include "views/memory/box_raster.h"
#include "views/memory/box_words.h"

namespace stepscope {
namespace {

constexpr std::size_t kMostRectangles = 5'000;

// A round number without the zeros that a measured one keeps: "8 MiB".
QString tickText(std::int64_t bytes) {
  static const QRegularExpression kZeros(QStringLiteral("\\.?0+(?= )"));
  if (bytes == 0) return QStringLiteral("0");
  QString text = format::bytes(bytes);
  return text.contains('.') ? text.replace(kZeros, QString()) : text;
}

}  // namespace

MemoryPainter::MemoryPainter(const MemoryModel& model, const MemoryScale& scale, const MemoryPaintState& state,
                             TextCache& text, QSize size)
    : model_(model), scale_(scale), state_(state), text_(text), size_(size) {}

QString MemoryPainter::instructionName(const MemoryModel& model, int index) {
  const snapshot::Instruction* in = model.plan().instruction(index);
  return in == nullptr ? QString() : format::count(index) + ' ' + names::op(*in);
}

void MemoryPainter::paint(QPainter& p) {
  const Tokens& t = Tokens::current();
  p.setFont(text_.font());
  paintAxes(p, t);
  paintInstructions(p, t);
  p.save();
  p.setClipRect(scale_.area.adjusted(-1, -1, 1, 1));
  paintBoxes(p, t);
  paintLive(p, t);
  paintWords(p, t);
  paintBands(p, t);
  paintSelected(p, t);
  p.restore();
  paintLevels(p, t);
  paintMarks(p, t);
  paintLegend(p, t);
}

void MemoryPainter::paintAxes(QPainter& p, const Tokens& t) {
  const QRectF area = scale_.area;
  const QFontMetricsF metrics(text_.font());
  const double border = static_cast<double>(model_.persistent()), from = scale_.toBytes(scale_.low),
               to = scale_.toBytes(scale_.high);
  const auto ticksOf = [&](double a, double b) {
    return b <= a ? std::vector<double>()
                  : binaryTicks(a, b, std::max(1, static_cast<int>((scale_.toY(a) - scale_.toY(b)) / 34)));
  };
  std::vector<double> ticks = scale_.squeeze == 1 ? ticksOf(from, to) : ticksOf(std::max(from, border), to);
  if (scale_.squeeze != 1 && from < border) {
    // Below the break the scale is another one, so it gets its own numbers and the break its sign.
    std::erase_if(ticks, [&](double v) { return std::abs(scale_.toY(v) - scale_.toY(border)) < 10; });
    ticks.push_back(0);
    ticks.push_back(border);
    p.setPen(t.muted);
    const double y = scale_.toY(border);
    for (const double dy : {-3.0, 1.0})
      p.drawLine(QPointF(area.left() - 4, y + dy + 2.5), QPointF(area.left() + 4, y + dy - 0.5));
  }
  for (const double tick : ticks) {
    if (tick < from || tick > to) continue;
    const double y = scale_.toY(tick);
    p.setPen(t.grid);
    p.drawLine(QPointF(area.left(), y), QPointF(area.right(), y));
    const QString words = tickText(static_cast<std::int64_t>(tick));
    p.setPen(t.faint);
    p.drawText(QPointF(area.left() - 6 - metrics.horizontalAdvance(words), y + metrics.ascent() / 2 - 1), words);
  }
}

void MemoryPainter::paintInstructions(QPainter& p, const Tokens& t) {
  const QRectF area = scale_.area;
  const QFontMetricsF metrics(text_.font());
  const snapshot::Plan& plan = model_.plan().plan();
  const int count = model_.instructions();
  // Phase borders first: their names matter more than round numbers.
  std::vector<std::pair<double, QString>> marks;
  if (plan.first_backward() > 0 && plan.first_backward() < count)
    marks.emplace_back(plan.first_backward(), QStringLiteral("%1 backward").arg(format::count(plan.first_backward())));
  if (plan.first_optimizer() > 0 && plan.first_optimizer() < count)
    marks.emplace_back(plan.first_optimizer(), QStringLiteral("%1 optimizer").arg(format::count(plan.first_optimizer())));
  for (const auto& [at, words] : marks) {
    if (at < scale_.viewBegin || at > scale_.viewEnd) continue;
    QPen line(t.border, 1, Qt::DashLine);
    p.setPen(line);
    p.drawLine(QPointF(scale_.toX(at), area.top()), QPointF(scale_.toX(at), area.bottom() + 3));
  }
  const std::size_t borders = marks.size();
  marks.emplace_back(0, QStringLiteral("0"));
  marks.emplace_back(std::max(1, model_.instructions()), format::count(count));
  for (const double tick : decimalTicks(scale_.viewBegin, scale_.viewEnd, std::max(2, static_cast<int>(area.width() / 90))))
    if (tick == std::round(tick)) marks.emplace_back(tick, format::count(std::llround(tick)));  // there are no halves
  std::vector<std::pair<double, double>> taken;
  for (std::size_t i = 0; i < marks.size(); ++i) {
    const auto& [at, words] = marks[i];
    if (at < scale_.viewBegin - 1e-9 || at > scale_.viewEnd + 1e-9) continue;
    const double width = metrics.horizontalAdvance(words);
    const double x = std::clamp(scale_.toX(at) - width / 2, area.left() - 4, size_.width() - width - 4);
    if (std::any_of(taken.begin(), taken.end(),
                    [&](const auto& o) { return x < o.second + 10 && x + width > o.first - 10; }))
      continue;
    taken.emplace_back(x, x + width);
    p.setPen(i < borders ? t.muted : t.faint);
    p.drawText(QPointF(x, area.bottom() + 5 + metrics.ascent()), words);
  }
}

void MemoryPainter::paintBoxes(QPainter& p, const Tokens& t) {
  std::map<int, std::vector<QRectF>> batches;
  const QRectF area = scale_.area;
  // On a screen many boxes share few pixels; a picture in a file stays one of lines.
  std::optional<BoxRaster> raster;
  if (model_.boxes().size() > kMostRectangles && p.paintEngine()->type() == QPaintEngine::Raster)
    raster.emplace(area, p.device()->devicePixelRatioF());
  for (const MemoryBox& b : model_.boxes()) {
    if (b.low < model_.persistent()) continue;  // a band of its class
    if (b.end < scale_.viewBegin || b.first > scale_.viewEnd || scale_.toUnits(static_cast<double>(b.high)) < scale_.low ||
        scale_.toUnits(static_cast<double>(b.low)) > scale_.high)
      continue;
    const QRectF r = scale_.rectOf(b) & area;
    if (r.isEmpty()) continue;
    if (raster) {
      raster->add(r, b.bufferClass);
    } else {
      batches[b.bufferClass].push_back(r);
    }
    if (r.width() > 70 && r.height() > 13) wide_.emplace_back(r, b.buffer);
  }
  p.setPen(Qt::NoPen);
  if (raster) {
    QList<QColor> colours;
    for (int c = 0; c < snapshot::BufferClass_ARRAYSIZE; ++c) colours << mixed(t.bufferClass(c), t.panel, 0.55);
    raster->paint(p, colours);
  }
  for (const auto& [bufferClass, rects] : batches) {
    p.setBrush(mixed(t.bufferClass(bufferClass), t.panel, 0.55));
    p.drawRects(rects.data(), static_cast<int>(rects.size()));
  }
  if (state_.hovered >= 0 && model_.boxOf(state_.hovered) >= 0) {
    const MemoryBox& b = model_.boxes()[static_cast<std::size_t>(model_.boxOf(state_.hovered))];
    p.setBrush(mixed(t.bufferClass(b.bufferClass), t.panel, 0.8));
    p.drawRect(scale_.rectOf(b));
  }
}

// What is alive in all: above it in the arena are holes.
void MemoryPainter::paintLive(QPainter& p, const Tokens& t) {
  const QRectF area = scale_.area;
  QPainterPath line;
  const int from = std::max(0, static_cast<int>(scale_.viewBegin)),
            to = std::min(model_.instructions(), static_cast<int>(std::ceil(scale_.viewEnd)));
  const int step = std::max(1, (to - from) / std::max(1, static_cast<int>(area.width())));
  for (int i = from; i < to; i += step) {
    std::int64_t most = 0;
    for (int k = i; k < std::min(to, i + step); ++k) most = std::max(most, model_.live()[static_cast<std::size_t>(k)]);
    const double y = scale_.toY(static_cast<double>(most));
    if (i == from) line.moveTo(scale_.toX(i), y);
    line.lineTo(scale_.toX(i), y);
    line.lineTo(scale_.toX(std::min(to, i + step)), y);
  }
  p.setPen(QPen(t.muted, 1));
  p.setBrush(Qt::NoBrush);
  p.drawPath(line);
}

// Over the line of what is alive, which gives way to them.
void MemoryPainter::paintWords(QPainter& p, const Tokens& t) {
  const QFontMetricsF metrics(text_.font());
  std::vector<double> lines;
  for (const double at : {static_cast<double>(state_.current), model_.plan().plan().peak_instruction() + 0.5})
    if (at >= 0) lines.push_back(scale_.toX(at));
  for (const auto& [r, buffer] : wide_) {
    if (r.height() < metrics.height() + 1) continue;
    const snapshot::Buffer& b = *model_.plan().buffer(buffer);
    const BoxWords words = boxWords(model_, b, text_, r, lines);
    if (words.width == 0) continue;
    const double baseline = r.center().y() + metrics.ascent() / 2 - 1.5;
    p.fillRect(QRectF(words.x - 2, baseline - metrics.ascent() + 1, words.width + 4, metrics.height() - 2) & r,
               mixed(t.bufferClass(b.buffer_class()), t.panel, buffer == state_.hovered ? 0.8 : 0.55));
    p.setPen(t.text);
    p.drawText(QPointF(words.x, baseline), words.name);
    p.drawText(QPointF(words.bytesX, baseline), words.bytes);
  }
}

void MemoryPainter::paintBands(QPainter& p, const Tokens& t) {
  const QRectF area = scale_.area;
  const QFontMetricsF metrics(text_.font());
  for (const MemoryBand& band : model_.bands()) {
    const QRectF r = QRectF(area.left(), scale_.toY(static_cast<double>(band.high)), area.width(),
                            scale_.toY(static_cast<double>(band.low)) - scale_.toY(static_cast<double>(band.high)));
    if (r.height() < 0.3) continue;
    p.fillRect(r.adjusted(0, r.height() > 3 ? 0.8 : 0, 0, 0), mixed(t.bufferClass(band.bufferClass), t.panel, 0.3));
    if (r.height() < metrics.height()) continue;
    p.setPen(t.text);
    QString name = names::bufferClass(static_cast<snapshot::BufferClass>(band.bufferClass));
    if (band.buffers > 1 && name == u"parameter") name = QStringLiteral("parameters");
    p.drawText(QPointF(r.x() + 6, r.center().y() + metrics.ascent() / 2 - 1.5),
               text_.elided(name + ' ' + format::bytes(band.high - band.low), r.width() - 12));
  }
}

void MemoryPainter::paintSelected(QPainter& p, const Tokens& t) {
  // A view is shown where the memory is that it looks at.
  int box = model_.boxOf(state_.selected);
  if (box < 0 && model_.plan().buffer(state_.selected) != nullptr) box = model_.boxOf(model_.plan().root(state_.selected));
  if (box < 0) return;
  const MemoryBox& b = model_.boxes()[static_cast<std::size_t>(box)];
  const QRectF r = scale_.rectOf(b);
  p.setRenderHint(QPainter::Antialiasing);
  p.fillRect(r, t.accent);
  p.setPen(QPen(t.accent, 2));
  p.setBrush(Qt::NoBrush);
  p.drawRect(r.adjusted(-1, -1, 1, 1));
  if (b.end - b.first >= model_.instructions()) return;
  // Writers point up into the box, readers down out of it.
  for (const int user : model_.plan().users(state_.selected)) {
    const snapshot::Instruction* in = model_.plan().instruction(user);
    if (in == nullptr || user < scale_.viewBegin - 1 || user > scale_.viewEnd) continue;
    bool writes = false;
    for (const auto& out : in->outputs()) writes |= out.buffer() == state_.selected;
    const double x = (scale_.toX(user) + scale_.toX(user + 1)) / 2, y = writes ? r.bottom() + 9 : r.bottom() + 3;
    const double tip = writes ? -6 : 6;
    const QPointF corners[3] = {{x - 4, y}, {x + 4, y}, {x, y + tip}};
    p.setPen(QPen(t.panel, 0.8));
    p.setBrush(writes ? t.accent : mixed(t.accent, t.panel, 0.75));
    p.drawConvexPolygon(corners, 3);
  }
  p.setRenderHint(QPainter::Antialiasing, false);
}

// The least any placement could do, the address that this one reaches, and what was measured.
void MemoryPainter::paintLevels(QPainter& p, const Tokens& t) {
  const QRectF area = scale_.area;
  const QFontMetricsF metrics(text_.font());
  const snapshot::Plan& plan = model_.plan().plan();
  p.setRenderHint(QPainter::Antialiasing);
  const auto level = [&](std::int64_t bytes, const QString& words, Qt::PenStyle style, bool below) {
    const double y = scale_.toY(static_cast<double>(bytes));
    if (y < area.top() || y > area.bottom()) return;
    p.setPen(QPen(t.edge, 1, style));
    p.drawLine(QPointF(area.left(), y), QPointF(area.right(), y));
    // Where the labels of cursor and selection stand there is no room for its words; the panel's header says them.
    if (y < area.top() + 2 * metrics.height()) return;
    p.setPen(t.muted);
    const double width = metrics.horizontalAdvance(words);
    QRectF back(area.right() - width - 8, below ? y + 1 : y - metrics.height() - 1, width + 8, metrics.height());
    // The mark of the peak stands on the same line.
    const double peak = scale_.toX(plan.peak_instruction() + 0.5);
    if (!below) back = besideMark(back, peak, metrics.height(), area);
    QColor panel = t.panel;
    panel.setAlphaF(0.85F);
    p.fillRect(back, panel);
    p.drawText(back, Qt::AlignCenter, words);
  };
  const std::int64_t planned = model_.persistent() + plan.arena_bytes(),
                     bound = model_.persistent() + plan.lower_bound_bytes();
  const bool close =
      std::abs(scale_.toY(static_cast<double>(planned)) - scale_.toY(static_cast<double>(bound))) < metrics.height() + 4;
  level(planned,
        close && bound < planned
            ? QStringLiteral("planned %1 · lower bound %2").arg(format::bytes(planned), format::bytes(bound))
            : QStringLiteral("planned %1").arg(format::bytes(planned)),
        Qt::SolidLine, false);
  if (!close) level(bound, QStringLiteral("lower bound %1").arg(format::bytes(bound)), Qt::DashLine, true);
  if (state_.measured > 0) {
    const double y = scale_.toY(static_cast<double>(state_.measured));
    const QPointF corners[3] = {{area.right() + 1, y}, {area.right() + 7, y - 4}, {area.right() + 7, y + 4}};
    p.setPen(Qt::NoPen);
    p.setBrush(t.ok);
    p.drawConvexPolygon(corners, 3);
  }
  p.setRenderHint(QPainter::Antialiasing, false);
}

// The peak and its three largest owners.
QString MemoryPainter::peakText() const {
  const snapshot::Plan& plan = model_.plan().plan();
  QStringList owners;
  std::int64_t total = 0, named = 0;
  for (const auto& owner : plan.peak_owners()) total += std::max<std::int64_t>(0, owner.bytes());
  std::vector<snapshot::MemoryOwner> sorted(plan.peak_owners().begin(), plan.peak_owners().end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.bytes() > b.bytes(); });
  for (const auto& owner : sorted) {
    if (owners.size() == 3) break;
    owners << names::memoryOwner(owner.owner()) + ' ' + format::bytes(owner.bytes());
    named += owner.bytes();
  }
  if (named < total) owners << QStringLiteral("other %1").arg(format::bytes(total - named));
  const QString at = QStringLiteral("peak at %1").arg(format::count(plan.peak_instruction()));
  return owners.isEmpty() ? at : at + QStringLiteral(": ") + owners.join(QStringLiteral(" · "));
}

void MemoryPainter::paintMarks(QPainter& p, const Tokens& t) {
  const QRectF area = scale_.area;
  const QFontMetricsF metrics(text_.font());
  const snapshot::Plan& plan = model_.plan().plan();
  const auto inView = [&](double x) { return x >= scale_.viewBegin && x <= scale_.viewEnd; };
  p.setRenderHint(QPainter::Antialiasing);
  // Labels over the plot share two lines; the cursor's comes first.
  std::vector<std::pair<double, double>> taken[2];
  const auto label = [&](double x, const QString& whole, const QColor& colour, bool left) {
    const QString words = metrics.elidedText(whole, Qt::ElideRight, size_.width() - 2 - area.left());
    const double width = metrics.horizontalAdvance(words);
    double at = left ? x - width - 6 : x + 6;
    if (at < area.left()) at = x + 6;
    if (at + width > size_.width() - 2) at = std::max(area.left(), x - width - 6);
    for (int line = 0; line < 2; ++line) {
      if (std::any_of(taken[line].begin(), taken[line].end(),
                      [&](const auto& o) { return at < o.second + 8 && at + width > o.first - 8; }))
        continue;
      taken[line].emplace_back(at, at + width);
      // No line of the plot runs through a label.
      p.fillRect(QRectF(at - 2, line * metrics.height() + 2, width + 4, metrics.height()), t.panel);
      p.setPen(colour);
      p.drawText(QPointF(at, metrics.ascent() + 2 + line * metrics.height()), words);
      return;
    }
  };
  if (state_.current >= 0 && inView(state_.current)) {
    const double x = scale_.toX(state_.current);
    p.setPen(QPen(t.warn, 1.5));
    p.drawLine(QPointF(x, metrics.height() * 0.4), QPointF(x, area.bottom() + 3));
    label(x, instructionName(model_, state_.current), t.warn, true);
  }
  if (state_.selected >= 0 && model_.plan().buffer(state_.selected) != nullptr) {
    const snapshot::Buffer& b = *model_.plan().buffer(state_.selected);
    const double x = scale_.toX(std::clamp<double>(b.first(), scale_.viewBegin, scale_.viewEnd));
    QString words =
        QStringLiteral("selected: %1, %2")
            .arg(format::elided(format::visible(b.name().empty() ? "workspace" : b.name()), QFontMetrics(text_.font()), 220),
                 format::bytes(b.bytes()));
    if (!b.decision().empty())
      words += QStringLiteral(", ") + format::elided(format::visible(b.decision()), QFontMetrics(text_.font()), 240);
    label(x, words, t.accent, false);
  } else if (state_.selectedInstruction >= 0 && inView(state_.selectedInstruction)) {
    const double x = scale_.toX(state_.selectedInstruction + 0.5);
    p.setPen(QPen(t.accent, 1));
    p.drawLine(QPointF(x, area.top()), QPointF(x, area.bottom() + 3));
    label(x, instructionName(model_, state_.selectedInstruction), t.accent, false);
  }
  const int peak = plan.peak_instruction();
  if (peak >= 0 && peak < model_.instructions() && inView(peak)) {
    const double x = scale_.toX(peak + 0.5),
                 y = scale_.toY(static_cast<double>(model_.live()[static_cast<std::size_t>(peak)]));
    p.setPen(QPen(t.error, 1, Qt::DotLine));
    p.drawLine(QPointF(x, y), QPointF(x, area.bottom()));
    const QPointF corners[3] = {{x, y - 1}, {x - 4, y - 8}, {x + 4, y - 8}};
    p.setPen(Qt::NoPen);
    p.setBrush(t.error);
    p.drawConvexPolygon(corners, 3);
    label(x, peakText(), t.error, false);
  }
  p.setRenderHint(QPainter::Antialiasing, false);
}

void MemoryPainter::paintLegend(QPainter& p, const Tokens& t) {
  std::set<int> present;
  for (const MemoryBox& b : model_.boxes()) {
    if (b.low >= model_.persistent()) present.insert(b.bufferClass);
  }
  const QFontMetricsF metrics(text_.font());
  const double y = size_.height() - metrics.height() * 0.5 - 3;
  double x = scale_.area.left();
  // Below the axis where the window is high enough for one more line.
  if (size_.height() < 11 * Metrics::current().unit) return;
  for (const int bufferClass : present) {
    const QString name = names::bufferClass(static_cast<snapshot::BufferClass>(bufferClass));
    const double width = metrics.horizontalAdvance(name) + 26;
    if (x + width > scale_.area.right()) break;
    p.fillRect(QRectF(x, y - 4, 8, 8), mixed(t.bufferClass(bufferClass), t.panel, 0.75));
    p.setPen(t.muted);
    p.drawText(QPointF(x + 12, y + metrics.ascent() / 2 - 1), name);
    x += width;
  }
}

}  // namespace stepscope
