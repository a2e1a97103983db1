#include <map>

#include "kernels/dispatch.h"
#include "kernels/einsum_equation.h"
#include "kernels/reference/linear/linear_kernels.h"
#include "kernels/reference/linear/product.h"

namespace stepscope::reference {
namespace {

// The loop nest over all labels: extents, and for each term the stride of every label (0 where the term is broadcast).
struct LoopNest {
  std::vector<int> labels;
  Dims extents;
  std::vector<Dims> strides;  // per term

  std::int64_t total() const { return elementCount(extents); }
};

// Labels of `last` (the term the result is written to) come first, so that sums run innermost.
Result<LoopNest> makeNest(const std::vector<EinsumTerm>& terms, const std::vector<Dims>& dims) {
  std::vector<std::vector<int>> labels;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    SS_ASSIGN(auto term, einsumLabels(terms[i], dims[i].size()));
    labels.push_back(std::move(term));
  }
  LoopNest nest;
  std::map<int, std::size_t> place;
  const auto visit = [&](std::size_t i) -> Status {
    for (std::size_t axis = 0; axis < labels[i].size(); ++axis) {
      const auto [it, inserted] = place.emplace(labels[i][axis], nest.labels.size());
      if (inserted) {
        nest.labels.push_back(labels[i][axis]);
        nest.extents.push_back(dims[i][axis]);
        continue;
      }
      std::int64_t& extent = nest.extents[it->second];
      if (extent == 1)
        extent = dims[i][axis];
      else if (dims[i][axis] != 1 && dims[i][axis] != extent)
        return invalid("Einsum: extents " + std::to_string(extent) + " and " + std::to_string(dims[i][axis]) +
                       " of one letter differ");
    }
    return {};
  };
  SS_TRY(visit(terms.size() - 1));
  for (std::size_t i = 0; i + 1 < terms.size(); ++i) SS_TRY(visit(i));
  for (std::size_t i = 0; i < terms.size(); ++i) {
    Dims strides(nest.labels.size(), 0);
    const Dims own = rowMajorStrides(dims[i]);
    for (std::size_t axis = 0; axis < labels[i].size(); ++axis)
      if (dims[i][axis] != 1) strides[place[labels[i][axis]]] += own[axis];
    nest.strides.push_back(std::move(strides));
  }
  return nest;
}

// body(offsets) for every point of the nest, in row-major order.
template <typename Body>
void walk(const LoopNest& nest, Body&& body) {
  const std::int64_t total = nest.total();
  Dims at(nest.extents.size(), 0), offsets(nest.strides.size(), 0);
  for (std::int64_t step = 0; step < total; ++step) {
    body(offsets);
    for (std::size_t i = at.size(); i-- > 0;) {
      for (std::size_t t = 0; t < offsets.size(); ++t) offsets[t] += nest.strides[t][i];
      if (++at[i] < nest.extents[i]) break;
      for (std::size_t t = 0; t < offsets.size(); ++t) offsets[t] -= nest.strides[t][i] * nest.extents[i];
      at[i] = 0;
    }
  }
}

// target[…] = sum of products of the sources; terms and views in the order sources, target.
Status contract(const KernelSpec& spec, const std::vector<EinsumTerm>& terms, const std::vector<TensorView>& views) {
  std::vector<Dims> dims;
  for (const TensorView& view : views) dims.push_back(view.dims);
  SS_ASSIGN(const LoopNest nest, makeNest(terms, dims));
  const std::size_t sources = views.size() - 1;
  const bool known = dispatchNumeric(views.back().dtype, [&](auto tag) {
    using T = decltype(tag);
    T* y = static_cast<T*>(views.back().data);
    std::vector<Accumulator<T>> sums(static_cast<std::size_t>(views.back().elements()), Accumulator<T>{});
    walk(nest, [&](const Dims& offsets) {
      Accumulator<T> value = 1;
      for (std::size_t t = 0; t < sources; ++t) value *= summand(static_cast<const T*>(views[t].data)[offsets[t]]);
      sums[static_cast<std::size_t>(offsets[sources])] += value;
    });
    for (std::size_t i = 0; i < sums.size(); ++i) y[i] = static_cast<T>(sums[i]);
  });
  if (!known) return unsupported(spec.op + ": dtype " + std::string(dtypeName(views.back().dtype)) + "; expected a number");
  return {};
}

}  // namespace

Status einsum(const KernelSpec& spec, const KernelCall& call) {
  SS_ASSIGN(EinsumEquation equation, parseEinsum(spec.attrs.text("equation", ""), call.inputs.size()));
  std::vector<EinsumTerm> terms = equation.operands;
  terms.push_back(equation.output);
  std::vector<TensorView> views(call.inputs.begin(), call.inputs.end());
  views.push_back(call.outputs[0]);
  return contract(spec, terms, views);
}

Status einsumGrad(const KernelSpec& spec, const KernelCall& call) {
  SS_ASSIGN(EinsumEquation equation, parseEinsum(spec.attrs.text("equation", ""), call.inputs.size() - 1));
  const std::int64_t operand = spec.attrs.integer("operand", 0);
  if (operand < 0 || operand >= static_cast<std::int64_t>(equation.operands.size()))
    return invalid("EinsumGrad: operand " + std::to_string(operand));
  std::vector<EinsumTerm> terms{equation.output};
  std::vector<TensorView> views{call.inputs[0]};
  for (std::size_t i = 0, next = 2; i < equation.operands.size(); ++i) {
    if (static_cast<std::int64_t>(i) == operand) continue;
    terms.push_back(equation.operands[i]);
    views.push_back(call.inputs[next++]);
  }
  terms.push_back(equation.operands[static_cast<std::size_t>(operand)]);
  views.push_back(call.outputs[0]);
  return contract(spec, terms, views);
}

}  // namespace stepscope::reference
