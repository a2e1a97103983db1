// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/tokens.h"

#include <QAbstractItemView>
#include <QAbstractSpinBox>
#include <QApplication>
#include <QComboBox>
#include <QFontDatabase>
#include <QFontInfo>
#include <QItemDelegate>
#include <QPainter>
#include <QPalette>
#include <QProxyStyle>
#include <QStyleOption>
#include <QStyledItemDelegate>
#include <QToolTip>
#include <algorithm>
#include <array>
#include <cmath>

#include "views/common/icons.h"

namespace stepscope {
namespace {

struct Hues {
  QColor matmul, convolution, normalization, activation, elementwise, movement, reduction, loss, optimizer, random, other;
};

Hues hues(Theme theme) {
  if (theme == Theme::kLight) {
    return {.matmul = "#2F67B2",
            .convolution = "#1F7F8C",
            .normalization = "#2C7A59",
            .activation = "#A8482F",
            .elementwise = "#4B6A86",
            .movement = "#6A7079",
            .reduction = "#7A5CA8",
            .loss = "#9A2D5B",
            .optimizer = "#8A6A12",
            .random = "#8C5A9A",
            .other = "#77705F"};
  }
  return {.matmul = "#5C93DB",
          .convolution = "#4FB0BD",
          .normalization = "#55A985",
          .activation = "#D27C62",
          .elementwise = "#7F9CB8",
          .movement = "#8B929C",
          .reduction = "#A98BD6",
          .loss = "#D16A97",
          .optimizer = "#C7A445",
          .random = "#C08FD0",
          .other = "#A39B87"};
}

Tokens light() {
  Tokens t;
  t.theme = Theme::kLight;
  t.window = "#F3F4F6", t.panel = "#FFFFFF", t.raised = "#F8F9FB", t.border = "#DCE0E6";
  t.hover = "#EEF2F8", t.select = "#DCE8FF", t.currentRow = "#FFF3C9", t.grid = "#EEF0F3";
  t.text = "#1B2029", t.muted = "#5C6675", t.faint = "#66707E", t.accent = "#2358D6";
  t.ok = "#257145", t.warn = "#8F5A08", t.error = "#B3261E";
  t.edge = "#868F9D", t.number = "#C2185B";
  t.added = "#257145", t.removed = "#B3261E", t.changed = "#8F5A08";
  t.heatLow = "#FFF6E3", t.heatHigh = "#B0480E", t.negative = "#2F67B2";
  return t;
}

Tokens dark() {
  Tokens t;
  t.theme = Theme::kDark;
  t.window = "#14161A", t.panel = "#1B1E23", t.raised = "#21252B", t.border = "#31363F";
  t.hover = "#252A31", t.select = "#22385F", t.currentRow = "#41371A", t.grid = "#252930";
  t.text = "#E4E7EB", t.muted = "#A3ADBA", t.faint = "#8A94A2", t.accent = "#78A9FF";
  t.ok = "#5BBF86", t.warn = "#E0A94A", t.error = "#F2827B";
  t.edge = "#717B89", t.number = "#FF6FA8";
  t.added = "#5BBF86", t.removed = "#F2827B", t.changed = "#E0A94A";
  t.heatLow = "#2A2420", t.heatHigh = "#F0935A", t.negative = "#7FB0F0";
  return t;
}

Theme currentTheme = Theme::kLight;

// A field has no text colour here but that of the palette: from one of its own the style makes that of the placeholder, too
// faint to read.
QString styleSheet(const Tokens& t) {
  const Metrics m = Metrics::current();
  return QStringLiteral(R"(
QToolTip { background: %raised; color: %text; border: 1px solid %border; padding: 4px 6px; }
QToolBar { background: %panel; border: 0; border-bottom: 1px solid %border; spacing: 2px; padding: 0 8px; }
QToolButton { border: 1px solid transparent; border-radius: 5px; padding: 4px 8px; color: %text; background: transparent; }
QToolButton:hover { background: %hover; }
QToolButton:pressed { background: %select; }
QToolButton:checked { background: %select; color: %accent; }
QToolButton:disabled { color: %faint; }
QToolButton[boxed="true"] { border: 1px solid %border; margin: 0 3px; }
QToolButton::menu-indicator { image: none; width: 0; }
QToolButton[popupMode="1"] { padding-right: 16px; }
QToolButton::menu-button { border: 0; width: 14px; }
QPushButton { border: 1px solid %border; border-radius: 5px; padding: 5px 12px; background: %panel; color: %text; }
QPushButton:hover { background: %hover; }
QPushButton:pressed, QPushButton:checked { background: %select; }
QPushButton:default, QPushButton[primary="true"] { background: %accent; color: %onaccent; border-color: %accent; }
QPushButton:disabled { color: %faint; background: %window; border-color: %border; }
QPushButton:focus, QToolButton:focus { border: 1px solid %accent; }
QPushButton[flat="true"] { border: 0; padding: 2px 4px; background: transparent; color: %accent; }
QLineEdit, QPlainTextEdit, QTextEdit {
  border: 1px solid %border; border-radius: 5px; padding: 3px 7px; background: %panel;
  selection-background-color: %accent; selection-color: %onaccent; }
QSpinBox, QDoubleSpinBox { padding: 1px 4px; }
QSpinBox QLineEdit, QDoubleSpinBox QLineEdit { border: 0; padding: 0; background: transparent; }
QLineEdit:focus, QPlainTextEdit:focus, QTextEdit:focus { border: 1px solid %accent; }
QSpinBox QLineEdit:focus, QDoubleSpinBox QLineEdit:focus { border: 0; }
QLineEdit[invalid="true"] { border: 1px solid %error; }
QAbstractItemView { background: %panel; alternate-background-color: %raised; color: %text; border: 0; outline: 0;
  selection-background-color: %select; selection-color: %text; gridline-color: %grid; }
QComboBox QAbstractItemView { border: 1px solid %border; padding: 4px; }
QComboBox QAbstractItemView::item { padding: 5px 8px; border-radius: 4px; }
QHeaderView { background: %raised; border: 0; }
QHeaderView::section { background: %raised; color: %muted; border: 0; border-bottom: 1px solid %border; padding: 3px 8px; }
QTableCornerButton::section { background: %raised; border: 0; border-bottom: 1px solid %border; }
QMenu { background: %panel; color: %text; border: 1px solid %border; padding: 4px; }
QMenu::item { padding: 5px 24px 5px 10px; border-radius: 4px; }
QMenu::item:selected { background: %select; }
QMenu::item:disabled { color: %faint; }
QMenu::separator { height: 1px; background: %border; margin: 4px 6px; }
QSplitter::handle { background: %border; }
QSplitter::handle:hover { background: %accent; }
QScrollBar:vertical { width: 11px; background: transparent; border: 0; margin: 0; }
QScrollBar:horizontal { height: 11px; background: transparent; border: 0; margin: 0; }
QScrollBar::handle { background: %scroll; border-radius: 3px; min-height: 28px; min-width: 28px; margin: 2px 3px; }
QScrollBar:horizontal::handle { margin: 3px 2px; }
QScrollBar::handle:hover { background: %edge; }
QScrollBar::add-line, QScrollBar::sub-line { width: 0; height: 0; }
QScrollBar::add-page, QScrollBar::sub-page { background: transparent; }
QAbstractScrollArea::corner { background: transparent; border: 0; }
QProgressBar { border: 0; border-radius: 2px; background: %scroll; max-height: 4px; text-align: right; }
QProgressBar::chunk { background: %accent; border-radius: 2px; }
QTabBar::tab { background: transparent; border: 0; border-bottom: 2px solid transparent; padding: 5px 9px; color: %muted; }
QTabBar::tab:selected { color: %text; border-bottom: 2px solid %accent; }
QTabBar::tab:hover { color: %text; }
QFileDialog QToolButton { padding: 3px; }
QTabBar QToolButton { padding: 0; border: 0; border-radius: 0; background: %raised; }
QTabBar QToolButton:hover { background: %hover; }
QTabWidget::pane { border: 0; border-top: 1px solid %border; }
QLabel[role="muted"] { color: %muted; }
QLabel[role="faint"] { color: %faint; }
QLabel[role="warn"] { color: %warn; }
QLabel[role="error"] { color: %error; }
QLabel[role="ok"] { color: %ok; }
QLabel[role="notice"] { background: %current; color: %text; border-radius: 5px; padding: 5px 9px; }
QLabel[role="tag"] { border: 1px solid %border; border-radius: 4px; padding: 0 6px; color: %muted; }
QLabel[role="tagwarn"] { border: 1px solid %warn; border-radius: 4px; padding: 0 6px; color: %warn; }
QFrame[role="line"] { background: %border; border: 0; }
QDialog, QMessageBox { background: %panel; }
)")
      .replace("%raised", t.raised.name())
      .replace("%text", t.text.name())
      .replace("%border", t.border.name())
      .replace("%panel", t.panel.name())
      .replace("%hover", t.hover.name())
      .replace("%select", t.select.name())
      .replace("%onaccent", t.theme == Theme::kLight ? t.panel.name() : t.window.name())
      .replace("%accent", t.accent.name())
      .replace("%faint", t.faint.name())
      .replace("%window", t.window.name())
      .replace("%grid", t.grid.name())
      .replace("%muted", t.muted.name())
      .replace("%current", t.currentRow.name())
      .replace("%scroll", mixed(t.edge, t.panel, 0.45).name())
      .replace("%edge", t.edge.name())
      .replace("%warn", t.warn.name())
      .replace("%error", t.error.name())
      .replace("%ok", t.ok.name())
      .replace("%row", QString::number(m.row));
}

constexpr int kComboPadding = 4;   // beside what Fusion leaves
constexpr int kSpinPadding = 5;    // the same
constexpr int kFieldPadding = 10;  // of a field with its frame, by the style sheet

// Fusion with flat combo boxes: a style sheet cannot draw their arrow without a picture file of fixed colour.
class QuietStyle : public QProxyStyle {
 public:
  QuietStyle() : QProxyStyle(QStringLiteral("Fusion")) {}

