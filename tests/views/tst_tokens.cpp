// SPDX-License-Identifier: GPL-3.0-or-later
// Colours and fields of both themes; numbers, units and names as they are shown.
#include <QAbstractItemView>
#include <QComboBox>
#include <QLineEdit>
#include <QSpinBox>
#include <QStyleOptionFrame>
#include <QTest>
#include <cmath>
#include <limits>

#include "engine/snapshot/plan.pb.h"
#include "tests/support/qt_classes.h"
#include "views/common/file_name.h"
#include "views/common/format.h"
#include "views/common/tokens.h"

using namespace stepscope;

class TokensTest : public QObject {
  Q_OBJECT

 private slots:
  void textKeepsItsContrastInBothThemes() {
    for (const Theme theme : {Theme::kLight, Theme::kDark}) {
      const Tokens& t = Tokens::of(theme);
      for (const QColor& surface : {t.window, t.panel, t.raised}) {
        for (const QColor& text : {t.text, t.muted, t.faint, t.accent, t.ok, t.warn, t.error}) {
          QVERIFY2(contrast(text, surface) >= 4.5, qPrintable(text.name() + " on " + surface.name()));
        }
      }
      for (const QColor& surface : {t.select, t.currentRow, t.hover}) {
        for (const QColor& text : {t.text, t.muted})
          QVERIFY2(contrast(text, surface) >= 4.5, qPrintable(text.name() + " on " + surface.name()));
      }
      for (const QColor& text : {t.accent, t.ok, t.warn, t.error})  // what keeps its colour in a selected row
        QVERIFY2(contrast(text, t.select) >= 4.5, qPrintable(text.name() + " on " + t.select.name()));
      for (const char* c : {"matmul", "normalization", "activation", "elementwise", "movement", "reduction", "loss",
                            "optimizer", "convolution", "random", "control", "other"}) {
        QVERIFY2(contrast(t.category(QLatin1String(c)), t.panel) >= 3, c);
      }
      for (int b = 0; b <= snapshot::CLASS_UPDATE; ++b) QVERIFY(contrast(t.bufferClass(b), t.panel) >= 3);
      QVERIFY(contrast(t.edge, t.panel) >= 3);
      QVERIFY(contrast(t.number, t.panel) >= 4.5);
    }
  }

  void whatAFieldAsksForIsReadable() {
    for (const Theme theme : {Theme::kDark, Theme::kLight}) {
      applyTheme(*qApp, theme);
      QLineEdit field;
      field.setPlaceholderText(QStringLiteral("Filter"));
      field.ensurePolished();
      const QColor words = field.palette().color(QPalette::PlaceholderText);
      QVERIFY(contrast(mixed(words, Tokens::current().panel, words.alphaF()), Tokens::current().panel) >= 4.5);
      QVERIFY(contrast(field.palette().color(QPalette::Text), Tokens::current().panel) >= 7);
    }
  }

  // The text of a box of numbers, that for "none" among them, has its room.
  // Its rows are as high as those of menus, and a line tells them from what they cover.
  void aListThatDropsDownIsReadable() {
    QComboBox box;
    box.addItems({QStringLiteral("SGD"), QStringLiteral("AdamW"), QStringLiteral("Adam")});
    box.show();
    box.showPopup();
    const int row = box.view()->sizeHintForRow(0);
    QVERIFY2(row >= qRound(1.6 * Metrics::current().unit), qPrintable(QString::number(row)));
    const QImage list = box.view()->grab().toImage();
    QCOMPARE(list.pixelColor(list.width() / 2, 0), Tokens::current().border);
    if (const QString folder = qEnvironmentVariable("STEPSCOPE_PICTURES"); !folder.isEmpty())
      box.view()->window()->grab().save(folder + QStringLiteral("/drop-down.png"));
    box.hidePopup();
  }

  void aBoxOfNumbersShowsItsWholeText() {
    applyTheme(*qApp, Theme::kLight);
    QSpinBox box;
    box.setRange(5, 100'000);
    box.setSpecialValueText(QStringLiteral("Rounds: 40 or 16"));
    box.setSuffix(QStringLiteral(" rounds"));
    box.resize(box.sizeHint());
    box.show();
    const auto* text = box.findChild<QLineEdit*>();
    QStyleOptionFrame option;
    option.initFrom(text);
    const int room = text->style()->subElementRect(QStyle::SE_LineEditContents, &option, text).width();
    for (const int value : {5, 100'000}) {
      box.setValue(value);
      const int needed = text->fontMetrics().horizontalAdvance(text->text()) + 4;  // what a line edit leaves at both sides
      QVERIFY2(room >= needed, qPrintable(QStringLiteral("%1: %2 of %3").arg(text->text()).arg(room).arg(needed)));
    }
  }

  void numbersPickTheirUnit() {
    QCOMPARE(format::time(123), QStringLiteral("123 ns"));
    QCOMPARE(format::time(44'700), QStringLiteral("44.7 µs"));
    QCOMPARE(format::time(5'410'000), QStringLiteral("5.41 ms"));
    QCOMPARE(format::time(12'340'000'000), QStringLiteral("12.34 s"));
    QCOMPARE(format::time(83'400'000'000), QStringLiteral("1:23.4"));
    QCOMPARE(format::bytes(768), QStringLiteral("768 B"));
    QCOMPARE(format::bytes(192 * 1024), QStringLiteral("192 KiB"));
    QCOMPARE(format::count(1284), QStringLiteral("1,284"));
    QCOMPARE(format::count(-1284), QStringLiteral("−1,284"));
    QCOMPARE(format::number(-2.1416e-4, 5), QStringLiteral("−2.1416e−4"));
    QCOMPARE(format::number(std::nan("")), QStringLiteral("NaN"));
    QCOMPARE(format::number(-std::numeric_limits<double>::infinity()), QStringLiteral("−∞"));
    QCOMPARE(format::count(std::numeric_limits<std::int64_t>::min()).left(2), QStringLiteral("−9"));
  }

  void bidiAndControlCharactersAreVisible() {
    QCOMPARE(format::visible(std::string("a\u202Eb\n")), QStringLiteral("a⟨U+202E⟩b⏎"));
    QCOMPARE(format::fileName(QStringLiteral("/data/gpt/model.onnx")), QStringLiteral("gpt/model.onnx"));
    QCOMPARE(format::fileName(QStringLiteral("/data/gpt/small\u202E.onnx")), QStringLiteral("small⟨U+202E⟩.onnx"));
    QCOMPARE(format::fileName(QString()), QString());
  }

  void bytesInTextsOfTheEngineGetTheirUnit() {
    QCOMPARE(format::bytesWithin(QStringLiteral("arena of 196608 bytes, lower bound 131072 bytes")),
             QStringLiteral("arena of 192 KiB, lower bound 128 KiB"));
    QCOMPARE(format::bytesWithin(QStringLiteral("12 bytes of 4096 matches")), QStringLiteral("12 bytes of 4096 matches"));
    QCOMPARE(format::bytesWithin(QString()), QString());
  }
};

SS_QT_CLASS(QApplication, TokensTest)
#include "tst_tokens.moc"
