// SPDX-License-Identifier: GPL-3.0-or-later
#include <QAbstractItemModelTester>
#include <QHBoxLayout>
#include <QSignalSpy>
#include <QTest>
#include <cmath>

#include "hello_view.h"  // from views/README.md
#include "tests/support/qt_classes.h"
#include "tests/views/chains.h"
#include "views/common/bits.h"
#include "views/common/chosen_step.h"
#include "views/common/counted_steps.h"
#include "views/common/details.h"
#include "views/common/format.h"
#include "views/common/names.h"
#include "views/common/selection.h"
#include "views/common/sharing.h"
#include "views/common/snapshot_store.h"
#include "views/common/study_bar.h"
#include "views/common/table_panel.h"
#include "views/common/tokens.h"
#include "views/common/turns.h"
#include "views/tensors/slice.h"
#include "views/tensors/tensor_table.h"

using namespace stepscope;

namespace {

TensorPtr tensorOf(std::vector<std::int64_t> dims, const std::vector<float>& data) {
  auto t = std::make_shared<snapshot::TensorData>();
  t->set_dtype("float32");
  for (const auto d : dims) t->add_dims(d);
  t->set_data(data.data(), data.size() * sizeof(float));
  return t;
}

}  // namespace

class ViewsTest : public QObject {
  Q_OBJECT

 private slots:
  void slicesAreCheckedAgainstTheShape() {
    QString error;
    const std::vector<std::int64_t> dims = {2, 128, 768};
    const Slice s = Slice::parse(QStringLiteral("[1, 0:12, :]"), dims, 1 << 16, &error);
    QVERIFY2(error.isEmpty(), qPrintable(error));
    QCOMPARE(s.rows(), std::int64_t{12});
    QCOMPARE(s.columns(), std::int64_t{768});
    QCOMPARE(s.text(dims), QStringLiteral("1, 0:12, :"));
    for (const char* bad : {"2, :, :", ":, :, :", "0, 5:5, :", "0, :", "x, :, :"}) {
      Slice::parse(QString::fromLatin1(bad), dims, 1 << 16, &error);
      QVERIFY2(!error.isEmpty(), bad);
    }
  }

  void tensorTableShowsValuesAndSurvivesShortData() {
    TensorTable table;
    QAbstractItemModelTester tester(&table, QAbstractItemModelTester::FailureReportingMode::QtTest);
    const TensorPtr t = tensorOf({2, 3}, {1, -2, 3, std::nanf(""), 5, 6});
    table.set(TensorValues(t), Slice::first({2, 3}, 100));
    QCOMPARE(table.rowCount(), 2);
    QCOMPARE(table.index(0, 1).data().toString(), QStringLiteral("−2.000"));
    QCOMPARE(table.index(1, 0).data().toString(), QStringLiteral("NaN"));
    QVERIFY(std::isnan(TensorValues(tensorOf({1 << 30, 1 << 30}, {1})).at(5)));
    auto mean = std::make_shared<snapshot::TensorData>(*t);
    mean->set_dtype("no such type");
    table.set(TensorValues(mean), Slice::first({2, 3}, 100));
    QCOMPARE(table.rowCount(), 0);
  }

  void theReasonOfAPlaceNamesTheOtherBufferOnce() {
    snapshot::Plan p;
    auto* first = p.add_buffers();
    first->set_name("a<b>");
    auto* second = p.add_buffers();
    second->set_index(1);
    second->set_shares(0);
    second->set_decision("in place of 'a<b>', its last use");
    const PlanPtr plan = PlanSnapshot::make(p);
    QString html = Details::decision(*plan, plan->plan().buffers(1));
    QCOMPARE(html.count(QStringLiteral("a&lt;b&gt;")), 1);
    QVERIFY(html.contains(QStringLiteral("<a href='buffer:0'>")) && html.startsWith(QStringLiteral("in place of ")) &&
            html.endsWith(QStringLiteral("its last use")));
    second->set_decision("shares memory");
    html = Details::decision(*PlanSnapshot::make(p), p.buffers(1));
    QVERIFY(html.contains(QStringLiteral("shares memory")) && html.contains(QStringLiteral("<a href='buffer:0'>")));
  }

