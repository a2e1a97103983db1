// SPDX-License-Identifier: GPL-3.0-or-later
// A page of the guide as it is read: Markdown in the sizes and colours of the window, pictures of the theme that is shown,
// never wider than the text. GUI thread.
#pragma once

#include <QTextBrowser>

#include "app/guide/guide_search.h"

namespace stepscope {

class GuideText : public QTextBrowser {
  Q_OBJECT

 public:
  explicit GuideText(QWidget* parent = nullptr);

  void showPage(const GuidePage& page);
  void showHits(const QString& question, const std::vector<GuideHit>& hits);

 signals:
  void followed(const stepscope::GuideLink& link);

 protected:
  QVariant loadResource(int type, const QUrl& name) override;
  void resizeEvent(QResizeEvent* event) override;
  void changeEvent(QEvent* event) override;  // another theme or size of text

 private:
  void write();
  void dress();
  void fitPictures();

  QString pageId_;
  QString markdown_;  // of the page that is shown
  QString html_;      // or of what was found
};

}  // namespace stepscope
