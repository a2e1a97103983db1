#include "storage/spans_table.h"

#include <vector>

#include "storage/blob.h"
#include "storage/packed_table.h"
#include "storage/span_codec.h"

namespace stepscope::storage {
namespace {

struct SpanRows final : PackedRows {
  std::size_t size() const override { return spans.size(); }
  void column(std::size_t row, int index, sqlite3_context* result) const override {
    const Span& span = spans[row];
    const std::int64_t values[] = {stepId, rank, span.instruction, span.node, span.beginNs, span.ns, span.thread};
    if (index > 0 && !hasRank) ++index;
    if (index >= 0 && index < 7) sqlite3_result_int64(result, values[index]);
  }

  std::int64_t stepId = 0, rank = 0;
  std::vector<Span> spans;
  bool hasRank = false;
};

// Of each row the step, when what it holds began, the packed spans, and the rank.
template <bool hasRank>
std::unique_ptr<PackedRows> unpackSpans(sqlite3_stmt* blob) {
  auto rows = std::make_unique<SpanRows>();
  rows->hasRank = hasRank;
  rows->stepId = sqlite3_column_int64(blob, 0);
  rows->rank = sqlite3_column_int64(blob, 3);
  const auto* data = static_cast<const char*>(sqlite3_column_blob(blob, 2));
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(blob, 2));
  const auto bytes = decompress(std::string_view(data ? data : "", data ? size : 0));
  if (!bytes) return nullptr;
  auto spans = decodeSpans(*bytes, sqlite3_column_int64(blob, 1));
  if (!spans) return nullptr;
  rows->spans = std::move(*spans);
  return rows;
}

constexpr PackedTable kSpans{
    "spans",
    "CREATE TABLE spans (step_id INTEGER, instruction INTEGER, node INTEGER, begin_ns INTEGER, ns INTEGER, thread INTEGER)",
    "SELECT step_id, begin_ns, data, 0 FROM step_spans JOIN steps ON steps.id = step_id WHERE step_id = ?1",
    "SELECT step_id, begin_ns, data, 0 FROM step_spans JOIN steps ON steps.id = step_id ORDER BY step_id",
    unpackSpans<false>};

constexpr PackedTable kSpansOfRanks{
    "spans_of_ranks",
    "CREATE TABLE spans_of_ranks (step_id INTEGER, rank INTEGER, instruction INTEGER, node INTEGER, begin_ns INTEGER, ns "
    "INTEGER, thread INTEGER)",
    "SELECT step_id, begin_ns, data, 0 FROM step_spans JOIN steps ON steps.id = step_id WHERE step_id = ?1 UNION ALL SELECT "
    "p.step_id, r.begin_ns, p.data, p.rank FROM rank_spans p JOIN steps s ON s.id = p.step_id JOIN rank_steps r ON r.run = "
    "s.run AND r.step = s.step AND r.rank = p.rank WHERE p.step_id = ?1",
    "SELECT step_id, begin_ns, data, 0 FROM step_spans JOIN steps ON steps.id = step_id UNION ALL SELECT p.step_id, "
    "r.begin_ns, p.data, p.rank FROM rank_spans p JOIN steps s ON s.id = p.step_id JOIN rank_steps r ON r.run = s.run AND "
    "r.step = s.step AND r.rank = p.rank",
    unpackSpans<true>};

}  // namespace

Status registerSpansTables(const Connection& connection) {
  SS_STORE_TRY(registerPackedTable(connection, kSpans));
  return registerPackedTable(connection, kSpansOfRanks);
}

}  // namespace stepscope::storage
