// SPDX-License-Identifier: GPL-3.0-or-later
// The guide: every view has a page, every link and picture leads somewhere, what is asked for is found, and the question
// mark of each view opens its page.
#include <QImage>
#include <QLineEdit>
#include <QRegularExpression>
#include <QScrollBar>
#include <QTest>
#include <QTextBlock>
#include <QTextBrowser>

#include "app/guide/guide_panel.h"
#include "app/guide/guide_search.h"
#include "app/workbench/help_button.h"
#include "app/workbench/panel_board.h"
#include "app/workbench/sample_list.h"
#include "app/workbench/view_list.h"
#include "tests/support/qt_classes.h"
#include "tests/workbench/window_driver.h"
#include "views/common/tokens.h"
#include "views/open_dialog/set_up_dialog.h"

using namespace stepscope;

namespace {

// Targets of [text](target), or of ![text](target).
QStringList targetsOf(const QString& markdown, bool pictures) {
  const QRegularExpression link(pictures ? QStringLiteral("!\\[[^\\]]*\\]\\(([^)]*)\\)")
                                         : QStringLiteral("(?<!!)\\[[^\\]]*\\]\\(([^)]*)\\)"));
  QStringList found;
  for (auto it = link.globalMatch(markdown); it.hasNext();) found << it.next().captured(1);
  return found;
}

GuidePanel* guideOf(WindowDriver& w) { return w->findChild<GuidePanel*>(QStringLiteral("guide")); }

QString firstFound(const QString& question) {
  const auto hits = searchGuide(question);
  return hits.empty() ? QString() : hits.front().page->id;
}

}  // namespace

class GuideTest : public QObject {
  Q_OBJECT

 private slots:
  void initTestCase() {
    qputenv("STEPSCOPE_WORKER", REAL_WORKER);
    applyTheme(*qApp, Theme::kLight);
  }

  void everyViewHasAPage() {
    for (const ViewEntry& entry : viewList()) {
      const QString page = guidePageOfView(QLatin1String(entry.id));
      QVERIFY2(!page.isEmpty(), entry.id);
      QVERIFY2(guidePage(page)->plain.size() > 200, entry.id);
    }
    // And no page is about a view that is not there.
    for (const GuidePage& page : guidePages()) {
      if (!page.id.startsWith(u"views/")) continue;
      const auto& all = viewList();
      QVERIFY2(
          std::any_of(all.begin(), all.end(), [&](const ViewEntry& e) { return page.id.mid(6) == QLatin1String(e.id); }),
          qPrintable(page.id));
    }
    for (const char* journey : {"nan", "rewind", "batch", "compare", "look", "run", "phases", "padding", "busy"})
      QVERIFY2(guidePage(QStringLiteral("journeys/") + QLatin1String(journey)), journey);
  }

  void everyLinkAndPictureLeadsSomewhere() {
    WindowDriver w;
    QSet<QString> reached{QStringLiteral("start")}, samplesNamed;
    for (const GuidePage& page : guidePages()) {
      QVERIFY2(page.title != page.id, qPrintable(page.id));
      for (const QString& target : targetsOf(page.markdown, false)) {
        const GuideLink link = guideLink(page.id, target);
        const QString said = page.id + QStringLiteral(": ") + target;
        QVERIFY2(link.kind != GuideLink::kNothing, qPrintable(said));
        if (link.kind == GuideLink::kPage) reached << link.target;
        if (link.kind == GuideLink::kAction) QVERIFY2(w->actions().find(link.target), qPrintable(said));
        if (link.kind == GuideLink::kSample) {
          QVERIFY2(!samplePath(link.target).isEmpty(), qPrintable(said));
          samplesNamed << link.target;
        }
      }
      for (const QString& target : targetsOf(page.markdown, true)) {
        for (const bool dark : {false, true}) {
          const QString path = guidePicture(page.id, target, dark);
          QVERIFY2(path.contains(dark ? QStringLiteral("/dark/") : QStringLiteral("/light/")),
                   qPrintable(page.id + QStringLiteral(": ") + target));
          QVERIFY2(QImage(path).width() > 200, qPrintable(path));
        }
      }
    }
    for (const GuidePage& page : guidePages())
      QVERIFY2(reached.contains(page.id), qPrintable(page.id + " is linked from nowhere"));
    for (const char* name : {"nan", "padding", "too_large", "two_runs"})
      QVERIFY2(samplesNamed.contains(QLatin1String(name)), name);
    QCOMPARE(guideLink(QStringLiteral("views/graph"), QStringLiteral("../../../etc/passwd.md")).kind, GuideLink::kNothing);
    QCOMPARE(guideLink(QStringLiteral("start"), QStringLiteral("https://example.org")).kind, GuideLink::kNothing);
  }