  void drawComplexControl(ComplexControl control, const QStyleOptionComplex* option, QPainter* painter,
                          const QWidget* widget) const override {
    const auto* spin = qstyleoption_cast<const QStyleOptionSpinBox*>(option);
    if (control == CC_SpinBox && spin) return drawSpinBox(*spin, painter, widget);
    if (control != CC_ComboBox) return QProxyStyle::drawComplexControl(control, option, painter, widget);
    const Tokens& t = Tokens::current();
    painter->save();
    painter->setRenderHint(QPainter::Antialiasing);
    const bool hover = option->state & State_MouseOver && option->state & State_Enabled;
    painter->setPen(option->state & State_HasFocus ? t.accent : t.border);
    painter->setBrush(hover ? t.hover : t.panel);
    painter->drawRoundedRect(QRectF(option->rect).adjusted(0.5, 0.5, -0.5, -0.5), 5, 5);
    const QPointF c(option->rect.right() - 10, option->rect.center().y() + 0.5);
    painter->setPen(QPen(t.muted, 1.3, Qt::SolidLine, Qt::RoundCap, Qt::RoundJoin));
    painter->drawPolyline(QPolygonF({c + QPointF(-3, -1.5), c + QPointF(0, 1.5), c + QPointF(3, -1.5)}));
    painter->restore();
  }

