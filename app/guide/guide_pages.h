// SPDX-License-Identifier: GPL-3.0-or-later
// The pages of the guide: Markdown files of this folder, compiled into the program. GUI thread.
//
// A page is named by its path without the ending: "start", "numbers", "journeys/nan", "views/graph".
#pragma once

#include <QString>
#include <QStringList>
#include <QUrl>
#include <vector>

namespace stepscope {

struct GuidePage {
  QString id;
  QString title;         // of the first heading
  QStringList headings;  // the others
  QString markdown;
  QString plain;  // the text without marks, links and pictures, one line per paragraph
};

// All pages, sorted by name. Read once.
const std::vector<GuidePage>& guidePages();
const GuidePage* guidePage(const QString& id);  // nullptr when there is none

// The page of a view; empty when it has none.
QString guidePageOfView(const QString& viewId);

// What a link of a page leads to. A link is a path from the folder of the page ("../views/graph.md"), a sample of the
// program
// ("sample:NAME"), or an action of the window ("do:ACTION").
struct GuideLink {
  enum Kind { kNothing, kPage, kSample, kAction };
  Kind kind = kNothing;
  QString target;  // the page, the sample, the action
};
GuideLink guideLink(const QString& fromPage, const QString& href);

// The resource of a picture that a page names by its path; of the theme that is shown. Empty when there is none.
QString guidePicture(const QString& fromPage, const QString& path, bool dark);

}  // namespace stepscope
