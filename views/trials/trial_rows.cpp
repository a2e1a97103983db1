// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/trials/trial_rows.h"

#include <algorithm>
#include <cmath>

#include "views/common/format.h"

namespace stepscope::trials {
namespace {

qint64 whole(double x) { return std::isfinite(x) ? static_cast<qint64>(std::clamp(x, -9e18, 9e18)) : 0; }

bool isNothing(const snapshot::Trial& t) { return t.option() == kNothing; }

int rank(const snapshot::Trial& t) { return isNothing(t) ? 2 : t.rounds() == 0 ? 1 : 0; }

TableCell verdictCell(const snapshot::Trial& t, bool running) {
  const auto cell = [](const QString& text, int order, const char* role, const QString& tip) {
    TableCell c(text, order, tip);
    c.role = QString::fromLatin1(role);
    return c;
  };
  if (t.identical()) return cell(QStringLiteral("no effect"), 4, "faint", format::visible(t.note()));
  if (t.verdict() == "failed") return cell(QStringLiteral("failed"), 6, "error", format::visible(t.note()));
  if (running || t.verdict().empty())
    return cell(QStringLiteral("…"), 5, "muted",
                QStringLiteral("Verdicts are given when all are measured: they are corrected for all of them"));
  const QString p = QStringLiteral(
                        "p = %1, corrected for all of them by Holm's method; a verdict needs at most 0.05, and an interval "
                        "that lies 1 % or more away from 1")
                        .arg(format::number(t.adjusted_p(), 2));
  if (t.verdict() == "faster") return cell(QStringLiteral("▼ faster"), 0, "ok", p);
  if (t.verdict() == "slower") return cell(QStringLiteral("▲ slower"), 3, "warn", p);
  if (t.verdict() == "not shown")
    return cell(
        QStringLiteral("? not shown"), 1, "muted",
        p + (t.low() > 1 || t.high() < 1
                 ? QStringLiteral("\nThe interval leaves 1 out, and that is not enough among so many changes: more rounds, "
                                  "or fewer changes, would tell")
                 : QStringLiteral("\nThe interval is too wide to tell: more rounds, or a machine with nothing else to do, "
                                  "would")));
  return cell(QStringLiteral("= same"), 2, "muted", p);
}

TableCell timeCell(double ns) {
  return {format::time(whole(ns)), QVariant::fromValue<qint64>(whole(ns)), format::timeExact(whole(ns))};
}

TableCell peakCell(const snapshot::Trial& t) {
  const double before = static_cast<double>(t.peak_before()), after = static_cast<double>(t.peak_after());
  if (t.peak_after() == 0) return {};
  // Where both read alike, what lies between them is said.
  const QString was = format::bytes(t.peak_before()), is = format::bytes(t.peak_after());
  TableCell cell(t.peak_before() == t.peak_after() ? QStringLiteral("same")
                 : was == is                       ? format::bytesDifference(t.peak_after() - t.peak_before())
                                                   : QStringLiteral("%1 → %2").arg(was, is),
                 QVariant::fromValue<qint64>(t.peak_after() - t.peak_before()));
  cell.tip = QStringLiteral("Planned: %1 → %2 (%3)")
                 .arg(format::bytesExact(t.peak_before()), format::bytesExact(t.peak_after()),
                      t.peak_before() == t.peak_after() ? QStringLiteral("the same") : format::change(before, after));
  if (t.measured_peak_after() > 0)
    cell.tip += QStringLiteral("\nTouched by the rounds: %1 → %2")
                    .arg(format::bytesExact(t.measured_peak_before()), format::bytesExact(t.measured_peak_after()));
  cell.role = was == is                          ? QStringLiteral("faint")
              : t.peak_after() < t.peak_before() ? QStringLiteral("ok")
                                                 : QStringLiteral("warn");
  return cell;
}

TableCell parityCell(const snapshot::TrialParity& p) {
  TableCell cell;
  if (!p.compared()) {
    cell = {QStringLiteral("not compared"), 1e302, format::visible(p.unavailable())};
    cell.role = QStringLiteral("faint");
    return cell;
  }
  if (p.bits()) {
    cell = {QStringLiteral("same bits"), -1.0,
            QStringLiteral("Loss, every gradient and every parameter after the step have the same bits")};
    cell.role = QStringLiteral("ok");
    return cell;
  }
  const double error = p.gradient_relative();
  cell = {std::isfinite(error) ? QStringLiteral("off by %1").arg(format::number(error, 2)) : QStringLiteral("not finite"),
          std::isfinite(error) ? error : 1e301};
  cell.tip =
      QStringLiteral(
          "Gradients: %1 as a share of their norm (%2 at most), cosine %3, the worst is %4\nLoss: %5, parameters after "
          "the step: %6 of their norm")
          .arg(format::number(error, 3), format::number(p.gradient(), 3), format::number(p.cosine(), 6),
               format::visible(p.worst()), format::number(p.loss(), 3), format::number(p.parameter_relative(), 3));
  if (!p.unavailable().empty()) cell.tip += '\n' + format::visible(p.unavailable());
  cell.role = !std::isfinite(error) || error > 1e-3 ? QStringLiteral("warn") : QStringLiteral("muted");
  return cell;
}

}  // namespace

std::vector<TableColumn> columns(double first, double last) {
  const auto text = [](const QString& title, const QString& tip, int width) {
    return TableColumn{title, tip, false, width};
  };
  const auto number = [](const QString& title, const QString& tip) { return TableColumn{title, tip, true, 6}; };
  return {
      text(QStringLiteral("Change"),
           QStringLiteral("The option and its values; (nothing): the plan next to itself, made twice"), 17),
      text(QStringLiteral("Verdict"),
           QStringLiteral("faster, slower, no difference that was found, or one that is not shown yet"), 8),
      number(QStringLiteral("Ratio"),
             QStringLiteral("Time after by time before: the median of the rounds. Below 1 is faster")),
      text(QStringLiteral("95 % interval, %1 to %2").arg(format::number(first, 2), format::number(last, 2)),
           QStringLiteral(
               "Where the ratio lies with 95 %: bar, median as a tick, the line is 1. All rows have one logarithmic axis"),
           14),
      number(QStringLiteral("Before"), QStringLiteral("Median time of a step as it is, in the rounds of this pair")),
      number(QStringLiteral("After"), QStringLiteral("Median time of a step with the option changed")),
      number(QStringLiteral("Peak"), QStringLiteral("Memory of the step, planned: as it is and with the option changed")),
      text(QStringLiteral("Numbers"),
           QStringLiteral("How far the first step of both plans agrees: gradients, as a share of their norm"), 8)};
}

QString change(const snapshot::Trial& t, const std::vector<snapshot::Option>& options) {
  if (isNothing(t)) return format::visible(t.option());
  const bool size = std::any_of(options.begin(), options.end(),
                                [&t](const snapshot::Option& o) { return o.name() == t.option() && o.kind() == "bytes"; });
  const auto value = [size](const std::string& v) {
    const auto bytes = size ? format::bytesOf(QString::fromStdString(v)) : std::nullopt;
    return v.empty() || (bytes && *bytes == 0) ? QStringLiteral("none") : bytes ? format::bytes(*bytes) : format::visible(v);
  };
  return QStringLiteral("%1  %2 → %3").arg(format::visible(t.option()), value(t.from()), value(t.to()));
}

std::vector<TableRow> rows(const snapshot::TrialsReport& report, const std::vector<snapshot::Option>& options,
                           bool running) {
  std::vector<int> order;
  for (int i = 0; i < report.trials_size(); ++i) order.push_back(i);
  std::stable_sort(order.begin(), order.end(), [&report](int a, int b) {
    const auto &x = report.trials(a), &y = report.trials(b);
    return rank(x) != rank(y) ? rank(x) < rank(y) : rank(x) == 0 && x.ratio() < y.ratio();
  });
  std::vector<TableRow> out;
  for (const int i : order) {
    const auto& t = report.trials(i);
    TableRow row;
    row.key = i;
    const QString said = change(t, options);
    TableCell what(said, said, t.note().empty() ? said : said + '\n' + format::visible(t.note()));
    if (isNothing(t) || t.identical()) what.role = QStringLiteral("muted");
    row.cells = {what, verdictCell(t, running)};
    if (t.rounds() > 0) {
      row.cells.push_back({format::number(t.ratio(), 4), t.ratio(), QStringLiteral("%1 rounds").arg(t.rounds())});
      row.cells.push_back({QString(), t.ratio(),
                           QStringLiteral("%1 to %2, %3 rounds")
                               .arg(format::number(t.low(), 4), format::number(t.high(), 4))
                               .arg(t.rounds())});
      row.cells.push_back(timeCell(t.median_ns_before()));
      row.cells.push_back(timeCell(t.median_ns_after()));
    } else {
      for (int k = 0; k < 4; ++k) row.cells.push_back({QString(), 1e300});
    }
    row.cells.push_back(peakCell(t));
    row.cells.push_back(t.verdict() == "failed" ? TableCell() : parityCell(t.parity()));
    out.push_back(std::move(row));
  }
  return out;
}

QString summary(const snapshot::TrialsReport& report, bool running, QString* role) {
  role->clear();
  if (report.trials_size() == 0) return {};
  int faster = 0, slower = 0, same = 0, notShown = 0, identical = 0, failed = 0, nothing = 0, found = 0;
  for (const auto& t : report.trials()) {
    nothing += isNothing(t);
    found += isNothing(t) && (t.verdict() == "faster" || t.verdict() == "slower");
    if (isNothing(t)) continue;
    identical += t.identical();
    failed += t.verdict() == "failed";
    faster += t.verdict() == "faster";
    slower += t.verdict() == "slower";
    notShown += t.verdict() == "not shown";
    same += t.verdict() == "same" && !t.identical();
  }
  const int tried = report.trials_size() - nothing;
  if (running) return QStringLiteral("%1 tried so far").arg(tried);
  QString text = QStringLiteral("%1 faster, %2 slower, %3 without a difference, %4 without an effect on the plan")
                     .arg(faster)
                     .arg(slower)
                     .arg(same)
                     .arg(identical);
  if (notShown > 0)
    text += QStringLiteral(", %1 not shown: more rounds, fewer changes or a quieter machine would tell").arg(notShown);
  if (failed > 0) text += QStringLiteral(", %1 failed").arg(failed);
  if (nothing > 0) text += QStringLiteral(". The plan next to itself: %1 of %2 called different").arg(found).arg(nothing);
  if (found > 0) text += QStringLiteral(": something else keeps the machine busy, small differences mean nothing");
  if (report.batches() > 0)
    text += QStringLiteral(". Step %1, %2")
                .arg(report.step())
                .arg(report.batches() == 1 ? QStringLiteral("one batch")
                                           : QStringLiteral("%1 batches in turns").arg(report.batches()));
  if (found > 0) *role = QStringLiteral("warn");
  if (!report.cancelled()) return text;
  *role = QStringLiteral("warn");
  return (report.candidates() > 0 ? QStringLiteral("Cancelled: %1 of %2 were tried. ").arg(tried).arg(report.candidates())
                                  : QStringLiteral("Cancelled: %1 were tried. ").arg(tried)) +
         text;
}

}  // namespace stepscope::trials
