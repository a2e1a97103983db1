// SPDX-License-Identifier: GPL-3.0-or-later
// Journeys of the guide on the samples that it links: padding, a plan that does not fit, a machine that is busy, two runs
// that part.
#include <QComboBox>
#include <QLabel>
#include <QPushButton>
#include <QTest>
#include <atomic>
#include <thread>

#include "app/workbench/sample_list.h"
#include "tests/support/qt_classes.h"
#include "tests/workbench/window_driver.h"
#include "views/batch/batch_view.h"
#include "views/common/details.h"
#include "views/common/findings.h"
#include "views/common/run_times.h"
#include "views/common/tokens.h"
#include "views/compare/compare_view.h"

using namespace stepscope;

namespace {

TestModel sampleModel(const char* name) {
  const QString path = samplePath(QLatin1String(name));
  return {QLatin1String(name), path, path.section('/', 0, -2) + QStringLiteral("/batches.npz")};
}

QString pagesOf(QWidget& view) {
  QString all;
  for (const auto* page : view.findChildren<Details*>()) all += page->toPlainText().replace(QChar::Nbsp, ' ');
  return all;
}

// Threads that compute for as long as it lives: more of them than the machine has cores.
class Load {
 public:
  Load() {
    for (unsigned i = 0; i < 3 * std::max(1U, std::thread::hardware_concurrency()); ++i)
      threads_.emplace_back([this] {
        while (!over_) {
        }
      });
  }
  ~Load() {
    over_ = true;
    for (std::thread& t : threads_) t.join();
  }

 private:
  std::atomic<bool> over_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace

class SamplesTest : public QObject {
  Q_OBJECT

 private slots:
  void initTestCase() {
    qputenv("STEPSCOPE_WORKER", REAL_WORKER);
    applyTheme(*qApp, Theme::kLight);
  }

  // What it costs is a time of the step and an advice, and the graph paints it.
  void paddingIsATimeAHeatAndAnAdvice() {
    WindowDriver w({1600, 1000});
    QVERIFY_DONE(w.openBuilt(sampleModel("padding")), w);
    w.loop().act([&] { w->session().train(3); });
    QVERIFY(w.settled());
    auto* batch = static_cast<BatchView*>(w.view(QStringLiteral("batch")));
    w.loop().act([batch] { batch->openPage(BatchView::kDensity); });
    QVERIFY2(w.loop().wait([&] { return pagesOf(*batch).contains(QStringLiteral("What it costs")); }),
             qPrintable(pagesOf(*batch)));
    const QString told = pagesOf(*batch);
    QVERIFY2(QRegularExpression(QStringLiteral("at least [\\d.,]+ (µs|ms|s) of a step")).match(told).hasMatch(),
             qPrintable(told));
    QVERIFY2(told.contains(QStringLiteral("longest row has")) || told.contains(QStringLiteral("rows of like length")),
             qPrintable(told));
    w.picture(QStringLiteral("padding-density"));
    // The same in the graph.
    QVERIFY(w.view(QStringLiteral("graph")));
    auto* heat = w->findChild<QComboBox*>(QStringLiteral("graph_heat"));  // it stands in the header of the panel
    QVERIFY(heat);
    const int kind = heat->findText(QStringLiteral("padding"), Qt::MatchContains);
    QVERIFY(kind > 0);
    w.loop().act([&] { heat->setCurrentIndex(kind); });
    QVERIFY(w.settled());
    w.picture(QStringLiteral("padding-heat"));
    QVERIFY_LOOP(w);
  }