  // The frame of a field, and one of our lines for each of its arrows.
  void drawSpinBox(const QStyleOptionSpinBox& option, QPainter* painter, const QWidget* widget) const {
    const Tokens& t = Tokens::current();
    painter->save();
    painter->setRenderHint(QPainter::Antialiasing);
    painter->setPen(option.state & State_HasFocus ? t.accent : t.border);
    painter->setBrush(t.panel);
    painter->drawRoundedRect(QRectF(option.rect).adjusted(0.5, 0.5, -0.5, -0.5), 5, 5);
    const std::pair<SubControl, QAbstractSpinBox::StepEnabledFlag> arrows[] = {
        {SC_SpinBoxUp, QAbstractSpinBox::StepUpEnabled}, {SC_SpinBoxDown, QAbstractSpinBox::StepDownEnabled}};
    for (const auto& [part, enabled] : arrows) {
      const QRectF at = subControlRect(CC_SpinBox, &option, part, widget);
      if (at.isEmpty()) continue;
      const bool offered = option.stepEnabled & enabled && option.state & State_Enabled;
      const double turn = part == SC_SpinBoxUp ? 1.5 : -1.5;
      painter->setPen(QPen(offered ? t.muted : t.border, 1.3, Qt::SolidLine, Qt::RoundCap, Qt::RoundJoin));
      painter->drawPolyline(
          QPolygonF({at.center() + QPointF(-3, turn), at.center() + QPointF(0, -turn), at.center() + QPointF(3, turn)}));
    }
    painter->restore();
  }

