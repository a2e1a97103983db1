// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/timeline/exchange_words.h"

#include <QStringList>

#include "views/common/format.h"

namespace stepscope {
namespace {

const TimelineExchange& exchangeOf(const TimelineModel& model, const TimelineSlice& slice) {
  return model.exchanges()[static_cast<std::size_t>(slice.exchange)];
}

}  // namespace

QString exchangeWords(const TimelineModel& model, const TimelineSlice& slice) {
  return model.waits(slice) ? QStringLiteral("waits") : format::visible(exchangeOf(model, slice).record.node());
}

QString exchangeTip(const TimelineModel& model, const TimelineSlice& slice) {
  const TimelineExchange& e = exchangeOf(model, slice);
  const snapshot::RankCollective& c = e.record;
  QStringList lines{format::visible(c.node()),
                    QStringLiteral("rank %1 waited %2 until all ranks had come (%3)")
                        .arg(e.rank)
                        .arg(format::time(c.wait_ns()), format::timeExact(c.wait_ns())),
                    QStringLiteral("then %1 until the results were there; sent %2")
                        .arg(format::time(c.move_ns()), format::bytes(c.sent_bytes())),
                    c.exposed_ns() > 0
                        ? QStringLiteral("exposed: for %1 of it the rank did nothing else").arg(format::time(c.exposed_ns()))
                        : QStringLiteral("beside computation all the time")};
  const TimelineStep& step = model.steps()[static_cast<std::size_t>(e.step)];
  lines << QStringLiteral("step %1 · %2 after its begin").arg(step.step).arg(format::time(c.begin_ns() - step.begin));
  return lines.join('\n');
}

}  // namespace stepscope
