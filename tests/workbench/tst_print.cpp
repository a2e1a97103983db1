// SPDX-License-Identifier: GPL-3.0-or-later
// Reports on paper: what stands together stays together, charts are drawn as vectors, names of files harm nothing.
#include <QFile>
#include <QImage>
#include <QPainter>
#include <QTemporaryDir>
#include <QTest>
#include <cmath>
#include <numeric>

#include "app/workbench/print/pages.h"
#include "app/workbench/print/printed_blocks.h"
#include "app/workbench/print/printed_drawing.h"
#include "app/workbench/print/printed_table.h"
#include "app/workbench/print/report_pdf.h"
#include "storage/report/data.h"
#include "storage/report/run_document.h"
#include "tests/storage/sample_run.h"
#include "tests/support/qt_classes.h"

using namespace stepscope;
using namespace stepscope::print;
namespace doc = stepscope::storage::doc;

namespace {

Paper screen() {
  Paper paper;
  paper.width = 986;
  paper.height = 650;
  paper.letters = QFont();
  return paper;
}

Piece line(double height, bool withNext = false) {
  Piece piece;
  piece.height = height;
  piece.withNext = withNext;
  return piece;
}

doc::Document sampleDocument(const QTemporaryDir& folder) {
  const std::filesystem::path file = folder.filePath(QStringLiteral("a.stepscope")).toStdString();
  storage::testing::recordSample(file, {2, 50});
  const auto data = storage::readReportData(*storage::Project::openReadOnly(file), 0);
  return data ? storage::runDocument(*data) : doc::Document();
}

// What a piece draws, by kinds of pixels.
struct Drawn {
  int coloured = 0, dark = 0;
};
Drawn drawn(const Piece& piece, const Paper& paper) {
  QImage image(static_cast<int>(paper.width), static_cast<int>(std::ceil(piece.height)) + 1, QImage::Format_RGB32);
  image.fill(Qt::white);
  QPainter painter(&image);
  piece.draw(painter, 0);
  painter.end();
  Drawn found;
  for (int y = 0; y < image.height(); ++y) {
    for (int x = 0; x < image.width(); ++x) {
      const QColor c = image.pixelColor(x, y);
      found.coloured += c.hsvSaturation() > 20;
      found.dark += c.lightness() < 120;
    }
  }
  return found;
}

}  // namespace

class PrintTest : public QObject {
  Q_OBJECT

 private slots:
  // Whatever stands before it.
  void whatBelongsTogetherStandsOnOnePage() {
    constexpr double kPage = 100;
    int parted = 0;
    for (int before = 0; before < 40; ++before) {
      std::vector<Piece> pieces(static_cast<std::size_t>(before), line(7));
      const auto first = pieces.size();
      pieces.push_back(line(10, true));  // a heading
      pieces.push_back(line(5, true));   // the line under it
      pieces.push_back(line(40));        // a chart
      const auto pages = pagesOf(pieces, kPage);
      std::vector<int> pageOf;
      for (std::size_t p = 0; p < pages.size(); ++p) {
        double end = 0;
        for (const PlacedPiece& placed : pages[p]) {
          QVERIFY(placed.top >= end);
          end = placed.top + placed.piece->height;
          QVERIFY(end <= kPage);
          pageOf.push_back(static_cast<int>(p));
        }
      }
      QCOMPARE(pageOf.size(), pieces.size());
      QCOMPARE(pageOf[first], pageOf[first + 2]);
      // One after the other they would have stood on two.
      const double begin = 7.0 * before;
      parted += static_cast<int>(begin / kPage) != static_cast<int>((begin + 54) / kPage);
    }
    QVERIFY(parted > 0);
  }

  void whatIsHigherThanAPagePartsWhereItMay() {
    const std::vector<Piece> pieces = {line(60), line(50, true), line(50, true), line(50), line(300), line(10)};
    const auto pages = pagesOf(pieces, 100);
    std::size_t placed = 0;
    for (const PlacedPage& page : pages) placed += page.size();
    QCOMPARE(placed, pieces.size());
    QCOMPARE(pages[3].front().piece, &pieces[4]);
    QCOMPARE(pages[3].size(), std::size_t{1});
    QVERIFY(pagesOf({}, 100)[0].empty());
  }

