// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/drawing/text_cache.h"

#include <cmath>

#include "views/common/format.h"
#include "views/common/tokens.h"

namespace stepscope {
namespace {
constexpr int kMostEntries = 50'000;
constexpr int kLeastLetters = 7;  // with the dots
}  // namespace

TextCache::Entry& TextCache::entry(const QString& text) {
  if (entries_.size() > kMostEntries) entries_.clear();
  auto found = entries_.find(text);
  if (found == entries_.end()) {
    Entry made;
    made.full = metrics_.horizontalAdvance(text);
    found = entries_.insert(text, made);
  }
  return *found;
}

double TextCache::width(const QString& text) { return entry(text).full; }

const QString& TextCache::elided(const QString& text, double width) {
  Entry& e = entry(text);
  const int whole = static_cast<int>(std::floor(width));
  if (e.width != whole) {
    e.width = whole;
    e.text = e.full <= width ? text
                             : format::elided(
                                   text, [this](const QString& t) { return metrics_.horizontalAdvance(t); }, whole);
  }
  return e.text;
}

const QString& TextCache::legible(const QString& text, double width) {
  static const QString kNothing;
  const QString& shown = elided(text, width);
  return shown.size() >= kLeastLetters || shown.size() == text.size() ? shown : kNothing;
}

QFont sceneFont(double size, QFont::Weight weight) {
  QFont font = interfaceFont();
  font.setPixelSize(static_cast<int>(std::lround(size)));
  font.setWeight(weight);
  font.setHintingPreference(QFont::PreferNoHinting);
  return font;
}

}  // namespace stepscope
