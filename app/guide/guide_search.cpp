// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/guide/guide_search.h"

#include <QRegularExpression>
#include <algorithm>

namespace stepscope {
namespace {

constexpr int kWholeTitle = 60, kTitle = 30, kHeading = 12, kText = 2, kMostText = 6;
constexpr qsizetype kLineLength = 150;

struct Words {
  QStringList title, headings, text;
};

const std::vector<Words>& wordsOfPages() {
  static const std::vector<Words> kWords = [] {
    std::vector<Words> all;
    for (const GuidePage& page : guidePages())
      all.push_back({wordsOf(page.title), wordsOf(page.headings.join(' ')), wordsOf(page.plain)});
    return all;
  }();
  return kWords;
}

int scoreOf(const QString& word, const Words& words) {
  const auto begins = [&word](const QString& other) { return other.startsWith(word); };
  int score = 0;
  if (words.title.contains(word))
    score += kWholeTitle;
  else if (std::any_of(words.title.begin(), words.title.end(), begins))
    score += kTitle;
  if (std::any_of(words.headings.begin(), words.headings.end(), begins)) score += kHeading;
  return score + kText * std::min<int>(kMostText, std::count_if(words.text.begin(), words.text.end(), begins));
}

// The part of the text around the first place where a word of the question begins one.
QString lineOf(const GuidePage& page, const QStringList& question) {
  for (const QString& line : page.plain.split('\n')) {
    for (const QString& word : question) {
      const QRegularExpression begins(QStringLiteral("\\b") + QRegularExpression::escape(word),
                                      QRegularExpression::CaseInsensitiveOption);
      const auto match = begins.match(line);
      if (!match.hasMatch()) continue;
      if (line.size() <= kLineLength) return line;
      qsizetype from = std::max<qsizetype>(0, match.capturedStart() - kLineLength / 3);
      if (from > 0) from = line.indexOf(' ', from) + 1;  // 0 when there is no word behind it
      const QString part = line.mid(from, kLineLength);
      return (from > 0 ? QStringLiteral("… ") : QString()) + part +
             (from + part.size() < line.size() ? QStringLiteral(" …") : QString());
    }
  }
  return {};
}

}  // namespace

QStringList wordsOf(const QString& text) {
  static const QRegularExpression kBetween(QStringLiteral("[^\\w]+"), QRegularExpression::UseUnicodePropertiesOption);
  return text.toLower().split(kBetween, Qt::SkipEmptyParts);
}

std::vector<GuideHit> searchGuide(const QString& question) {
  const QStringList words = wordsOf(question);
  std::vector<GuideHit> hits;
  if (words.isEmpty()) return hits;
  const auto& pages = guidePages();
  for (std::size_t i = 0; i < pages.size(); ++i) {
    int sum = 0;
    for (const QString& word : words) {
      const int score = scoreOf(word, wordsOfPages()[i]);
      sum = score == 0 ? -1 : sum + score;
      if (sum < 0) break;
    }
    if (sum > 0) hits.push_back({&pages[i], sum, lineOf(pages[i], words)});
  }
  std::stable_sort(hits.begin(), hits.end(), [](const GuideHit& a, const GuideHit& b) {
    return a.score != b.score ? a.score > b.score : a.page->title < b.page->title;
  });
  return hits;
}

}  // namespace stepscope