  // A picture between two steps would begin their numbers anew, and a line as high as a picture is in proportion too high.
  void picturesLeaveTheTextAsItIs() {
    static const QRegularExpression cut(QStringLiteral("\\n!\\[[^\\n]*\\n\\n(?!1\\.)[0-9]+\\. "));
    WindowDriver w({1600, 1000});
    QVERIFY(w.act("guide"));
    QVERIFY(w.loop().wait([&] { return guideOf(w) && guideOf(w)->isVisible(); }));
    auto* text = guideOf(w)->findChild<QTextBrowser*>(QStringLiteral("guide_text"));
    int pictures = 0;
    for (const GuidePage& page : guidePages()) {
      QVERIFY2(!page.markdown.contains(cut), qPrintable(page.id));
      w.loop().act([&] { emit text->anchorClicked(QUrl(QStringLiteral("page:") + page.id)); });
      for (QTextBlock block = text->document()->begin(); block.isValid(); block = block.next())
        for (auto it = block.begin(); !it.atEnd(); ++it) {
          const QTextImageFormat picture = it.fragment().charFormat().toImageFormat();
          if (!picture.isValid()) continue;
          ++pictures;
          const double line = block.layout()->lineAt(0).height();
          QVERIFY2(line < picture.height() + 2 * Metrics::current().unit, qPrintable(page.id));
        }
    }
    QVERIFY(pictures > 10);
  }

  void whatIsAskedForIsFound() {
    QCOMPARE(firstFound(QStringLiteral("padding")), QStringLiteral("journeys/padding"));
    QCOMPARE(firstFound(QStringLiteral("REWIND")), QStringLiteral("journeys/rewind"));
    QCOMPARE(firstFound(QStringLiteral("nan")), QStringLiteral("journeys/nan"));
    QCOMPARE(firstFound(QStringLiteral("flame gr")), QStringLiteral("views/flame"));
    QCOMPARE(firstFound(QStringLiteral("numbers mean")), QStringLiteral("numbers"));
    QCOMPARE(firstFound(QStringLiteral("pareto") + QStringLiteral(" xyz")), QString());
    // Every word has to be there.
    QVERIFY(searchGuide(QStringLiteral("padding xyzzy")).empty());
    QVERIFY(searchGuide(QStringLiteral("  ")).empty());
    const auto hits = searchGuide(QStringLiteral("median"));
    QVERIFY(hits.size() >= 3);
    for (const GuideHit& hit : hits)
      QVERIFY2(hit.line.contains(QStringLiteral("median"), Qt::CaseInsensitive), qPrintable(hit.page->id));
    for (std::size_t i = 1; i < hits.size(); ++i) QVERIFY(hits[i - 1].score >= hits[i].score);
  }

  void theQuestionMarkOfEachViewOpensItsPage() {
    WindowDriver w;
    QVERIFY_DONE(w.openBuilt(bundledModels()[0]), w);
    for (const ViewEntry& entry : viewList()) {
      const QString id = QLatin1String(entry.id);
      if (id == u"start") continue;
      QVERIFY2(w.view(id), entry.id);
      HelpButton* help = nullptr;
      for (auto* group : w->findChildren<PanelGroup*>())
        if (group->frontId() == id) help = group->findChild<HelpButton*>();
      QVERIFY2(help && help->isVisible(), entry.id);
      QVERIFY2(help->accessibleName().contains(w.view(id)->title()) && !help->toolTip().isEmpty(), entry.id);
      w.loop().act([&] { QTest::mouseClick(help, Qt::LeftButton); });
      QVERIFY2(guideOf(w), entry.id);
      QCOMPARE(guideOf(w)->page(), QStringLiteral("views/") + id);
    }
    // F1 is about the view with the keyboard.
    View* memory = w.view(QStringLiteral("memory"));
    w.loop().act([&] { w->board().focus(*memory); });
    QVERIFY(w.act("guide_here"));
    QCOMPARE(guideOf(w)->page(), QStringLiteral("views/memory"));
  }

  void pagesAreReadBackAndForth() {
    WindowDriver w;
    QVERIFY(w.act("guide"));
    GuidePanel* guide = guideOf(w);
    QVERIFY(guide && guide->isVisible());
    auto* text = guide->findChild<GuideText*>();
    auto* find = guide->findChild<QLineEdit*>(QStringLiteral("guide_find"));
    const auto click = [&](const char* name) {
      w.loop().act([&] { QTest::mouseClick(guide->findChild<QToolButton*>(QLatin1String(name)), Qt::LeftButton); });
    };
    QCOMPARE(guide->page(), QStringLiteral("start"));
    w.loop().act([&] { emit text->anchorClicked(QUrl(QStringLiteral("journeys/nan.md"))); });
    QCOMPARE(guide->page(), QStringLiteral("journeys/nan"));
    w.loop().act([&] { emit text->anchorClicked(QUrl(QStringLiteral("../views/graph.md"))); });
    QCOMPARE(guide->page(), QStringLiteral("views/graph"));
    w.loop().act([&] { text->verticalScrollBar()->setValue(40); });
    click("guide_back");
    QCOMPARE(guide->page(), QStringLiteral("journeys/nan"));
    click("guide_forward");
    QCOMPARE(guide->page(), QStringLiteral("views/graph"));
    QCOMPARE(text->verticalScrollBar()->value(), 40);
    QVERIFY(!guide->findChild<QToolButton*>(QStringLiteral("guide_forward"))->isEnabled());
    // Searching leaves the page where it is, and Return opens the best one.
    w.loop().act([&] { QTest::keyClicks(find, QStringLiteral("rewind")); });
    QVERIFY(guide->page().isEmpty() && text->toPlainText().contains(QStringLiteral("Go back: rewind")));
    w.loop().act([&] { QTest::keyClick(find, Qt::Key_Return); });
    QCOMPARE(guide->page(), QStringLiteral("journeys/rewind"));
    QVERIFY(find->text().isEmpty());
    click("guide_contents");
    QCOMPARE(guide->page(), QStringLiteral("start"));
    // Closed with Esc; where it was it opens again.
    click("guide_back");
    w.loop().act([&] { QTest::keyClick(find, Qt::Key_Escape); });
    QVERIFY(w.loop().wait([&] { return !guideOf(w); }));
    QVERIFY(w.act("guide"));
    QCOMPARE(guideOf(w)->page(), QStringLiteral("journeys/rewind"));
    QVERIFY_LOOP(w);
  }

