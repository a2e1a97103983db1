#include "engine/build/kept_rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/ops/class_loss.h"
#include "engine/passes/eliminate_padding.h"
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

std::vector<KeptRows> keptRowsOf(const Graph& graph, const DensityProbe& density) {
  std::vector<KeptRows> found;
  for (const ValueId id : graph.inputs()) {
    const std::string& name = graph.value(id).name;
    if (name.ends_with(kKeptTokensSuffix)) {
      const std::string ids = name.substr(0, name.size() - kKeptTokensSuffix.size());
      const auto tokens = std::ranges::find_if(
          density.entries(), [&](const DensityProbe::Entry& entry) { return entry.input == ids && entry.kind == "tokens"; });
      if (tokens == density.entries().end()) continue;
      KeptRows rows{name, tokens->invalid ? ids : tokens->mask, tokens->invalid.value_or(0), true, {}};
      for (const DensityProbe::Entry& entry : density.entries())
        if (entry.kind == "labels" && entry.invalid) rows.others.emplace_back(entry.input, *entry.invalid);
      found.push_back(std::move(rows));
      continue;
    }
    if (!name.ends_with(kKeptRowsSuffix)) continue;
    KeptRows rows{name, name.substr(0, name.size() - kKeptRowsSuffix.size()), -100, false, {}};
    for (const NodeId node : graph.order()) {
      const Node& loss = graph.node(node);
      const NodeId made = loss.inputs.size() > 1 && loss.input(1) ? graph.value(loss.input(1)).producer : NodeId{};
      if (isCrossEntropy(loss) && made && graph.node(made).input(1) == id) {
        rows.ignored = ignoredLabel(graph, loss).value_or(-100);
        found.push_back(rows);
        break;
      }
    }
  }
  return found;
}

std::vector<bool> countedRows(const KeptRows& rows, const Batch& batch) {
  const Tensor* own = labelsOf(rows, batch);
  if (!own) return {};
  const std::int64_t elements = own->elements();
  std::vector<bool> counts(static_cast<std::size_t>(elements), false);
  const auto mark = [&](const Tensor& tensor, std::int64_t ignored) {
    for (std::int64_t i = 0; i < elements; ++i)
      if (elementAsInt(tensor.view(), i) != ignored) counts[static_cast<std::size_t>(i)] = true;
  };
  mark(*own, rows.ignored);
  if (!rows.tokens || elements == 0) return counts;
  const std::vector<bool> valid = counts;
  for (const auto& [name, ignored] : rows.others)
    if (const auto it = batch.arrays.find(name); it != batch.arrays.end() && it->second.elements() == elements)
      mark(it->second, ignored);
  const std::int64_t length = own->dims().empty() ? 1 : std::max<std::int64_t>(1, own->dims().back());
  for (std::int64_t row = 0; row < elements; row += length) {
    const auto any = [&](const std::vector<bool>& of) {
      return std::find(of.begin() + row, of.begin() + row + length, true) != of.begin() + row + length;
    };
    // Attention of a row that is masked altogether reads all of it alike.
    if (!any(valid) && any(counts)) std::fill_n(counts.begin() + row, length, true);
    counts[static_cast<std::size_t>(row)] = true;
  }
  return counts;
}

std::int64_t bucketOf(std::int64_t count, std::int64_t elements) {
  const std::int64_t size = bucketSize(elements);
  return std::min(std::max<std::int64_t>(1, elements), std::max<std::int64_t>(1, (count + size - 1) / size) * size);
}

std::int64_t neededRows(const KeptRows& rows, const Batch& batch) {
  if (!labelsOf(rows, batch)) return 0;
  const std::vector<bool> counts = countedRows(rows, batch);
  return bucketOf(std::count(counts.begin(), counts.end(), true), static_cast<std::int64_t>(counts.size()));
}

Result<Tensor> rowsOf(const KeptRows& rows, const Batch& batch, std::int64_t extent) {
  const Tensor* labels = labelsOf(rows, batch);
  if (!labels)
    return fail(ErrorCode::kNotFound,
                fmt::format("batch '{}': no array '{}'; expected the labels of the loss", batch.label, rows.labels));
  Tensor result(DType::kI64, {extent});
  const auto to = result.as<std::int64_t>();
  const std::vector<bool> counts = countedRows(rows, batch);
  std::int64_t next = 0, filler = 0;
  for (std::int64_t i = 0; i < labels->elements(); ++i) {
    if (!counts[static_cast<std::size_t>(i)]) {
      filler = i;
      continue;
    }
    if (next == extent)
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("batch '{}': more than {} {} of '{}' count; expected a plan for more rows", batch.label,
                              extent, rows.tokens ? "tokens" : "labels", rows.labels));
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