  void aTableThatGoesOnBeginsWithItsHeads() {
    doc::Table table{{{"what", ""}, {"n", "", doc::Quantity::kCount}}, {}};
    for (int i = 0; i < 120; ++i) table.rows.push_back({i % 3 == 0 ? "row\nof two lines" : "row", i});
    const Paper paper = screen();
    const std::vector<Piece> pieces = tablePieces(paper, table);
    QCOMPARE(pieces.size(), table.rows.size() + 1);
    const auto pages = pagesOf(pieces, paper.height);
    QVERIFY(pages.size() > 2);
    std::size_t rows = 0;
    for (const PlacedPage& page : pages) {
      QVERIFY(page.size() > 1);
      QCOMPARE(page[0].top, 0.0);
      QCOMPARE(page[0].piece->height, pieces[0].height);
      QVERIFY(page.back().top + page.back().piece->height <= paper.height);
      rows += page.size() - 1;
    }
    QCOMPARE(rows, table.rows.size());
  }

  void columnsTakeWhatTheyWantOrGive() {
    const auto sum = [](const std::vector<double>& widths) { return std::accumulate(widths.begin(), widths.end(), 0.0); };
    QCOMPARE(sharedWidths({30, 40}, {30, 20}, 100), (std::vector<double>{30, 40}));
    const auto shared = sharedWidths({50, 400, 300}, {50, 60, 60}, 350);
    QVERIFY(std::abs(sum(shared) - 350) < 0.1);
    QCOMPARE(shared[0], 50.0);
    QVERIFY(std::abs(shared[1] - 150) < 0.1 && std::abs(shared[2] - 150) < 0.1);
    const auto tight = sharedWidths({100, 100}, {100, 100}, 50);  // numbers alone
    QVERIFY(std::abs(sum(tight) - 50) < 0.1);
  }

  void everyPieceOfAReportIsDrawnAndFitsOnAPage() {
    QTemporaryDir folder;
    const doc::Document document = sampleDocument(folder);
    QVERIFY(document.sections.size() >= 12);
    const Paper paper = screen();
    const std::vector<Piece> pieces = documentPieces(paper, document);
    QVERIFY(pieces.size() > 100);
    int charts = 0;
    for (const Piece& piece : pieces) {
      QVERIFY2(piece.height > 0 && piece.height < paper.height, qPrintable(QString::number(piece.height)));
      const Drawn found = drawn(piece, paper);
      QVERIFY(found.coloured + found.dark > 0);
      charts += found.coloured > 800;
    }
    QVERIFY2(charts >= 5, qPrintable(QString::number(charts)));  // loss, three small ones, phases, memory, roofline
  }

  void aPdfHoldsItsChartsAsVectors() {
    QTemporaryDir folder;
    doc::Document document = sampleDocument(folder);
    const auto pdfOf = [&folder](const doc::Document& d) {
      const QString path = folder.filePath(QStringLiteral("r.pdf"));
      QFile file(path);
      return printReport(d, path).isEmpty() && file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
    };
    const QByteArray whole = pdfOf(document);
    QVERIFY(whole.startsWith("%PDF-") && whole.trimmed().endsWith("%%EOF"));
    QVERIFY(!whole.contains("/Subtype /Image"));
    if (const QString place = qEnvironmentVariable("STEPSCOPE_PICTURES"); !place.isEmpty())
      QVERIFY(QFile::copy(folder.filePath(QStringLiteral("r.pdf")), place + QStringLiteral("/report.pdf")));
    for (doc::Section& section : document.sections)
      std::erase_if(section.blocks, [](const doc::Block& block) {
        return std::holds_alternative<doc::Figure>(block) || std::holds_alternative<doc::Figures>(block);
      });
    const QByteArray plain = pdfOf(document);
    QVERIFY2(whole.size() > plain.size() + 2000,
             qPrintable(QStringLiteral("%1 and %2").arg(whole.size()).arg(plain.size())));
    QVERIFY(!printReport(document, folder.filePath(QStringLiteral("no/such/folder/r.pdf"))).isEmpty());
  }

  void namesOfFilesHarmNothing() {
    const std::string evil = std::string("<b>&\"\x1b[2J\xff\xe2\x80\xae\0z", 16) + std::string(5000, 'x') + "\n\n";
    doc::Table table{{{evil, evil}, {"n", "", doc::Quantity::kTime}},
                     {{evil, std::nan("")}, {doc::Cell(evil).withSpan(9)}, {}}};
    table.rows.push_back({"a", "b", "too many", "cells"});
    doc::Drawing drawing{0, 10, evil};
    drawing.text(doc::Role::kLabel, {NAN, INFINITY}, evil);
    doc::Document document{
        evil, {doc::Paragraph{evil}}, {{"x", evil, evil, {table, doc::Figure{evil, evil, drawing}}}}, evil, evil};
    QTemporaryDir folder;
    QCOMPARE(printReport(document, folder.filePath(QStringLiteral("r.pdf"))), QString());
  }
};

SS_QT_CLASS(QApplication, PrintTest)
#include "tst_print.moc"