  void drawControl(ControlElement element, const QStyleOption* option, QPainter* painter,
                   const QWidget* widget) const override {
    const auto* combo = qstyleoption_cast<const QStyleOptionComboBox*>(option);
    if (element != CE_ComboBoxLabel || !combo || combo->editable)
      return QProxyStyle::drawControl(element, option, painter, widget);
    // What does not fit is shortened in the middle, not cut at the end.
    QStyleOptionComboBox shortened(*combo);
    const QRect field = subControlRect(CC_ComboBox, combo, SC_ComboBoxEditField, widget);
    const int icon = combo->currentIcon.isNull() ? 0 : combo->iconSize.width() + 4;
    shortened.currentText = combo->fontMetrics.elidedText(combo->currentText, Qt::ElideMiddle, field.width() - icon - 2);
    QProxyStyle::drawControl(element, &shortened, painter, widget);
  }

  // Text in a box of choices or of a number begins where it begins in a field.
  QRect subControlRect(ComplexControl control, const QStyleOptionComplex* option, SubControl part,
                       const QWidget* widget) const override {
    const QRect rect = QProxyStyle::subControlRect(control, option, part, widget);
    if (control == CC_ComboBox && part == SC_ComboBoxEditField) return rect.adjusted(kComboPadding, 0, 0, 0);
    if (control == CC_SpinBox && part == SC_SpinBoxEditField) return rect.adjusted(kSpinPadding, 0, 0, 0);
    return rect;
  }
  QSize sizeFromContents(ContentsType type, const QStyleOption* option, const QSize& size,
                         const QWidget* widget) const override {
    const QSize wanted = QProxyStyle::sizeFromContents(type, option, size, widget);
    if (type != CT_ComboBox && type != CT_SpinBox) return wanted;
    // As high as a field beside it.
    return {wanted.width() + (type == CT_ComboBox ? kComboPadding : kSpinPadding),
            std::max(wanted.height(), option ? option->fontMetrics.height() + kFieldPadding : 0)};
  }

  void drawPrimitive(PrimitiveElement element, const QStyleOption* option, QPainter* painter,
                     const QWidget* widget) const override {
    // The colour of its row says which item is the current one.
    if (element == PE_FrameFocusRect && qobject_cast<const QAbstractItemView*>(widget)) return;
    QProxyStyle::drawPrimitive(element, option, painter, widget);
  }

  // A list that drops down is a list of ours: its own delegate leaves the style sheet out.
  void polish(QWidget* widget) override {
    QProxyStyle::polish(widget);
    auto* box = qobject_cast<QComboBox*>(widget);
    if (box && qobject_cast<QItemDelegate*>(box->itemDelegate())) box->setItemDelegate(new QStyledItemDelegate(box));
  }
  using QProxyStyle::polish;

