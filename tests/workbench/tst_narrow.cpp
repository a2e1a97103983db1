// SPDX-License-Identifier: GPL-3.0-or-later
// Views in little room: numbers stay whole, words unbroken, and what a view says when it has nothing to show can be read.
#include <QLabel>
#include <QListWidget>
#include <QMouseEvent>
#include <QStyleHints>
#include <QTabBar>
#include <QTableView>
#include <QTest>
#include <QTextBlock>
#include <QTextBrowser>
#include <QTextLayout>

#include "tests/support/qt_classes.h"
#include "tests/workbench/window_driver.h"
#include "views/common/findings.h"
#include "views/common/row_table.h"
#include "views/common/tokens.h"
#include "views/compare/compare_view.h"
#include "views/open_dialog/set_up_dialog.h"

using namespace stepscope;

namespace {

bool isNumber(const QString& text) {
  return std::any_of(text.begin(), text.end(), [](QChar c) { return c.isDigit(); }) &&
         std::none_of(text.begin(), text.end(), [](QChar c) { return c == '/' || c == '('; });
}

// The first cell with a number that its column does not show whole; empty: none.
QString cutNumber(const QTableView& table) {
  const QFontMetrics metrics(table.font());
  for (int c = 0; c < table.model()->columnCount(); ++c) {
    const bool right = table.model()->index(0, c).data(Qt::TextAlignmentRole).toInt() & Qt::AlignRight;
    if (table.isColumnHidden(c) || !right) continue;
    for (int r = 0; r < table.model()->rowCount(); ++r) {
      const QModelIndex at = table.model()->index(r, c);
      if (at.data(RowTableModel::kSortRole).typeId() == QMetaType::QString) continue;  // a name
      const QString text = at.data().toString();
      if (isNumber(text) && metrics.horizontalAdvance(text) + 18 > table.columnWidth(c))
        return QStringLiteral("%1 in %2 pixels").arg(text).arg(table.columnWidth(c));
    }
  }
  return {};
}

// The first word of a page that a line ends within though it has room for the word; empty: none.
QString brokenWord(const QTextBrowser& page) {
  for (QTextBlock block = page.document()->begin(); block.isValid(); block = block.next()) {
    const QString text = block.text();
    const QTextLayout& layout = *block.layout();
    for (int i = 0; i + 1 < layout.lineCount(); ++i) {
      const int end = layout.lineAt(i).textStart() + layout.lineAt(i).textLength();
      if (!text[end - 1].isLetterOrNumber() || !text[end].isLetterOrNumber()) continue;
      const int from = static_cast<int>(text.lastIndexOf(QChar::Space, end - 1)) + 1;
      qsizetype to = text.indexOf(QChar::Space, end);
      if (to < 0) to = text.size();
      const QString word = text.mid(from, to - from);
      if (page.fontMetrics().horizontalAdvance(word) < layout.lineAt(i).width()) return word;
    }
  }
  return {};
}

}  // namespace

class NarrowTest : public QObject {
  Q_OBJECT

 private slots:
  void initTestCase() {
    qputenv("STEPSCOPE_WORKER", REAL_WORKER);
    applyTheme(*qApp, Theme::kLight);
  }

