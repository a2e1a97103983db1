// The walks that gathers and scatters share, and how a scatter combines.
#pragma once

#include <cmath>

#include "kernels/reference/movement/common.h"

namespace stepscope::reference {

// Calls f(i, place) for every element i of `indices` (row-major), where place is the offset in a tensor of shape `data` of
// the element with the same index but on attribute `axis`, where it is indices[i].
template <typename F>
Status walkElements(const KernelSpec& spec, const Dims& data, const TensorView& indices, F&& f) {
  SS_TRY(checkIndexType(spec, indices));
  SS_TRY(checkRank(spec, data.size()));
  const auto normal = normalizeAxis(spec.attrs.integer("axis", 0), static_cast<std::int64_t>(data.size()));
  bool fits = normal && indices.dims.size() == data.size();
  const auto axis = static_cast<std::size_t>(normal.value_or(0));
  for (std::size_t a = 0; fits && a < data.size(); ++a) fits = a == axis || indices.dims[a] <= data[a];
  if (!fits) return kernelError(spec, "indices of shape " + dimsText(indices.dims) + " do not fit shape " + dimsText(data));
  const Extents strides = stridesOf(data);
  const std::int64_t count = indices.elements(), extent = data[axis];
  Status status;
  withIndices(indices, [&](const auto* at) {
    Extents index{};
    std::int64_t base = 0;  // offset of index, without the axis
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t k = at[i];
      if (k < -extent || k >= extent) {
        status = indexError(spec, k, i, extent);
        return;
      }
      f(i, base + (k < 0 ? k + extent : k) * strides[axis]);
      for (std::size_t a = data.size(); a-- > 0;) {
        if (a != axis) base += strides[a];
        if (++index[a] < indices.dims[a]) break;
        if (a != axis) base -= strides[a] * indices.dims[a];
        index[a] = 0;
      }
    }
  });
  return status;
}

// Calls f(offset of the run in a tensor of shape `data`, number of the tuple) for every index tuple of a GatherND/ScatterND.
template <typename F>
Status walkTuples(const KernelSpec& spec, const Dims& data, const TensorView& indices, std::size_t batchDims, F&& f) {
  SS_TRY(checkIndexType(spec, indices));
  SS_TRY(checkRank(spec, data.size()));
  const std::size_t rank = indices.dims.size();
  bool fits = rank > batchDims;
  const std::int64_t tuple = rank > 0 ? indices.dims.back() : 0;
  fits = fits && tuple >= 0 && static_cast<std::size_t>(tuple) + batchDims <= data.size();
  for (std::size_t a = 0; fits && a < batchDims; ++a) fits = indices.dims[a] == data[a];
  if (!fits) return kernelError(spec, "indices of shape " + dimsText(indices.dims) + " do not fit shape " + dimsText(data));
  const Extents strides = stridesOf(data);
  const std::int64_t batches = product(data, 0, batchDims), batchSize = product(data, batchDims, data.size());
  const std::int64_t tuples = product(indices.dims, batchDims, rank - 1);
  Status status;
  withIndices(indices, [&](const auto* at) {
    for (std::int64_t b = 0; b < batches; ++b)
      for (std::int64_t t = 0; t < tuples; ++t) {
        std::int64_t place = b * batchSize;
        for (std::int64_t k = 0; k < tuple; ++k, ++at) {
          const std::size_t a = batchDims + static_cast<std::size_t>(k);
          if (*at < -data[a] || *at >= data[a]) {
            status = indexError(spec, *at, (b * tuples + t) * tuple + k, data[a]);
            return;
          }
          place += (*at < 0 ? *at + data[a] : *at) * strides[a];
        }
        f(place, b * tuples + t);
      }
  });
  return status;
}

// How a scatter combines an update with what is at its place.
enum class ScatterReduction { kNone, kAdd, kMul, kMin, kMax };

// Attribute `reduction`. Error: another word.
Result<ScatterReduction> scatterReduction(const KernelSpec& spec);

// place = place combined with value; NaN wins in min and max, as in ONNX's reference.
template <typename T>
void combine(ScatterReduction reduction, T& place, const T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    if (reduction == ScatterReduction::kNone) place = value;
  } else if constexpr (std::is_same_v<T, bool>) {
    switch (reduction) {
      case ScatterReduction::kNone: place = value; break;
      case ScatterReduction::kAdd:
      case ScatterReduction::kMax: place = place || value; break;
      case ScatterReduction::kMul:
      case ScatterReduction::kMin: place = place && value; break;
    }
  } else {
    switch (reduction) {
      case ScatterReduction::kNone: place = value; break;
      case ScatterReduction::kAdd: place = T(place + value); break;
      case ScatterReduction::kMul: place = T(place * value); break;
      case ScatterReduction::kMin:
        if (value < place || value != value) place = value;
        break;
      case ScatterReduction::kMax:
        if (value > place || value != value) place = value;
        break;
    }
  }
}

}  // namespace stepscope::reference
