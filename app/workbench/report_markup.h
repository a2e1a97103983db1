// SPDX-License-Identifier: GPL-3.0-or-later
// The HTML report in the little HTML that QTextDocument sets: grids become tables, bars become pictures.
#pragma once

#include <QHash>
#include <QString>
#include <vector>

namespace stepscope {

// A bar that the page has as an image of this name: parts of a whole next to each other, or a share and what it leaves free.
// "bar:SHARE,COLOUR" is as wide as a column of shares; "stack:SHARE,COLOUR;…" as wide as the page.
struct PrintedBar {
  bool wide = false;
  std::vector<std::pair<double, QString>> parts;  // share of the width, colour
};

// Empty where the name is another's.
PrintedBar printedBar(const QString& imageName);

// Of a body whose colours are no variables and whose charts are images.
QString printedMarkup(QString body);

// The sheet that goes with it. `colours`: the tokens of the theme.
QString printedSheet(const QHash<QString, QString>& colours);

}  // namespace stepscope