  // In one of our lines; a field keeps it when the theme changes, so in a colour that is seen in both.
  QIcon standardIcon(StandardPixmap which, const QStyleOption* option, const QWidget* widget) const override {
    return which == SP_LineEditClearButton ? icon(QStringLiteral("close"), Tokens::current().edge)
                                           : QProxyStyle::standardIcon(which, option, widget);
  }

  int styleHint(StyleHint hint, const QStyleOption* option, const QWidget* widget, QStyleHintReturn* data) const override {
    if (hint == SH_ComboBox_Popup) return 0;
    if (hint == SH_ToolTip_WakeUpDelay) return 450;
    if (hint == SH_DialogButtonBox_ButtonsHaveIcons) return 0;  // those of the desktop's theme are not ours
    if (hint == SH_ItemView_ActivateItemOnSingleClick) return 0;
    return QProxyStyle::styleHint(hint, option, widget, data);
  }
};

double channel(double c) { return c <= 0.03928 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4); }
double luminance(const QColor& c) {
  return 0.2126 * channel(c.redF()) + 0.7152 * channel(c.greenF()) + 0.0722 * channel(c.blueF());
}

}  // namespace

QColor Tokens::category(const QString& name) const {
  const Hues h = hues(theme);
  if (name == u"matmul") return h.matmul;
  if (name == u"convolution") return h.convolution;
  if (name == u"normalization") return h.normalization;
  if (name == u"activation") return h.activation;
  if (name == u"elementwise") return h.elementwise;
  if (name == u"movement") return h.movement;
  if (name == u"reduction") return h.reduction;
  if (name == u"loss") return h.loss;
  if (name == u"optimizer") return h.optimizer;
  if (name == u"random") return h.random;
  return h.other;
}

QColor Tokens::bufferClass(int bufferClass) const {
  const Hues h = hues(theme);
  const std::array colours = {h.movement,    h.other, h.reduction,   h.optimizer, h.normalization, h.activation,
                              h.elementwise, h.loss,  h.convolution, h.other,     h.random};
  if (bufferClass < 0 || bufferClass >= static_cast<int>(colours.size())) return h.other;
  return colours[static_cast<std::size_t>(bufferClass)];
}

QColor Tokens::series(int index) const {
  const Hues h = hues(theme);
  const std::array colours = {h.matmul,    h.activation, h.normalization, h.reduction,
                              h.optimizer, h.loss,       h.convolution,   h.elementwise};
  return colours[static_cast<std::size_t>(std::abs(index)) % colours.size()];
}

QColor Tokens::forName(const QString& name) const {
  std::uint32_t hash = 2166136261u;  // FNV-1a: the same in every session, unlike qHash
  for (const QChar c : name) hash = (hash ^ c.unicode()) * 16777619u;
  const int hue = static_cast<int>(hash % 360);
  return theme == Theme::kLight ? QColor::fromHsl(hue, 105, 108) : QColor::fromHsl(hue, 95, 150);
}

QColor Tokens::heat(double share) const { return mixed(heatHigh, heatLow, std::clamp(share, 0.0, 1.0)); }

const Tokens& Tokens::of(Theme theme) {
  static const Tokens kLightTokens = light();
  static const Tokens kDarkTokens = dark();
  return theme == Theme::kLight ? kLightTokens : kDarkTokens;
}

const Tokens& Tokens::current() { return of(currentTheme); }

QColor mixed(const QColor& top, const QColor& bottom, double opacity) {
  const auto blend = [opacity](double a, double b) { return static_cast<float>(a * opacity + b * (1 - opacity)); };
  return QColor::fromRgbF(blend(top.redF(), bottom.redF()), blend(top.greenF(), bottom.greenF()),
                          blend(top.blueF(), bottom.blueF()));
}

double contrast(const QColor& a, const QColor& b) {
  const double x = luminance(a), y = luminance(b);
  return (std::max(x, y) + 0.05) / (std::min(x, y) + 0.05);
}

