// SPDX-License-Identifier: GPL-3.0-or-later
// The HTML report as PDF, with its charts as vectors.
//
// QTextDocument sets text and tables but knows neither inline SVG nor variables in style sheets: charts are taken out, given
// the colours of the light theme and drawn by QSvgRenderer where they stood. Any thread.
#pragma once

#include <QByteArray>
#include <QString>
#include <vector>

namespace stepscope {

struct ReportPage {
  QString html;                    // each chart is an image "chart:N"; bars are images too (report_markup.h)
  std::vector<QByteArray> charts;  // stand-alone SVG, without what only a mouse would show
  QString foot;                    // of every page: what this is about, plain text
};

// Takes a page of storage::writeReport apart.
ReportPage printable(const QString& html);

// A4, lying. Empty, or the reason why not.
QString printReport(const QString& html, const QString& path);

}  // namespace stepscope
