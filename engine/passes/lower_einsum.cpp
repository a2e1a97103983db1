#include "engine/passes/lower_einsum.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "engine/passes/beside.h"
#include "kernels/einsum_equation.h"

namespace stepscope {
namespace {

using Labels = std::vector<int>;

bool has(const Labels& labels, int label) { return std::find(labels.begin(), labels.end(), label) != labels.end(); }
Labels operator+(Labels a, const Labels& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
template <typename Keep>
Labels filter(const Labels& labels, Keep keep) {
  Labels kept;
  std::copy_if(labels.begin(), labels.end(), std::back_inserter(kept), keep);
  return kept;
}

// A value whose axes are labels, each once, each of full extent.
struct Term {
  ValueId value;
  Labels labels;
};

class Lowering {
 public:
  Lowering(Graph& graph, PassContext& context) : graph_(graph), context_(context), inference_(context.inference) {}

  Status run() {
    for (const NodeId id : std::vector<NodeId>(graph_.order())) {
      node_ = id;
      const Node& node = graph_.node(id);
      if (!node.domain.empty() || node.op != "Einsum") {
        order_.push_back(id);
        continue;
      }
      if (const std::string condition = read(); !condition.empty()) {
        context_.miss(id, condition);
        order_.push_back(id);
        continue;
      }
      SS_ASSIGN(const ValueId lowered, lower());
      // The result keeps its id: it may be a gradient that the optimizer, a view or a file asks for.
      graph_.swapOutputs(lowered, graph_.node(id).outputs[0]);
      graph_.removeNode(id);
      context_.match();
    }
    if (context_.result.matches > 0) graph_.setOrder(std::move(order_));
    return {};
  }

 private:
  // Fills terms_, extents_ and output_ from the node; what stands against lowering it, else empty.
  std::string read() {
    const Node& node = graph_.node(node_);
    terms_.clear();
    extents_.clear();
    const auto equation = parseEinsum(node.attrs.text("equation", ""), node.inputs.size());
    if (!equation) return equation.error().message;
    std::size_t ellipsis = 0;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueType& type = graph_.value(node.inputs[i]).type;
      const auto dims = type.shape ? knownDims(*type.shape) : std::nullopt;
      if (!dims)
        return fmt::format("the extents of '{}' are {}; expected numbers", graph_.value(node.inputs[i]).name, type.text());
      if (!isFloating(type.dtype))
        return fmt::format("'{}' is {}; expected floating numbers", graph_.value(node.inputs[i]).name, type.text());
      if (elementCount(*dims) == 0) return "an extent is 0";
      const EinsumTerm& term = equation->operands[i];
      const auto labels = einsumLabels(term, dims->size());
      if (!labels) return labels.error().message;
      if (term.ellipsis >= 0) ellipsis = std::max(ellipsis, dims->size() - term.letters.size());
      for (std::size_t axis = 0; axis < dims->size(); ++axis) {
        if (std::count(labels->begin(), labels->end(), (*labels)[axis]) > 1) return "it takes the diagonal of an operand";
        std::int64_t& extent = extents_[(*labels)[axis]];
        extent = std::max(extent, (*dims)[axis]);
      }
      terms_.push_back({node.inputs[i], *labels});
    }
    const auto output =
        einsumLabels(equation->output, equation->output.letters.size() + (equation->output.ellipsis >= 0 ? ellipsis : 0));
    if (!output) return output.error().message;
    output_ = *output;
    return {};
  }

  Result<ValueId> lower() {
    for (Term& term : terms_) SS_TRY(dropBroadcast(term));
    Term left = terms_.front();
    if (terms_.size() == 1) SS_TRY(sumOut(left, output_));
    for (std::size_t i = 1; i < terms_.size(); ++i) {
      Labels needed = output_;
      for (std::size_t later = i + 1; later < terms_.size(); ++later) needed = needed + terms_[later].labels;
      SS_ASSIGN(left, contract(std::move(left), terms_[i], needed));
    }
    // An extent of 1 that every operand had in full is there; what is left is the order.
    SS_TRY(transpose(left, output_));
    if (left.value == graph_.node(node_).input(0)) return emit("Identity", {left.value});
    return left.value;
  }

  // An axis of extent 1 against a larger one is as good as absent.
  Status dropBroadcast(Term& term) {
    const Dims dims = dimsOf(term.value);
    Labels full;
    for (std::size_t axis = 0; axis < dims.size(); ++axis)
      if (dims[axis] == extents_.at(term.labels[axis])) full.push_back(term.labels[axis]);
    return reshape(term, std::move(full));
  }

  // Sums over the labels that nobody needs any more.
  Status sumOut(Term& term, const Labels& needed) {
    std::vector<std::int64_t> axes;
    for (std::size_t axis = 0; axis < term.labels.size(); ++axis)
      if (!has(needed, term.labels[axis])) axes.push_back(static_cast<std::int64_t>(axis));
    if (axes.empty()) return {};
    SS_ASSIGN(term.value, emit("ReduceSum", {term.value, constant(axes)}, {{"keepdims", std::int64_t{0}}}));
    term.labels = filter(term.labels, [&](int label) { return has(needed, label); });
    return {};
  }

  Result<Term> contract(Term a, Term b, const Labels& needed) {
    SS_TRY(sumOut(a, needed + b.labels));
    SS_TRY(sumOut(b, needed + a.labels));
    // In the order of the result, so that what follows need not move.
    const Labels sorted = output_ + filter(a.labels, [&](int label) { return !has(output_, label); }) +
                          filter(b.labels, [&](int label) { return !has(output_, label) && !has(a.labels, label); });
    const Labels batch =
        filter(sorted, [&](int label) { return has(a.labels, label) && has(b.labels, label) && has(needed, label); });
    const Labels summed = filter(a.labels, [&](int label) { return has(b.labels, label) && !has(needed, label); });
    const auto own = [&](const Term& x, const Term& other) {
      return filter(sorted, [&](int label) { return has(x.labels, label) && !has(other.labels, label); });
    };
    Labels rows = own(a, b), columns = own(b, a);
    if (summed.empty() || (rows.empty() && columns.empty()))
      return multiply(std::move(a), std::move(b), batch + rows + columns, summed);
    if (!rows.empty() && !columns.empty() && placeOf(columns.front()) < placeOf(rows.front())) {
      std::swap(a, b);
      std::swap(rows, columns);
    }
    SS_TRY(matrix(a, batch, rows, summed));
    SS_TRY(matrix(b, batch, summed, columns));
    SS_ASSIGN(const ValueId product, emit("MatMul", {a.value, b.value}));
    Term result{product, batch + rows + columns};
    if (rows.size() != 1 || columns.size() != 1) SS_TRY(setExtents(result.value, extentsOf(result.labels)));
    return result;
  }

  // Element by element; sums, where there are any, run over the last axes.
  Result<Term> multiply(Term a, Term b, const Labels& kept, const Labels& summed) {
    const Labels all = filter(output_, [&](int label) { return has(kept, label); }) +
                       filter(kept, [&](int label) { return !has(output_, label); }) + summed;
    for (Term* term : {&a, &b}) {
      const Labels own = filter(all, [&](int label) { return has(term->labels, label); });
      SS_TRY(transpose(*term, own));
      std::vector<std::int64_t> extents;
      for (const int label : all)
        if (has(own, label) || !extents.empty()) extents.push_back(has(own, label) ? extents_.at(label) : 1);
      SS_TRY(setExtents(term->value, extents));
    }
    SS_ASSIGN(const ValueId product, emit("Mul", {a.value, b.value}));
    Term result{product, all};
    SS_TRY(sumOut(result, kept));
    return result;
  }

  // [batch…, rows, columns], where several labels share an axis, and none is an extent of 1.
  Status matrix(Term& term, const Labels& batch, const Labels& rows, const Labels& columns) {
    SS_TRY(transpose(term, batch + rows + columns));
    std::vector<std::int64_t> extents = extentsOf(batch);
    for (const Labels& side : {rows, columns}) {
      const auto sides = extentsOf(side);
      extents.push_back(std::accumulate(sides.begin(), sides.end(), std::int64_t{1}, std::multiplies<>()));
    }
    return setExtents(term.value, extents);
  }

  Status transpose(Term& term, const Labels& order) {
    if (term.labels == order) return {};
    std::vector<std::int64_t> perm;
    for (const int label : order)
      perm.push_back(std::find(term.labels.begin(), term.labels.end(), label) - term.labels.begin());
    SS_ASSIGN(term.value, emit("Transpose", {term.value}, {{"perm", perm}}));
    term.labels = order;
    return {};
  }

  Status reshape(Term& term, Labels labels) {
    term.labels = std::move(labels);
    return setExtents(term.value, extentsOf(term.labels));
  }

  Status setExtents(ValueId& value, const std::vector<std::int64_t>& extents) {
    if (dimsOf(value) == Dims(extents.begin(), extents.end())) return {};
    SS_ASSIGN(value, emit("Reshape", {value, constant(extents)}));
    return {};
  }

  Dims dimsOf(ValueId value) const { return *knownDims(*graph_.value(value).type.shape); }
  std::vector<std::int64_t> extentsOf(const Labels& labels) const {
    std::vector<std::int64_t> extents;
    for (const int label : labels) extents.push_back(extents_.at(label));
    return extents;
  }
  std::ptrdiff_t placeOf(int label) const { return std::find(output_.begin(), output_.end(), label) - output_.begin(); }

  ValueId constant(const std::vector<std::int64_t>& values) {
    return graph_.addConstant(graph_.node(node_).name + "/extents", Tensor::ints(values));
  }

  Result<ValueId> emit(const char* op, std::vector<ValueId> inputs, Attributes attributes = {}) {
    const ValueId result = emitBeside(graph_, node_, op, std::move(inputs), std::move(attributes));
    order_.push_back(graph_.value(result).producer);
    SS_TRY(inference_.inferNode(graph_.value(result).producer));
    return result;
  }

  Graph& graph_;
  PassContext& context_;
  Inference& inference_;
  std::vector<NodeId> order_;
  NodeId node_;
  std::vector<Term> terms_;
  std::map<int, std::int64_t> extents_;  // by label
  Labels output_;
};

}  // namespace

Status lowerEinsum(Graph& graph, PassContext& context) { return Lowering(graph, context).run(); }

}  // namespace stepscope