  // The row that did worst leads to its tokens.
  void theWorstRowLeadsToTheContents() {
    WindowDriver w({1600, 1000});
    QVERIFY_DONE(w.openBuilt(sampleModel("padding")), w);
    auto* batch = static_cast<BatchView*>(w.view(QStringLiteral("batch")));
    QVERIFY_DONE(w.act("step_whole"), w);
    w.loop().act([batch] { batch->openPage(BatchView::kWorst); });
    QVERIFY(w.loop().wait([&] { return w->store().findings().rowLosses() != nullptr; }, 10'000));
    w.loop().act([&] { w->session().runTo(w->store().findings().rowLosses()->instruction() + 1); });
    const auto link = [&] {
      static const QRegularExpression kLink(QStringLiteral("href=\"(do:contents:(\\d+):(\\d+))\""));
      for (auto* page : batch->findChildren<Details*>())
        if (const auto match = kLink.match(page->toHtml()); match.hasMatch()) return std::pair(page, match);
      return std::pair<Details*, QRegularExpressionMatch>();
    };
    QVERIFY2(w.loop().wait([&] { return link().first != nullptr; }, 10'000), qPrintable(pagesOf(*batch)));
    QVERIFY(w.settled());
    w.picture(QStringLiteral("padding-worst"));
    const auto [page, match] = link();
    const int sample = match.captured(2).toInt(), place = match.captured(3).toInt();
    w.loop().act([page = page, match = match] { emit page->anchorClicked(QUrl(match.captured(1))); });
    const auto* tokens = batch->findChild<QTableView*>(QStringLiteral("batch_tokens"));
    QVERIFY(w.loop().wait([&] { return tokens->isVisible() && tokens->currentIndex().isValid(); }, 10'000));
    QCOMPARE(tokens->currentIndex().row(), sample);
    QCOMPARE(tokens->currentIndex().column(), place);
    QVERIFY(tokens->viewport()->rect().intersects(tokens->visualRect(tokens->currentIndex())));
    w.picture(QStringLiteral("padding-contents"));
  }

  // A limit that the plan does not fit into is refused, and one click makes it fit.
  void whatDoesNotFitIsMadeToFit() {
    WindowDriver w({1600, 1000});
    QVERIFY_DONE(w.openBuilt(sampleModel("too_large")), w);
    const auto size = [&] { return w->store().plan()->plan().persistent_bytes() + w->store().plan()->plan().arena_bytes(); };
    QVERIFY2(size() > 10 * 1024 * 1024, qPrintable(QString::number(size())));
    w.loop().act([&] { emit w->wishes().setOption(QStringLiteral("memory.limit"), QStringLiteral("10 MiB")); });
    QVERIFY(w.loop().wait([&] { return w->notice().isProblem(); }));
    QVERIFY(w.settled());
    w.picture(QStringLiteral("too-large"));
    auto* fit = w->notice().findChild<QPushButton*>(QStringLiteral("notice_action"));
    QVERIFY2(fit && fit->isVisible() && fit->text() == QStringLiteral("Fit by recompute"), qPrintable(w->notice().text()));
    w.loop().act([fit] { fit->click(); });
    QVERIFY(w.settled());
    QVERIFY2(size() <= 10 * 1024 * 1024, qPrintable(QString::number(size())));
    // The proof and the page tell the same: kernels of this model have workspaces, which are no values.
    const Findings& findings = w->store().findings();
    QVERIFY(findings.optionProof());
    QVERIFY(w.loop().wait([&] {
      return findings.recompute() &&
             findings.recompute()->present_arena_bytes() == findings.optionProof()->after_arena_bytes();
    }));
    QCOMPARE(findings.optionProof()->after_peak_bytes(), findings.recompute()->present_peak_bytes());
    w.loop().act([&] { w->notice().clear(); });
    QVERIFY_DONE(w.act("step_whole"), w);
    QVERIFY2(!w->notice().isProblem(), qPrintable(w->notice().text()));
    w.picture(QStringLiteral("too-large-fits"));
  }

  // Processor time stands beside wall time, and a run on a busy machine says so in the list of runs and in Compare.
  void aRunOnABusyMachineSaysSo() {
    WindowDriver w({1600, 1000});
    QVERIFY_DONE(w.openBuilt(sampleModel("too_large")), w);
    {
      const Load load;
      w.loop().act([&] { w->session().train(6); });
      QVERIFY(w.loop().wait([&] { return w->store().series().size() == 6 && !w->session().busy(); }, 120'000));
    }
    QVERIFY(w.recorded());
    w.loop().act([&] { w->recording().queries().refreshRuns(); });
    auto& times = RunTimes::of(w->store().project());
    QVERIFY(w.loop().wait([&] { return times.step(1).n > 0; }));
    QVERIFY2(times.step(1).waitShare >= 0.1, qPrintable(QString::number(times.step(1).waitShare)));
    QStringList cells;
    const auto* table = w.view(QStringLiteral("runs"))->findChild<QTableView*>();
    QVERIFY(w.loop().wait([&] {
      cells.clear();
      for (int c = 0; c < table->model()->columnCount(); ++c) cells << table->model()->index(0, c).data().toString();
      return !cells.filter(QStringLiteral("busy")).isEmpty();
    }));
    w.picture(QStringLiteral("busy-runs"));
    w.loop().act([&] {
      CompareRequest request;
      request.a = request.b = 1;
      emit w->wishes().compareRuns(request);
      w->applyLayout(QStringLiteral("Compare"));
    });
    const auto* note = w.view(QStringLiteral("compare"))->findChild<QLabel*>(QStringLiteral("compare_note"));
    QVERIFY(w.loop().wait([&] { return note->isVisible() && note->text().contains(QStringLiteral("busy machine")); }));
    w.picture(QStringLiteral("busy-compare"));
  }

  // The recorded project: two runs that differ in the rate, equal until the first update.
  void twoRecordedRunsPart() {
    WindowDriver w({1600, 1000});
    QVERIFY_DONE(w.openRecorded(sampleModel("two_runs").model), w);
    QCOMPARE(w->store().project().runs().size(), std::size_t{2});
    w.loop().act([&] {
      CompareRequest request;
      request.a = 1;
      request.b = 2;
      emit w->wishes().compareRuns(request);
      w->applyLayout(QStringLiteral("Compare"));
    });
    const auto firstOf = [&](const char* view, int column) {
      auto* compare = qobject_cast<CompareView*>(w.view(QStringLiteral("compare")));
      compare->showPage(QLatin1String(view));
      const auto* table = compare->findChild<View*>(QLatin1String(view))->findChild<QTableView*>();
      return table && table->model()->rowCount() > 0 ? table->model()->index(0, column).data().toString() : QString();
    };
    QVERIFY(w.loop().wait([&] { return firstOf("compare_settings", 0) == u"lr"; }));
    QCOMPARE(firstOf("compare_settings", 1), QStringLiteral("0.05"));
    QCOMPARE(firstOf("compare_settings", 2), QStringLiteral("0.2"));
    // Step 0 is before the first update; the losses part in step 1.
    QVERIFY(w.loop().wait([&] { return firstOf("compare_numbers", 0) == u"1"; }));
    w.picture(QStringLiteral("two-runs"));
  }
};

SS_QT_CLASS(QApplication, SamplesTest)
#include "tst_samples.moc"
