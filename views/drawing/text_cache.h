// SPDX-License-Identifier: GPL-3.0-or-later
// Elides text (format::elided) once per text, font and width. Measuring text costs more than drawing it. GUI thread.
#pragma once

#include <QFont>
#include <QFontMetricsF>
#include <QHash>
#include <QString>

namespace stepscope {

class TextCache {
 public:
  explicit TextCache(const QFont& font) : font_(font), metrics_(font) {}

  const QFont& font() const { return font_; }
  double width(const QString& text);
  // The text, or what tells it from others where it is wider than `width`.
  const QString& elided(const QString& text, double width);
  // The same, and nothing where only crumbs of the text would be left ("→ P…").
  const QString& legible(const QString& text, double width);

 private:
  struct Entry {
    double full = 0;
    int width = -1;  // for which `text` was elided
    QString text;
  };
  Entry& entry(const QString& text);

  QFont font_;
  QFontMetricsF metrics_;
  QHash<QString, Entry> entries_;
};

// A font for pictures in scene units: `size` pixels at 100 %.
QFont sceneFont(double size, QFont::Weight weight = QFont::Normal);

}  // namespace stepscope