void applyTheme(QApplication& app, Theme theme) {
  currentTheme = theme;
  const Tokens& t = Tokens::of(theme);
  app.setStyle(new QuietStyle);
  app.setFont(interfaceFont());
  QPalette p;
  p.setColor(QPalette::Window, t.panel);
  p.setColor(QPalette::WindowText, t.text);
  p.setColor(QPalette::Base, t.panel);
  p.setColor(QPalette::AlternateBase, t.raised);
  p.setColor(QPalette::Text, t.text);
  p.setColor(QPalette::PlaceholderText, t.faint);
  p.setColor(QPalette::Button, t.panel);
  p.setColor(QPalette::ButtonText, t.text);
  p.setColor(QPalette::ToolTipBase, t.raised);
  p.setColor(QPalette::ToolTipText, t.text);
  p.setColor(QPalette::Highlight, t.select);
  p.setColor(QPalette::HighlightedText, t.text);
  p.setColor(QPalette::Link, t.accent);
  p.setColor(QPalette::LinkVisited, t.accent);
  p.setColor(QPalette::Light, t.raised);
  p.setColor(QPalette::Midlight, t.hover);
  p.setColor(QPalette::Mid, t.border);
  p.setColor(QPalette::Dark, t.border);
  p.setColor(QPalette::Shadow, t.border);
  for (const auto role : {QPalette::WindowText, QPalette::Text, QPalette::ButtonText}) {
    p.setColor(QPalette::Disabled, role, t.faint);
  }
  app.setPalette(p);
  QToolTip::setPalette(p);
  app.setStyleSheet(styleSheet(t));
}

Theme systemTheme() {
  const QPalette g = QGuiApplication::palette();
  return g.color(QPalette::Window).lightness() < g.color(QPalette::WindowText).lightness() ? Theme::kDark : Theme::kLight;
}

Metrics Metrics::current() {
  // Not the line height: fonts differ widely in leading. One em is 13 px at 9.75 pt and 96 dpi.
  const int unit = QFontInfo(QApplication::font()).pixelSize();
  Metrics m;
  m.unit = unit;
  m.row = qRound(1.8 * unit);
  m.toolbar = qRound(3.2 * unit);
  m.header = qRound(2.4 * unit);
  m.padding = qRound(0.8 * unit);
  m.icon = qRound(1.25 * unit);
  return m;
}

QFont interfaceFont() {
  static const QFont kFont = [] {
    QFont font = QFontDatabase::systemFont(QFontDatabase::GeneralFont);
    const QStringList preferred = {QStringLiteral("Inter"), QStringLiteral("Noto Sans"), QStringLiteral("Segoe UI"),
                                   QStringLiteral("Cantarell")};
    // A desktop names its own font; only where the platform knows none better do we choose.
    if (font.family().isEmpty() || font.family() == u"Sans Serif") {
      const QStringList families = QFontDatabase::families();
      for (const QString& family : preferred) {
        if (families.contains(family)) {
          font.setFamily(family);
          break;
        }
      }
    }
    // DejaVu runs wider than the other faces: one step smaller it sets as many letters.
    const bool wide = QFontInfo(font).family().startsWith(u"DejaVu");
    if (font.pointSizeF() < 9.5 || wide) font.setPointSizeF(wide ? 9.0 : 9.75);
    return font;
  }();
  return kFont;
}

QFont smallFont() {
  QFont font = QApplication::font();
  font.setPointSizeF(font.pointSizeF() * 0.92);
  return font;
}

QFont monoFont() {
  static const QString kFamily = [] {
    const QStringList families = QFontDatabase::families();
    for (const char* family : {"JetBrains Mono", "DejaVu Sans Mono", "Liberation Mono"}) {
      if (families.contains(QLatin1String(family))) return QString::fromLatin1(family);
    }
    return QFontDatabase::systemFont(QFontDatabase::FixedFont).family();
  }();
  QFont font(kFamily);
  font.setStyleHint(QFont::Monospace);
  font.setPointSizeF(QApplication::font().pointSizeF() * 0.9);
  return font;
}

}  // namespace stepscope
