#include "engine/build/kept_rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/passes/sparse_labels.h"

namespace stepscope {
namespace {

constexpr std::int64_t kBuckets = 16, kSlack = 2;  // buckets that a plan may have too many

std::int64_t bucketSize(std::int64_t elements) { return std::max<std::int64_t>(1, (elements + kBuckets - 1) / kBuckets); }

const Tensor* labelsOf(const KeptRows& rows, const Batch& batch) {
  const auto it = batch.arrays.find(rows.labels);
  return it == batch.arrays.end() ? nullptr : &it->second;
}

}  // namespace

std::vector<KeptRows> keptRowsOf(const Graph& graph) {
  std::vector<KeptRows> found;
  for (const ValueId id : graph.inputs()) {
    const std::string& name = graph.value(id).name;
    if (!name.ends_with(kKeptRowsSuffix)) continue;
    KeptRows rows{name, name.substr(0, name.size() - kKeptRowsSuffix.size()), -100};
    for (const NodeId node : graph.order()) {
      const Node& loss = graph.node(node);
      const NodeId made = loss.inputs.size() > 1 && loss.input(1) ? graph.value(loss.input(1)).producer : NodeId{};
      if (loss.op == "SoftmaxCrossEntropyLoss" && made && graph.node(made).input(1) == id) {
        rows.ignored = loss.attrs.integer("ignore_index", -100);
        found.push_back(rows);
        break;
      }
    }
  }
  return found;
}

std::int64_t bucketOf(std::int64_t count, std::int64_t elements) {
  const std::int64_t size = bucketSize(elements);
  return std::min(std::max<std::int64_t>(1, elements), std::max<std::int64_t>(1, (count + size - 1) / size) * size);
}

std::int64_t neededRows(const KeptRows& rows, const Batch& batch) {
  const Tensor* labels = labelsOf(rows, batch);
  if (!labels) return 0;
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < labels->elements(); ++i) count += elementAsInt(labels->view(), i) != rows.ignored;
  return bucketOf(count, labels->elements());
}

Result<Tensor> rowsOf(const KeptRows& rows, const Batch& batch, std::int64_t extent) {
  const Tensor* labels = labelsOf(rows, batch);
  if (!labels)
    return fail(ErrorCode::kNotFound,
                fmt::format("batch '{}': no array '{}'; expected the labels of the loss", batch.label, rows.labels));
  Tensor result(DType::kI64, {extent});
  const auto to = result.as<std::int64_t>();
  std::int64_t next = 0, filler = 0;
  for (std::int64_t i = 0; i < labels->elements(); ++i) {
    const bool counts = elementAsInt(labels->view(), i) != rows.ignored;
    if (!counts) filler = i;
    if (!counts) continue;
    if (next == extent)
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("batch '{}': more than {} labels of '{}' count; expected a plan for more rows", batch.label,
                              extent, rows.labels));
    to[static_cast<std::size_t>(next++)] = i;
  }
  std::fill(to.begin() + next, to.end(), filler);
  return result;
}

Signature signatureOf(const Batch& batch, std::span<const KeptRows> rows) {
  Signature signature = signatureOf(batch);
  for (const KeptRows& kept : rows)
    if (const std::int64_t needed = neededRows(kept, batch); needed > 0) signature.rows[kept.input] = needed;
  return signature;
}

Signature signatureOf(std::span<const Batch> batches, std::span<const KeptRows> rows) {
  Signature signature = signatureOf(batches.front(), rows);
  for (const Batch& batch : batches)
    for (auto& [name, extent] : signatureOf(batch, rows).rows) {
      std::int64_t& most = signature.rows[name];
      most = std::max(most, extent);
    }
  return signature;
}

bool fits(const Signature& signature, const Batch& batch, std::span<const KeptRows> rows) {
  if (!fits(signature, batch)) return false;
  return std::ranges::all_of(rows, [&](const KeptRows& kept) {
    const Tensor* labels = labelsOf(kept, batch);
    const auto it = signature.rows.find(kept.input);
    if (!labels || it == signature.rows.end()) return true;  // a plan for all rows
    const std::int64_t needed = neededRows(kept, batch), size = bucketSize(labels->elements());
    return needed <= it->second && it->second <= needed + kSlack * size;
  });
}

}  // namespace stepscope