  // Whatever the words of its decision are.
  void whatABufferSharesIsToldByItsInstruction() {
    snapshot::Plan p;
    for (int i = 0; i < 3; ++i) {
      auto* buffer = p.add_buffers();
      buffer->set_index(i);
      buffer->set_value(i);
      buffer->set_in_arena(true);
      buffer->set_shares(i - 1);
      buffer->set_decision(i == 1 ? "in place of 'b', says a name" : "view, says another");
      auto* instruction = p.add_instructions();
      instruction->set_view(i == 1);
      instruction->add_outputs()->set_value(i);
    }
    const PlanPtr plan = PlanSnapshot::make(p);
    const auto& buffers = plan->plan().buffers();
    QVERIFY(!isView(*plan, buffers[0]) && !isInPlace(*plan, buffers[0]));
    QVERIFY(isView(*plan, buffers[1]) && !isInPlace(*plan, buffers[1]));
    QVERIFY(!isView(*plan, buffers[2]) && isInPlace(*plan, buffers[2]));
  }

  void aVerdictSaysWhetherBitsAreTheSame() {
    const auto of = [](const char* verdict) {
      snapshot::Determinism node;
      node.set_verdict(verdict);
      return bitsOf(node);
    };
    QVERIFY(of("deterministic") == Bits::kSame && of("deterministic, keyed random") == Bits::kSame);
    QVERIFY(of("depends on thread count") == Bits::kOfThreads && of("differs from run to run") == Bits::kMayDiffer);
    QVERIFY(of("not known yet") == Bits::kNotKnown);
  }

  void theExampleOfTheReadmeIsAView() {
    SnapshotStore store;
    SelectionModel selection;
    Wishes wishes;
    HelloView view({store, selection, wishes});
    QCOMPARE(view.objectName(), QStringLiteral("hello"));
    QCOMPARE(view.title(), QStringLiteral("Hello"));
    QVERIFY(view.emptyText().contains(QStringLiteral("Ctrl+O")));
    const GraphPtr graph = chain(3);
    store.setPlan(planOf(*graph));
    QCOMPARE(view.emptyText(), QString());
  }

  void aTurnDoesOnePieceOfWork() {
    QObject owner;
    std::vector<int> done;
    auto gone = std::make_unique<QObject>();
    turns::later(&owner, [&] { done.push_back(1); });
    turns::later(gone.get(), [&] { done.push_back(-1); });
    turns::later(&owner, [&] { done.push_back(2); });
    turns::later(&owner, [&] {
      done.push_back(3);
      turns::later(&owner, [&] { done.push_back(4); });
    });
    gone.reset();
    QVERIFY(done.empty());
    std::size_t most = 0;
    for (int i = 0; i < 200 && turns::waiting() > 0; ++i) {
      const std::size_t before = done.size();
      QCoreApplication::processEvents();
      most = std::max(most, done.size() - before);
    }
    QCOMPARE(done, (std::vector<int>{1, 2, 3, 4}));
    QCOMPARE(most, std::size_t{1});
  }

  // What holds the loop is the sum of what one turn does: panels that are shown together fill one after the other.
  void panelsShownTogetherFillInTurnsOfTheirOwn() {
    SnapshotStore store;
    SelectionModel selection;
    Wishes wishes;
    struct Counting : TablePanel {
      Counting(const ViewContext& c, int& filled)
          : TablePanel(c, QStringLiteral("counting"), QStringLiteral("Counting"),
                       {{QStringLiteral("A"), QStringLiteral("a"), false, 4}}),
            filled_(filled) {}
      void refill() override { ++filled_; }
      int& filled_;
    };
    int filled = 0;
    QWidget window;
    auto* row = new QHBoxLayout(&window);
    for (int i = 0; i < 4; ++i) row->addWidget(new Counting({store, selection, wishes}, filled));
    window.show();
    QCOMPARE(filled, 0);
    int most = 0;
    for (int i = 0; i < 400 && filled < 4; ++i) {
      const int before = filled;
      QCoreApplication::processEvents();
      most = std::max(most, filled - before);
    }
    QCOMPARE(filled, 4);
    QCOMPARE(most, 1);
  }

