// SPDX-License-Identifier: GPL-3.0-or-later
// A page of "label: value" lines with links into the selection, the value below its label where the page is narrow. Text
// that came from files goes through text() or link().
#pragma once

#include <QTextBrowser>
#include <vector>

#include "views/common/selection.h"
#include "views/common/snapshots.h"
#include "views/common/tokens.h"

namespace stepscope {

class Details : public QTextBrowser {
  Q_OBJECT

 public:
  explicit Details(QWidget* parent = nullptr);

  // As high as its text, without a scroll bar of its own: for a page inside a scroll area.
  void setFitContents(bool fit);

  // Fills the page: begin(), then lines in order, then end(). Labels take at least `labels` units of the font.
  void begin(double labels = 7);
  void heading(const QString& text);                    // plain text
  void title(const QString& text);                      // of what the page is about, as wide as the page; plain text
  void row(const QString& label, const QString& html);  // label plain; html from text(), quiet(), link() …
  void notice(const QString& html);                     // boxed, in the colour of the current row
  void paragraph(const QString& html);
  // Labels with numbers below each other and what each is of a whole; plain text.
  struct Amount {
    QString label, number, share;
  };
  void amounts(const std::vector<Amount>& amounts);
  void end();

  // A number stays on the line of its unit.
  static QString text(const QString& plain);
  static QString strong(const QString& plain);
  static QString quiet(const QString& plain);
  static QString mono(const QString& plain);
  static QString coloured(const QString& plain, const QColor& colour);
  static QString tag(const QString& plain, const QColor& colour);
  static QString explained(const QString& html, const QString& tip);  // with a tooltip, plain text
  static QString link(const Selection& target, const QString& plain);
  // Why the buffer lies where it lies; the buffer whose memory it shares is a link.
  static QString decision(const PlanSnapshot& plan, const snapshot::Buffer& buffer);
  static QString command(const QString& id, const QString& plain);  // emitted as commandClicked

 protected:
  void resizeEvent(QResizeEvent* event) override;
  void changeEvent(QEvent* event) override;  // another theme: the colours that stand in the page are its own

 signals:
  void selected(const stepscope::Selection& target);
  void commandClicked(const QString& id);

 private:
  void closeTable();
  void fit();
  void showPage();
  bool narrow() const;
  int labelWidth() const;

  bool fit_ = false;
  QString html_;                 // with a placeholder for the width of the labels, which the longest of the page decides
  Theme theme_ = Theme::kLight;  // that the page is written in
  double labels_ = 0;
  bool inTable_ = false;
  bool stacked_ = false;  // values stand below their labels
};

}  // namespace stepscope
