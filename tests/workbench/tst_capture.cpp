// SPDX-License-Identifier: GPL-3.0-or-later
// A captured folder in the window, with the real worker: what PyTorch computed is compared before the first step, and what
// differs is an alert. The "PyTorch" of these folders is the engine's own gradient, in one of them with one changed.
#include <QCheckBox>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QLabel>
#include <QLineEdit>
#include <QProcess>
#include <QPushButton>
#include <QRegularExpression>
#include <QTableView>
#include <QTest>
#include <map>
#include <string>

#include "tests/support/qt_classes.h"
#include "tests/workbench/window_driver.h"
#include "views/common/findings.h"
#include "views/common/tokens.h"
#include "views/open_dialog/set_up_dialog.h"

using namespace stepscope;

namespace {

struct Captured {
  QTemporaryDir place;
  TestModel model;
  QStringList gradients;
  QString problem;
};

QByteArray contents(const QString& path) {
  QFile file(path);
  return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
}

bool write(const QString& path, const QByteArray& bytes) {
  QFile file(path);
  return file.open(QIODevice::WriteOnly) && file.write(bytes) == bytes.size();
}

// A folder as stepscope_capture writes it, of the digits. The gradient of `planted` is twice what it should be; empty: none.
void capture(const QString& planted, const QByteArray& draws, Captured& to, const QString& frozen = {}) {
  const TestModel digits = bundledModels()[0];
  to.model = {QStringLiteral("captured"), to.place.filePath(QStringLiteral("model.onnx")),
              to.place.filePath(QStringLiteral("batches.npz"))};
  QFile::copy(digits.model, to.model.model);
  QFile::copy(digits.data, to.model.data);
  const QString dumped = to.place.filePath(QStringLiteral("dumped.safetensors"));
  QProcess train;
  train.start(QStringLiteral(REAL_WORKER),
              {QStringLiteral("train"), to.model.model, QStringLiteral("--data"), to.model.data, QStringLiteral("--steps"),
               QStringLiteral("1"), QStringLiteral("--dump-grads"), dumped});
  if (!train.waitForFinished(120'000) || train.exitCode() != 0) {
    to.problem = QString::fromUtf8(train.readAllStandardError());
    return;
  }
  QByteArray bytes = contents(dumped);
  quint64 length = 0;
  memcpy(&length, bytes.constData(), 8);
  const QJsonObject header = QJsonDocument::fromJson(bytes.mid(8, static_cast<qsizetype>(length))).object();
  QByteArray data = bytes.mid(8 + static_cast<qsizetype>(length));
  QJsonObject golden;
  for (auto it = header.begin(); it != header.end(); ++it) {
    if (it.key() == u"__metadata__") continue;
    golden[QStringLiteral("grad/") + it.key()] = it.value();
    to.gradients << it.key();
    if (it.key() != planted) continue;
    const auto offsets = it.value().toObject()[QStringLiteral("data_offsets")].toArray();
    for (qsizetype at = offsets[0].toInteger(); at < offsets[1].toInteger(); at += 4) {
      float number = 0;
      memcpy(&number, data.constData() + at, 4);
      number *= 2;
      memcpy(data.data() + at, &number, 4);
    }
  }
  const QByteArray text = QJsonDocument(golden).toJson(QJsonDocument::Compact);
  length = static_cast<quint64>(text.size());
  const QByteArray prefix(reinterpret_cast<const char*>(&length), 8);
  if (!write(to.place.filePath(QStringLiteral("golden.safetensors")), prefix + text + data) ||
      !write(
          to.place.filePath(QStringLiteral("capture.json")),
          "{\"draws\": \"" + draws + "\", \"parameters\": [{\"name\": \"" + frozen.toUtf8() + "\", \"trained\": false}]}"))
    to.problem = QStringLiteral("the folder cannot be written");
  QFile::remove(dumped);
}

std::vector<snapshot::Alert> alerts(const SnapshotStore& store, const std::string& code) {
  std::vector<snapshot::Alert> found;
  std::copy_if(store.alerts().begin(), store.alerts().end(), std::back_inserter(found),
               [&code](const auto& alert) { return alert.code() == code; });
  return found;
}

bool compared(WindowDriver& w) {
  return w.loop().wait([&] { return w->store().findings().golden().comparison() != nullptr; }, 20'000) && w.settled();
}

QString said(View* view) { return view->findChild<QLabel*>(QStringLiteral("capture_summary"))->text(); }

}  // namespace

class CaptureTest : public QObject {
  Q_OBJECT

 private slots:
  void initTestCase() {
    applyTheme(*qApp, Theme::kLight);
    qputenv("STEPSCOPE_WORKER", REAL_WORKER);
  }

  void aGradientThatDiffersIsAnAlertThatNamesIt() {
    Captured first;
    capture({}, "none", first);
    QVERIFY2(first.problem.isEmpty() && first.gradients.size() > 2, qPrintable(first.problem));
    Captured c;
    capture(first.gradients[1], "none", c);
    QVERIFY2(c.problem.isEmpty(), qPrintable(c.problem));
    const QString name = first.gradients[1];
    WindowDriver w;
    QVERIFY_DONE(w.build({c.model.name, c.place.path(), c.model.data}), w);
    QVERIFY(compared(w));
    const auto told = alerts(w->store(), "capture_differs");
    QCOMPARE(told.size(), 1u);
    const QString message = QString::fromStdString(told[0].message());
    QVERIFY2(message.startsWith(QStringLiteral("gradient '%1' is not what PyTorch computed").arg(name)),
             qPrintable(message));
    QVERIFY2(message.contains(QStringLiteral("likely")), qPrintable(message));
    QCOMPARE(QString::fromStdString(w->store().graph()->value(told[0].value())->name()), name);

    View* view = w.view(QStringLiteral("capture"));
    QVERIFY(said(view).startsWith(QStringLiteral("1 of")));
    auto* table = view->findChild<QTableView*>();
    QVERIFY(w.loop().wait([&] { return table->model()->rowCount() >= c.gradients.size(); }));
    QCOMPARE(table->model()->index(0, 0).data().toString(), QStringLiteral("✗ differs"));
    QCOMPARE(table->model()->index(0, 2).data().toString(), name);
    w.loop().act([&] {
      QTest::mouseClick(table->viewport(), Qt::LeftButton, {}, table->visualRect(table->model()->index(0, 0)).center());
    });
    QVERIFY(w.loop().wait([&] { return w->selection().selection().value == told[0].value(); }));

    // Another plan of the same model: what is known of it stays.
    w.loop().act([&] { emit w->wishes().setOption(QStringLiteral("pass.group_updates"), QStringLiteral("off")); });
    QVERIFY(w.settled());
    QCOMPARE(alerts(w->store(), "capture_differs").size(), 1u);
    QVERIFY(w.act("step_whole"));
    QVERIFY_LOOP(w);
  }

  void whatAgreesIsSaidAndIsNoAlert() {
    Captured c;
    capture({}, "none", c);
    WindowDriver w;
    QVERIFY_DONE(w.build({c.model.name, c.place.path(), c.model.data}), w);
    QVERIFY(compared(w));
    QVERIFY(alerts(w->store(), "capture_differs").empty());
    View* view = w.view(QStringLiteral("capture"));
    QVERIFY2(said(view).startsWith(QStringLiteral("All %1 tensors agree").arg(c.gradients.size())), qPrintable(said(view)));
  }

  void whatCannotBeComparedIsSaidToBeUnchecked() {
    Captured c;
    capture({}, "drawn", c);
    WindowDriver w;
    QVERIFY_DONE(w.build({c.model.name, c.place.path(), c.model.data}), w);
    QVERIFY(compared(w));
    QCOMPARE(alerts(w->store(), "capture_unchecked").size(), 1u);
    View* view = w.view(QStringLiteral("capture"));
    QVERIFY2(said(view).startsWith(QStringLiteral("Unchecked")), qPrintable(said(view)));
  }

  void whatPyTorchDidNotTrainIsProposedAsFrozen() {
    Captured first;
    capture({}, "none", first);
    QVERIFY(first.gradients.size() > 2);
    const QString name = first.gradients[0];
    Captured c;
    capture({}, "none", c, name);
    WindowDriver w;
    auto* dialog = w.open(c.place.path());
    QVERIFY(dialog);
    const QString freeze = dialog->findChild<QLineEdit*>(QStringLiteral("set_up_freeze"))->text();
    QVERIFY2(QRegularExpression(freeze).match(name).hasMatch(), qPrintable(freeze));
    QVERIFY(!QRegularExpression(freeze).match(first.gradients[1]).hasMatch());
    w.loop().act([&] { dialog->findChild<QPushButton*>(QStringLiteral("set_up_build"))->click(); });
    QVERIFY(compared(w));
    QVERIFY(alerts(w->store(), "capture_differs").empty());
    const auto& tensors = w->store().findings().golden().comparison()->tensors();
    QCOMPARE(std::count_if(tensors.begin(), tensors.end(), [](const auto& t) { return t.verdict() == "agrees"; }),
             c.gradients.size() - 1);
  }

  // Before the build, and after it even where nothing is compared: they are no matter of the comparison.
  void whatTheCaptureDoesNotKeepIsSaid() {
    Captured c;
    capture({}, "none", c);
    QVERIFY(
        write(c.place.filePath(QStringLiteral("capture.json")),
              "{\"draws\": \"none\", \"notes\": [\"model.py:7: Python reads <b>3</b>\", \"a hook\", \"c\", \"d\", \"e\"]}"));
    WindowDriver w;
    View* view = w.view(QStringLiteral("capture"));
    w.loop().act([&] { view->findChild<QCheckBox*>(QStringLiteral("capture_always"))->setChecked(true); });
    if (w->store().findings().golden().wanted())
      w.loop().act([&] { view->findChild<QCheckBox*>(QStringLiteral("capture_always"))->click(); });
    QVERIFY(!w->store().findings().golden().wanted());
    auto* dialog = w.open(c.place.path());
    QVERIFY(dialog);
    const auto* notes = dialog->findChild<QLabel*>(QStringLiteral("set_up_notes"));
    QVERIFY(notes && notes->isVisible() && notes->textFormat() == Qt::PlainText);
    QVERIFY2(notes->text().contains(QStringLiteral("model.py:7: Python reads <b>3</b>")) &&
                 notes->text().contains(QStringLiteral("and 2 more")),
             qPrintable(notes->text()));
    w.loop().act([&] { dialog->findChild<QPushButton*>(QStringLiteral("set_up_build"))->click(); });
    QVERIFY(w.loop().wait([&] { return alerts(w->store(), "capture_note").size() == 5; }, 60'000));
    for (const auto& alert : alerts(w->store(), "capture_note")) QCOMPARE(alert.severity(), snapshot::Alert::WARNING);
    QVERIFY(!w->store().findings().golden().comparison());
    // Another plan, and the comparison itself, tell none of them twice and drop none.
    w.loop().act([&] { emit w->wishes().setOption(QStringLiteral("pass.group_updates"), QStringLiteral("off")); });
    QVERIFY(w.settled());
    QCOMPARE(alerts(w->store(), "capture_note").size(), 5u);
    w.loop().act([&] { view->findChild<QPushButton*>(QStringLiteral("capture_compare"))->click(); });
    QVERIFY(compared(w));
    QCOMPARE(alerts(w->store(), "capture_note").size(), 5u);
    QVERIFY_LOOP(w);
  }

  // As `capture(…, optimizer=…)` writes it of a run.
  void aCapturedRunGoesOnWhereItStood() {
    Captured c;
    capture({}, "none", c);
    QProcess train;
    const QString state = c.place.filePath(QStringLiteral("state.safetensors"));
    train.start(
        QStringLiteral(REAL_WORKER),
        {QStringLiteral("train"), c.model.model, QStringLiteral("--data"), c.model.data, QStringLiteral("--optimizer"),
         QStringLiteral("adam"), QStringLiteral("--steps"), QStringLiteral("7"), QStringLiteral("--save"), state});
    QVERIFY(train.waitForFinished(120'000) && train.exitCode() == 0);
    QVERIFY(write(c.place.filePath(QStringLiteral("capture.json")),
                  "{\"draws\": \"none\", \"settings\": [[\"optimizer\", \"adam\"], [\"lr\", \"0.25\"], "
                  "[\"start-state\", \"state.safetensors\"]]}"));
    WindowDriver w;
    auto* dialog = w.open(c.place.path());
    QVERIFY(dialog);
    // The form names the file that it begins with, in a field of its own.
    const auto field = [&] { return dialog->findChild<QLineEdit*>(QStringLiteral("set_up_more_start-state")); };
    QVERIFY(w.loop().wait([&] { return field() != nullptr; }));
    QCOMPARE(field()->text(), state);
    w.loop().act([&] { dialog->findChild<QPushButton*>(QStringLiteral("set_up_build"))->click(); });
    QVERIFY(w.loop().wait([&] { return w->session().built(); }, 60'000) && w.settled());
    QVERIFY(w.loop().wait([&] { return w->store().position().step() == 7; }, 20'000));
    const std::map<std::string, std::string> expected{{"optimizer", "adam"}, {"lr", "0.25"}};
    for (const auto& option : w->store().options())
      if (const auto it = expected.find(option.name()); it != expected.end()) QCOMPARE(option.value(), it->second);

    // For a model by itself, too.
    const TestModel digits = bundledModels()[0];
    const QString saved = c.place.filePath(QStringLiteral("digits.safetensors"));
    train.start(QStringLiteral(REAL_WORKER),
                {QStringLiteral("train"), digits.model, QStringLiteral("--data"), digits.data, QStringLiteral("--steps"),
                 QStringLiteral("7"), QStringLiteral("--save"), saved});
    QVERIFY(train.waitForFinished(120'000) && train.exitCode() == 0);
    WindowDriver plain;
    const auto buildWith = [&](const QString& file) {
      dialog = plain.open(digits.model);
      if (!dialog || !plain.loop().wait([&] { return field() != nullptr; })) return;
      dialog->findChild<QLineEdit*>(QStringLiteral("set_up_data"))->setText(digits.data);
      plain.loop().act([&] { field()->setText(file); });
      plain.loop().act([&] { dialog->findChild<QPushButton*>(QStringLiteral("set_up_build"))->click(); });
    };
    buildWith(saved);
    QVERIFY(plain.loop().wait([&] { return plain->session().built() && plain->store().position().step() == 7; }, 60'000));
    QVERIFY(plain.settled());
  }

  void itIsComparedOnlyWhenItIsWanted() {
    Captured c;
    capture({}, "none", c);
    WindowDriver w;
    View* view = w.view(QStringLiteral("capture"));
    auto* always = view->findChild<QCheckBox*>(QStringLiteral("capture_always"));
    QVERIFY(always->isChecked());
    w.loop().act([&] { always->click(); });
    QVERIFY_DONE(w.build({c.model.name, c.place.path(), c.model.data}), w);
    QVERIFY(!w->store().findings().golden().comparison());
    w.loop().act([&] { view->findChild<QPushButton*>(QStringLiteral("capture_compare"))->click(); });
    QVERIFY(compared(w));
    // After a step the parameters are no longer those that were captured.
    QVERIFY(w.act("step_whole"));
    w.loop().act([&] { view->findChild<QPushButton*>(QStringLiteral("capture_compare"))->click(); });
    QVERIFY(w.settled());
    QVERIFY(said(view).contains(QStringLiteral("expected step 0")));
  }
};

SS_QT_CLASS(QApplication, CaptureTest)
#include "tst_capture.moc"