  // No line is wider than the panel, in neither theme, and the pictures are those of the theme.
  void pagesFitThePanel_data() {
    QTest::addColumn<bool>("dark");
    QTest::newRow("light") << false;
    QTest::newRow("dark") << true;
  }
  void pagesFitThePanel() {
    QFETCH(bool, dark);
    applyTheme(*qApp, dark ? Theme::kDark : Theme::kLight);
    WindowDriver w({1280, 800});
    QVERIFY(w.act("guide"));
    GuidePanel* guide = guideOf(w);
    auto* text = guide->findChild<GuideText*>();
    for (const GuidePage& page : guidePages()) {
      w.loop().act([&] { guide->open(page.id); });
      if (page.id == u"start" || page.id == u"journeys/nan" || page.id == u"views/memory")
        w.picture(QStringLiteral("guide-%1-%2").arg(page.id.section('/', -1), dark ? "dark" : "light"));
      const QTextDocument& document = *text->document();
      QVERIFY2(document.size().width() <= text->viewport()->width() + 1, qPrintable(page.id));
      QVERIFY2(document.toPlainText().contains(page.title), qPrintable(page.id));
      for (QTextBlock block = document.begin(); block.isValid(); block = block.next())
        for (auto it = block.begin(); !it.atEnd(); ++it)
          if (it.fragment().charFormat().isAnchor())
            QVERIFY(contrast(it.fragment().charFormat().foreground().color(), Tokens::current().panel) >= 4.5);
    }
    QVERIFY(w->width() <= 1280);
    applyTheme(*qApp, Theme::kLight);
  }

  // With the set-up and the guide open a small window has no room for views: they go, instead of being cut to slivers.
  void viewsAreReadableOrGone() {
    WindowDriver w({1280, 800});
    SetUpDialog* dialog = w.open(bundledModels()[0].model);
    QVERIFY(dialog);
    PanelBoard* board = w->findChild<PanelBoard*>();
    QVERIFY(w.loop().wait([&] { return board->isVisible() && board->width() > 400; }));
    const int width = dialog->width();
    QVERIFY(w.act("guide"));
    QVERIFY(w.loop().wait([&] { return !board->isVisible(); }));
    w.picture(QStringLiteral("guide-with-set-up"));
    QVERIFY(dialog->isVisible() && dialog->width() > width);
    QVERIFY(dialog->geometry().right() <= guideOf(w)->geometry().left());
    w.loop().act([&] { w->resize(1900, 800); });
    QVERIFY(w.loop().wait([&] { return board->isVisible() && board->width() > 400; }));
    QCOMPARE(dialog->width(), width);
    w.loop().act([&] { w->resize(1280, 800); });
    QVERIFY(w.loop().wait([&] { return !board->isVisible(); }));
    w.loop().act([&] { emit guideOf(w)->closeWanted(); });
    QVERIFY(w.loop().wait([&] { return board->isVisible() && board->width() > 400; }));
    QCOMPARE(dialog->width(), width);
  }

  // A sample is opened from its page, and from the start page.
  void samplesAreOpenedFromTheirPage() {
    WindowDriver w;
    const auto& files = w->store().project().files();
    for (const Sample& sample : samples()) {
      QVERIFY2(
          std::any_of(files.begin(), files.end(), [&](const FileEntry& f) { return f.sample && f.path == sample.path; }),
          qPrintable(sample.name));
      QVERIFY(!sample.detail.isEmpty());
    }
    QVERIFY(w.act("guide"));
    auto* text = guideOf(w)->findChild<GuideText*>();
    w.loop().act([&] { emit text->anchorClicked(QUrl(QStringLiteral("sample:nan"))); });
    QVERIFY(w.loop().wait([&] { return w->store().model() && w->session().modelPath().contains(QStringLiteral("/nan/")); }));
    QVERIFY(w.settled());
    w.loop().act([&] { emit text->anchorClicked(QUrl(QStringLiteral("sample:two_runs"))); });
    QVERIFY(w.loop().wait([&] { return w->store().readOnly() && w->store().project().runs().size() == 2; }));
  }
};

SS_QT_CLASS(QApplication, GuideTest)
#include "tst_guide.moc"