  // Beside wide neighbours the pages of Compare scroll, stand below each other or wrap; no number loses a digit.
  void compareShowsEveryNumberWhole() {
    WindowDriver w({1280, 800});
    const std::vector<std::pair<std::string, std::string>> settings{{"optimizer", "adamw"}};
    for (const char* rate : {"0.001", "0.0123456789"}) {
      auto own = settings;
      own.emplace_back("lr", rate);
      QVERIFY_DONE(w.openBuilt(bundledModels()[1], own), w);
      for (int i = 0; i < 3; ++i) QVERIFY_DONE(w.act("step_whole"), w);
      QVERIFY(w.recorded());
    }
    w.loop().act([&] { w->applyLayout(QStringLiteral("Step")); });
    auto* compare = qobject_cast<CompareView*>(w.view(QStringLiteral("compare")));
    w.loop().act([&] { w->board().move(QStringLiteral("compare"), Area::kRight); });
    const auto& facts = w->store().project();
    QVERIFY(w.loop().wait([&] { return !facts.comparing() && facts.runComparison() && facts.runComparison()->both == 3; }));
    for (const int width : {270, 340, 460, 640}) {
      // As a splitter that is drawn there would.
      compare->setFixedWidth(width);
      QVERIFY(w.settled());
      for (const char* id : {"compare_both", "compare_settings", "compare_numbers", "compare_phases", "compare_operators",
                             "compare_memory"}) {
        w.loop().act([&] { compare->showPage(QLatin1String(id)); });
        QVERIFY(w.settled());
        const auto* table = compare->findChild<View*>(QLatin1String(id))->findChild<QTableView*>();
        QVERIFY2(table && w.loop().wait([&] { return table->model()->rowCount() > 0; }, 5'000), id);
        const QString cut = cutNumber(*table);
        QVERIFY2(cut.isEmpty(), qPrintable(QStringLiteral("%1 at %2: %3").arg(QLatin1String(id)).arg(width).arg(cut)));
        if (qstrcmp(id, "compare_settings") == 0) {
          bool found = false;
          for (int r = 0; r < table->model()->rowCount(); ++r) {
            const QString text = table->model()->index(r, 2).data().toString();
            if (text != u"0.0123456789") continue;
            found = true;
            QVERIFY(QFontMetrics(table->font()).horizontalAdvance(text) + 18 <= table->columnWidth(2));
          }
          QVERIFY(found);
        }
        w.picture(QStringLiteral("narrow-%1-%2").arg(QLatin1String(id)).arg(width));
      }
      for (const char* name : {"compare_verdict", "compare_note"}) {
        const auto* label = compare->findChild<QLabel*>(QLatin1String(name));
        QVERIFY2(label->isHidden() || label->height() >= label->heightForWidth(label->width()), name);
      }
    }
  }

  // What a rewind took back is in the file, and counts in no list and no comparison.
  void stepsThatWereTakenBackDoNotCount() {
    WindowDriver w({1280, 800});
    QVERIFY_DONE(w.openBuilt(bundledModels()[0]), w);
    w.loop().act([&] { w->session().train(9); });
    QVERIFY(w.recorded());
    QVERIFY_DONE(w.act("new_run"), w);
    QVERIFY(w.loop().wait([&] { return w->session().built() && !w->session().busy(); }));
    w.loop().act([&] { w->session().train(12); });
    QVERIFY(w.recorded());
    w.loop().act([&] { w->applyLayout(QStringLiteral("Compare")); });
    const auto& facts = w->store().project();
    const auto compared = [&](std::int64_t steps, std::int64_t both, std::int64_t takenBack) {
      return w.loop().wait([&] {
        const auto& c = facts.runComparison();
        return !facts.comparing() && c && facts.runs().size() == 2 && facts.runs()[1].steps == steps &&
               c->b.run.steps == steps && c->both == both && c->b.run.takenBack == takenBack;
      });
    };
    w.view(QStringLiteral("runs"));
    w.view(QStringLiteral("compare"));
    QVERIFY(compared(12, 9, 0));
    // Nothing ran since the rewind.
    w.loop().act([&] { w->session().rewind(4); });
    QVERIFY(w.recorded());
    QCOMPARE(w->store().position().step(), 4);
    QVERIFY(compared(4, 4, 8));
    QVERIFY(w.recorded());
    QVERIFY(cellsOf(*w.view(QStringLiteral("runs"))).contains(QStringLiteral("4")));
    w.picture(QStringLiteral("compare-rewound"));
    // It goes on from there.
    w.loop().act([&] { w->session().train(2); });
    QVERIFY(w.recorded());
    QVERIFY(compared(6, 6, 8));
    QVERIFY_LOOP(w);
  }

  // With the set-up beside it a panel has half of its room.
  void wordsStayWholeBesideTheSetUp() {
    for (const QSize size : {QSize(1440, 900), QSize(1600, 1000), QSize(1760, 1000)}) {
      WindowDriver w(size);
      QVERIFY_DONE(w.openBuilt(bundledModels()[1]), w);
      w.loop().act([&] { w->session().train(1); });
      QVERIFY(w.settled());
      const auto& plan = w->store().plan()->plan();
      w.loop().act([&] { w->session().runTo(plan.first_backward() + 9); });
      QVERIFY(w.settled());
      w.select(Selection::ofInstruction(plan.first_backward() + 8));
      View* tensor = w.view(QStringLiteral("tensors"));
      QVERIFY_DONE(w.act("configure"), w);
      QVERIFY(w.settled());
      w.picture(QStringLiteral("tensor-beside-set-up-%1").arg(size.width()));
      if (!tensor->isVisible()) continue;
      for (const auto* page : tensor->findChildren<QTextBrowser*>()) {
        if (!page->isVisible()) continue;
        const QString word = brokenWord(*page);
        QVERIFY2(word.isEmpty(),
                 qPrintable(QStringLiteral("%1 at %2 of %3").arg(word).arg(page->width()).arg(size.width())));
      }
    }
  }

  // A change of options leaves its proof; a study that was never made has room for the words that say how to make one.
  void precisionSaysWhatToDoBesideAProof() {
    WindowDriver w({1280, 800});
    QVERIFY_DONE(w.openBuilt(bundledModels()[1]), w);
    w.loop().act([&] { w->session().train(1); });
    QVERIFY(w.settled());
    w.loop().act([&] { emit w->wishes().setOption(QStringLiteral("precision"), QStringLiteral("bf16")); });
    QVERIFY(w.settled() && w->store().findings().optionProof());
    View* view = w.view(QStringLiteral("precision"));
    w.loop().act([&] { w->board().move(QStringLiteral("precision"), Area::kBottom); });
    QVERIFY(w.settled());
    w.picture(QStringLiteral("precision-under-proof"));
    const auto* table = view->findChild<QTableView*>(QStringLiteral("precision_nodes"));
    QVERIFY(table->isVisible() && table->model()->rowCount() == 0);
    const QString text = QStringLiteral(
        "Nothing studied yet.\nChoose bf16 or fp16 and press “Study”: the present step, paused or between two, is run in it "
        "and in float32.");
    const QRect room = table->viewport()->rect().adjusted(2 * Metrics::current().unit, 0, -2 * Metrics::current().unit, 0);
    const QRect needed = QFontMetrics(table->font()).boundingRect(room, Qt::AlignCenter | Qt::TextWordWrap, text);
    QVERIFY2(needed.height() <= room.height(),
             qPrintable(QStringLiteral("%1 of %2").arg(room.height()).arg(needed.height())));
  }

  // One click opens a sample; the second of two lands where the set-up has come meanwhile, and does nothing there.
  void theSecondOfTwoClicksChangesNothing() {
    WindowDriver w({1280, 800});
    QGuiApplication::styleHints()->setMouseDoubleClickInterval(20'000);
    std::vector<FileEntry> files;
    for (const TestModel& model : bundledModels()) files.push_back({model.model, {}, true});
    w.loop().act([&] { w->store().project().setFiles(files); });
    QListWidget* samples = nullptr;
    for (auto* list : w->findChildren<QListWidget*>())
      if (list->isVisible() && list->count() > 1) samples = list;
    QVERIFY(samples);
    const QPoint at = samples->viewport()->mapTo(&*w, samples->visualItemRect(samples->item(1)).center());
    QWindow* window = w->windowHandle();
    w.loop().act([&] { QTest::mouseClick(window, Qt::LeftButton, {}, at); });
    SetUpDialog* dialog = nullptr;
    QVERIFY(w.loop().wait([&] {
      dialog = w->findChild<SetUpDialog*>();
      return dialog && dialog->isVisible();
    }));
    QVERIFY(w.settled());
    QWidget* beneath = w->childAt(at);
    QVERIFY(beneath && (beneath == dialog || dialog->isAncestorOf(beneath)));
    struct Presses : QObject {
      int count = 0;
      bool eventFilter(QObject*, QEvent* event) override {
        count += event->type() == QEvent::MouseButtonPress || event->type() == QEvent::MouseButtonDblClick;
        return false;
      }
    } presses;
    beneath->installEventFilter(&presses);
    w.loop().act([&] { QTest::mouseClick(window, Qt::LeftButton, {}, at); });
    QCOMPARE(presses.count, 0);
    QVERIFY(dialog->isVisible());
    // A click of its own is one.
    QGuiApplication::styleHints()->setMouseDoubleClickInterval(400);
    w.loop().act([&] { QTest::mouseClick(window, Qt::LeftButton, {}, at); });
    QVERIFY(w.loop().wait([&] { return presses.count == 1; }, 2'000) || presses.count == 1);
  }
};

SS_QT_CLASS(QApplication, NarrowTest)
#include "tst_narrow.moc"
