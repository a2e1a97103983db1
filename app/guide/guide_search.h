// SPDX-License-Identifier: GPL-3.0-or-later
// Finds pages of the guide by words.
//
// A page is found when every word of the question begins a word of its title, a heading or its text. Score of a page: per
// word 60 for a word of the title, 30 for the beginning of one; 12 for a heading; 2 for each place in the text, at most 6 of
// them. The best first; equal ones by title.
#pragma once

#include <QString>
#include <QStringList>
#include <vector>

#include "app/guide/guide_pages.h"

namespace stepscope {

struct GuideHit {
  const GuidePage* page = nullptr;
  int score = 0;
  QString line;  // of the text, around the first word that was found there; empty when only the title has it
};

// Without words: nothing.
std::vector<GuideHit> searchGuide(const QString& question);

// The words of a question or a text, in small letters.
QStringList wordsOf(const QString& text);

}  // namespace stepscope