  void thePeakIsToldInTheWordsOfTheMap() {
    for (const auto bufferClass : {snapshot::CLASS_BACKWARD, snapshot::CLASS_UPDATE, snapshot::CLASS_FROZEN})
      QVERIFY(names::bufferClass(bufferClass).contains(' '));
    QCOMPARE(names::memoryOwner("backward"), names::bufferClass(snapshot::CLASS_BACKWARD));
    QCOMPARE(names::memoryOwner("update"), names::bufferClass(snapshot::CLASS_UPDATE));
    QCOMPARE(names::memoryOwner("stash"), QStringLiteral("stash"));
    QCOMPARE(names::memoryOwner("h.3\n"), format::visible(std::string("h.3\n")));
  }

  void selectionRemembersItsHistory() {
    SelectionModel selection;
    selection.select(Selection::ofNode(1));
    selection.select(Selection::ofNode(2));
    selection.select(Selection::ofNode(2));
    QVERIFY(selection.canGoBack());
    selection.goBack();
    QCOMPARE(selection.selection().node, 1);
    selection.goForward();
    QCOMPARE(selection.selection().node, 2);
    QVERIFY(!selection.canGoForward());
  }

  // After a rewind the newest step may be one that ran under a plan before the shown one.
  void aRewindShowsNothingThatAnotherPlanTook() {
    SnapshotStore store;
    const GraphPtr graph = chain(3);
    store.setGraph(graph);
    const auto stepOf = [&store](std::int64_t number, int shift) {
      auto record = std::make_shared<snapshot::StepRecord>();
      record->set_step(number);
      record->set_peak_bytes(1'000 + number);
      for (int i = 0; i < 3; ++i) {
        auto* span = record->add_spans();
        span->set_instruction(i);
        span->set_node(store.plan()->instruction(i)->node() + shift);
        span->set_end_ns(7);
      }
      return record;
    };
    store.setPlan(planOf(*graph));
    store.addStep(stepOf(0, 100));  // the nodes of another plan
    store.addStep(stepOf(1, 0));
    store.addStep(stepOf(2, 0));
    QCOMPARE(store.timing(1).step, 2);
    store.takeBackFrom(2);
    QCOMPARE(store.timing(1).step, 1);
    QCOMPARE(newestOfPlan(store)->peak_bytes(), 1'001);
    store.takeBackFrom(1);
    QVERIFY(store.timing(1).step < 0);
    QVERIFY(newestOfPlan(store) == nullptr);
  }

  // Until it is read, and where it cannot be shown, nothing of another step stands for a chosen one.
  void aChosenStepIsItselfOrSaysWhyNot() {
    SnapshotStore store;
    const GraphPtr graph = chain(3), other = chain(1);
    store.setGraph(graph);
    store.setPlan(planOf(*graph));
    for (int step = 0; step < 100; ++step) {
      snapshot::StepRecord record;
      record.set_step(step);
      for (int i = 0; i < 3; ++i) {
        auto* span = record.add_spans();
        span->set_instruction(i);
        span->set_node(store.plan()->instruction(i)->node());
        span->set_end_ns(step + 1);
      }
      store.addStep(std::make_shared<const snapshot::StepRecord>(record));
    }
    ChosenStep& chosen = ChosenStep::of(store);
    QSignalSpy changed(&chosen, &ChosenStep::changed);
    QCOMPARE(chosen.steps().size(), std::size_t{100});
    // One of the newest needs no file.
    QVERIFY(!chosen.choose(90));
    QVERIFY(chosen.state() == ChosenStep::State::kShown && chosen.record()->step() == 90 && chosen.text().isEmpty());
    QCOMPARE(chosen.steps().size(), std::size_t{1});
    // An older one has lost its spans.
    QVERIFY(chosen.choose(10));
    QVERIFY(chosen.state() == ChosenStep::State::kReading && chosen.steps().empty());
    QVERIFY(chosen.text().contains(QStringLiteral("Step 10 is read")));
    const auto of = [&](std::int64_t step, int node) {
      auto record = std::make_shared<snapshot::StepRecord>();
      record->set_step(step);
      auto* span = record->add_spans();
      span->set_instruction(1);
      span->set_node(node);
      return record;
    };
    const int node = store.plan()->instruction(1)->node();
    chosen.set(11, of(11, node), {});  // of a wish before
    QVERIFY(chosen.state() == ChosenStep::State::kReading);
    chosen.set(10, of(10, node), {});
    QVERIFY(chosen.state() == ChosenStep::State::kShown && chosen.record()->step() == 10);
    QVERIFY(chosen.textOfPlan().isEmpty());
    // Another plan: its instructions have other numbers.
    store.setPlan(planOf(*other));
    QVERIFY(chosen.state() == ChosenStep::State::kShown && chosen.text().isEmpty());
    QVERIFY(chosen.textOfPlan().contains(QStringLiteral("another plan")));
    store.setPlan(planOf(*graph));
    QVERIFY(chosen.textOfPlan().isEmpty());
    QVERIFY(!chosen.choose(-1) && chosen.choose(10));
    chosen.set(10, nullptr, QStringLiteral("a\u202Eb"));
    QVERIFY(chosen.text().contains(QStringLiteral("a⟨U+202E⟩b")));
    QVERIFY(chosen.choose(12));
    chosen.set(12, nullptr, {});
    QVERIFY(chosen.text().contains(QStringLiteral("no such step")));
    // Without times it is known, and says so.
    QVERIFY(chosen.choose(13));
    auto bare = std::make_shared<snapshot::StepRecord>();
    bare->set_step(13);
    chosen.set(13, bare, {});
    QVERIFY(chosen.state() == ChosenStep::State::kShown && chosen.text().contains(QStringLiteral("without the times")));
    // A rewind takes it back.
    QVERIFY(!chosen.choose(95));
    store.takeBackFrom(50);
    QVERIFY(chosen.state() == ChosenStep::State::kNewest && chosen.step() == -1);
    QVERIFY(changed.count() > 0);
  }

  // One part for every view that asks for a study: start, cancel, what is done, how far, and why there is no answer.
  void aStudyIsStartedFollowedAndCancelledByItsBar() {
    StudyOf<snapshot::LedgerReport> study;
    Wishes wishes;
    StudyBar bar("sample", study, wishes,
                 {QStringLiteral("Measure"), QStringLiteral("begins"), QStringLiteral("ends"), QStringLiteral("Steps"),
                  QStringLiteral("Warming up …")});
    connect(&study, &Study::changed, &bar, [&] { bar.follow(true); });
    bar.follow(true);
    QSignalSpy started(&bar, &StudyBar::startWanted), commands(&wishes, &Wishes::command);
    const auto line = [&](const char* id) { return bar.findChild<QLabel*>(QLatin1String(id)); };
    auto* progress = bar.findChild<QProgressBar*>(QStringLiteral("sample_progress"));
    QVERIFY(bar.isHidden());
    bar.button()->click();
    QCOMPARE(started.count(), 1);
    study.begin();
    QCOMPARE(bar.button()->text(), QStringLiteral("Cancel"));
    QCOMPARE(line("sample_what")->text(), QStringLiteral("Warming up …"));
    QVERIFY(!bar.isHidden() && progress->maximum() == 0);
    study.setProgress(QStringLiteral("a\u202Eb"), 3, 0);
    QCOMPARE(line("sample_what")->text(), QStringLiteral("a⟨U+202E⟩b (3 so far)"));
    study.setProgress(QStringLiteral("steps"), 3, 12);
    QCOMPARE(line("sample_what")->text(), QStringLiteral("3 of 12: steps"));
    QCOMPARE(progress->maximum(), 12);
    QCOMPARE(progress->value(), 3);
    // What runs is cancelled, also where another could not begin.
    bar.follow(false);
    bar.button()->click();
    QCOMPARE(started.count(), 1);
    QCOMPARE(commands.count(), 1);
    QCOMPARE(commands[0][0].toString(), QStringLiteral("stop"));
    study.finish(QStringLiteral("ledger: cancelled"));
    QVERIFY(!bar.isHidden() && progress->isHidden() && line("sample_what")->isHidden());
    QCOMPARE(line("sample_problem")->text(), QStringLiteral("ledger: cancelled"));
    // What is wrong with the fields comes first.
    bar.follow(false, QStringLiteral("memory 'x': no size"));
    QCOMPARE(line("sample_problem")->text(), QStringLiteral("memory 'x': no size"));
    QVERIFY(!bar.button()->isEnabled());
    bar.press();
    QCOMPARE(started.count(), 1);
    study.begin();
    study.finish({});
    QVERIFY(bar.isHidden());
  }
};

SS_QT_CLASS(QApplication, ViewsTest)
#include "tst_views.moc"
