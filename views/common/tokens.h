// SPDX-License-Identifier: GPL-3.0-or-later
// The design tokens: every colour and size of the window, for both themes. No colour is written anywhere else.
//
// Text colours (text, muted, faint, accent, ok, warn, error) keep 4.5 : 1 on window, panel and raised, and text and muted on
// select and currentRow as well; lines and marks (edge, categories, buffer classes) keep 3 : 1 on panel. tests/views checks
// both. Source: the look that the Step layout was drawn with; see views/common/README.md.
#pragma once

#include <QColor>
#include <QFont>
#include <QString>

class QApplication;
class QWidget;

namespace stepscope {

enum class Theme { kLight, kDark };

struct Tokens {
  Theme theme = Theme::kLight;
  // Surfaces.
  QColor window, panel, raised, border, hover, select, grid;
  QColor currentRow;  // behind the current instruction and behind notices
  // Text and marks.
  QColor text, muted, faint, accent, ok, warn, error;
  QColor edge;                     // lines between things (graph edges, axes)
  QColor number;                   // NaN and infinities, used for nothing else
  QColor added, removed, changed;  // differences
  QColor heatLow, heatHigh;        // one-hue ramp; heat() interpolates
  QColor negative;                 // negative numbers in value tables and heat maps

  // The hue of an operator category of graph.proto ("matmul", "normalization" …); "other" for what is unknown.
  QColor category(const QString& name) const;
  // The hue of snapshot::BufferClass.
  QColor bufferClass(int bufferClass) const;
  // One of a fixed cycle of hues for curves and rows that have no category.
  QColor series(int index) const;
  // A stable hue for a name (timeline slices of one kind look the same in every session).
  QColor forName(const QString& name) const;
  // Heat for a share of 0..1 of the largest value.
  QColor heat(double share) const;

  static const Tokens& of(Theme theme);
  // The tokens in use. GUI thread; painting on another thread takes a copy first.
  static const Tokens& current();
};

// `top` laid over `bottom` with an opacity of 0..1.
QColor mixed(const QColor& top, const QColor& bottom, double opacity);

// WCAG contrast ratio, 1..21.
double contrast(const QColor& a, const QColor& b);

// Applies a theme: Fusion, QPalette and the small style sheet. Views repaint; ThemeNotifier tells who caches colours.
void applyTheme(QApplication& app, Theme theme);

// What the desktop uses: dark when its window colour is darker than its text.
Theme systemTheme();

// Sizes in units of the font height of the application's font, in device-independent pixels.
struct Metrics {
  int unit = 13;     // height of a line of text
  int row = 24;      // rows of lists and tables: 1.8
  int toolbar = 44;  // 3.2
  int header = 32;   // panel headers: 2.4
  int padding = 10;  // panel padding: 0.8
  int icon = 16;
  static Metrics current();
};

QFont interfaceFont();  // the system's, with tabular digits
QFont smallFont();      // 0.92 of it: secondary text
QFont monoFont();       // values, code and shapes in tables

}  // namespace stepscope
