#include "engine/passes/lower_signal.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "engine/ops/op_def.h"
#include "engine/passes/node_lowering.h"

namespace stepscope {
namespace {

constexpr std::int64_t kMostBasisElements = std::int64_t{1} << 24;

// An extent: the number where it is known, and a scalar int64 value that holds it.
struct Extent {
  std::optional<std::int64_t> known;
  ValueId value;
};

class Signal : public NodeLowering {
 public:
  using NodeLowering::NodeLowering;

 private:
  std::vector<ValueId> lower() override {
    ValueId result;
    if (is("DFT"))
      result = dft();
    else if (is("STFT"))
      result = stft();
    else if (is("HannWindow"))
      result = window(0.5, 0.5, 0);
    else if (is("HammingWindow"))
      result = window(25.0 / 46, 21.0 / 46, 0);
    else if (is("BlackmanWindow"))
      result = window(0.42, 0.5, 0.08);
    return result ? std::vector<ValueId>{result} : std::vector<ValueId>{};
  }

  ValueId stay(const std::string& reason) {
    NodeLowering::stay(reason);
    return {};
  }

  // --- the ops

  // a - b·cos(2πn/N) + c·cos(4πn/N)
  ValueId window(double a, double b, double c) {
    if (!node().input(0) || !node().output(0)) return stay("no size");
    const bool periodic = node().attrs.integer("periodic", 1) != 0;
    const ValueId size = emit("Cast", {emit("Reshape", {node().input(0), ints({})})}, to(DType::kI64));
    const ValueId length = periodic ? size : emit("Sub", {size, integer(1)});
    const ValueId n = emit("Cast", {emit("Range", {integer(0), size, integer(1)})}, to(DType::kF64));
    const ValueId step =
        emit("Div", {real(2 * std::numbers::pi), emit("Cast", {emit("Max", {length, integer(1)})}, to(DType::kF64))});
    const ValueId angle = emit("Mul", {n, step});
    ValueId y = emit("Sub", {real(a), emit("Mul", {real(b), emit("Cos", {angle})})});
    if (c != 0) y = emit("Add", {y, emit("Mul", {real(c), emit("Cos", {emit("Mul", {real(2), angle})})})});
    return emit("Cast", {y}, {{"to", node().attrs.integer("output_datatype", 1)}});
  }

  // x [… , L, …, 1 or 2], length?, axis? → [… , K, …, 2]
  ValueId dft() {
    const bool inverse = node().attrs.integer("inverse", 0) != 0, onesided = node().attrs.integer("onesided", 0) != 0;
    const auto components = parts(node().input(0));
    if (components.empty()) return {};
    const auto rank = static_cast<std::int64_t>(context_.inference.shape(node().input(0))->size());
    std::int64_t axis = -2;
    if (node().input(2)) {
      const auto known = context_.inference.integers(node().input(2));
      if (!known || known->size() != 1) return stay("its axis is not known before the step; expected a constant");
      axis = known->front();
    }
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank - 1)
      return stay(fmt::format("axis {} of a signal of rank {}; expected an axis before the last", axis, rank));
    Integers perm(static_cast<std::size_t>(rank - 1));
    std::iota(perm.begin(), perm.end(), 0);
    std::swap(perm[static_cast<std::size_t>(axis)], perm.back());
    const auto moved = [&](ValueId v) { return axis == rank - 2 ? v : emit("Transpose", {v}, {{"perm", perm}}); };
    std::vector<ValueId> x;
    for (const ValueId component : components) x.push_back(moved(component));
    Extent rows = extentOf(node().input(0), static_cast<std::size_t>(axis)), period = rows;
    if (node().input(1)) {
      period = scalarOf(node().input(1));
      if (period.known && *period.known < 1)
        return stay(fmt::format("transform length {}; expected 1 or more", *period.known));
      for (ValueId& component : x) component = emit("Slice", {component, ints({0}), vector(period), ints({-1})});
      rows = rows.known && period.known ? known(std::min(*rows.known, *period.known))
                                        : Extent{{}, emit("Min", {rows.value, period.value})};
    }
    std::vector<ValueId> y;
    if (inverse && onesided) {
      const std::int64_t most = rows.known ? kMostBasisElements / std::max<std::int64_t>(*rows.known, 1) : 0;
      if (x.size() != 2 || !rows.known || *rows.known < 2 || *rows.known > most || period.known.value_or(0) > most ||
          (node().input(1) && !period.known))
        return stay(
            "a onesided transform is to be inverted; expected a complex input of known extent from 2 on, and not above the "
            "size of a matrix");
      y = {realInverse(x, *rows.known, node().input(1) ? *period.known : 2 * (*rows.known - 1))};
    } else {
      y = transform(x, rows, period, onesided, inverse);
    }
    for (ValueId& component : y) component = emit("Unsqueeze", {moved(component), ints({-1})});
    return y.size() == 1 ? y[0] : emit("Concat", y, {{"axis", std::int64_t{-1}}});
  }

  // The real signal of n samples whose first `rows` coefficients are x: all but the first and the one at n/2 stand for two.
  ValueId realInverse(const std::vector<ValueId>& x, std::int64_t rows, std::int64_t n) {
    std::vector<ValueId> sum;
    for (const bool cosine : {true, false}) {
      Tensor matrix(signalType(), {rows, n});
      for (std::int64_t k = 0; k < rows; ++k)
        for (std::int64_t t = 0; t < n; ++t) {
          const double angle = 2 * std::numbers::pi * static_cast<double>(k * t % n) / static_cast<double>(n);
          const double copies = k > n / 2 ? 0 : k == 0 || 2 * k == n ? 1 : 2;
          storeElement(matrix.view(), k * n + t,
                       copies * (cosine ? std::cos(angle) : -std::sin(angle)) / static_cast<double>(n));
        }
      const ValueId basis = graph_.addConstant(node().name + (cosine ? "/cosines" : "/sines"), std::move(matrix));
      sum.push_back(emit("MatMul", {x[cosine ? 0 : 1], basis}));
    }
    return emit("Add", sum);
  }

  // signal [B, L] or [B, L, 1 or 2], step, window?, length? → [B, frames, K, 2]
  ValueId stft() {
    const auto rank = context_.inference.shape(node().input(0));
    if (!rank) return stay("the rank of its signal is unknown");
    std::vector<ValueId> x = rank->size() == 2 ? std::vector<ValueId>{node().input(0)} : parts(node().input(0));
    if (x.empty()) return {};
    if (!isFloating(graph_.value(x[0]).type.dtype) && rank->size() == 2) return stay("the type of its signal is unknown");
    if (!node().input(1)) return stay("no frame_step");
    Extent length;
    if (node().input(3))
      length = scalarOf(node().input(3));
    else if (node().input(2) && context_.inference.shape(node().input(2)))
      length = extentOf(node().input(2), 0);
    else
      return stay("neither frame_length nor a window of known rank; expected one");
    if (length.known && *length.known < 1) return stay(fmt::format("frame length {}; expected 1 or more", *length.known));
    const Extent samples = extentOf(node().input(0), 1), step = scalarOf(node().input(1));
    const ValueId end = emit("Add", {emit("Sub", {samples.value, length.value}), integer(1)});
    const ValueId starts = emit("Unsqueeze", {emit("Range", {integer(0), end, step.value}), ints({1})});
    const ValueId positions = emit("Add", {starts, emit("Range", {integer(0), length.value, integer(1)})});
    for (ValueId& component : x) {
      component = emit("Gather", {component, positions}, {{"axis", std::int64_t{1}}});
      if (node().input(2)) component = emit("Mul", {component, emit("CastLike", {node().input(2), component})});
    }
    std::vector<ValueId> y = transform(x, length, length, node().attrs.integer("onesided", 1) != 0, false);
    for (ValueId& component : y) component = emit("Unsqueeze", {component, ints({-1})});
    return emit("Concat", y, {{"axis", std::int64_t{-1}}});
  }

  // Real and imaginary part of the transform along the last axis of real and, where there is one, imaginary part.
  std::vector<ValueId> transform(const std::vector<ValueId>& x, const Extent& rows, const Extent& period, bool onesided,
                                 bool inverse) {
    Extent columns = period;
    if (onesided)
      columns = period.known ? known(*period.known / 2 + 1)
                             : Extent{{}, emit("Add", {emit("Div", {period.value, integer(2)}), integer(1)})};
    const ValueId cosines = basis(x[0], rows, columns, period, true, inverse),
                  sines = basis(x[0], rows, columns, period, false, inverse);
    // e^(-iθ) = cos θ - i sin θ; the inverse turns the other way.
    ValueId re = emit("MatMul", {x[0], cosines}), im = emit("MatMul", {x[0], sines});
    if (!inverse) im = emit("Neg", {im});
    if (x.size() > 1) {
      const ValueId other = emit("MatMul", {x[1], sines});
      re = emit(inverse ? "Sub" : "Add", {re, other});
      im = emit("Add", {im, emit("MatMul", {x[1], cosines})});
    }
    return {re, im};
  }

  // cos or sin of 2π·row·column/period, divided by the period for the inverse, in the type of `like`.
  ValueId basis(ValueId like, const Extent& rows, const Extent& columns, const Extent& period, bool cosine, bool inverse) {
    const DType dtype = signalType();
    if (rows.known && columns.known && period.known && *period.known > 0 &&
        *rows.known <= kMostBasisElements / *columns.known) {
      Tensor matrix(dtype, {*rows.known, *columns.known});
      const std::int64_t n = *period.known;
      for (std::int64_t r = 0; r < *rows.known; ++r)
        for (std::int64_t k = 0; k < *columns.known; ++k) {
          // The angle modulo a turn, so that long transforms keep their precision.
          const double angle = 2 * std::numbers::pi * static_cast<double>(r * k % n) / static_cast<double>(n);
          const double value = cosine ? std::cos(angle) : std::sin(angle);
          storeElement(matrix.view(), r * *columns.known + k, inverse ? value / static_cast<double>(n) : value);
        }
      return graph_.addConstant(node().name + (cosine ? "/cosines" : "/sines"), std::move(matrix));
    }
    const ValueId row = emit("Unsqueeze", {emit("Range", {integer(0), rows.value, integer(1)}), ints({1})});
    const ValueId turns =
        emit("Mod", {emit("Mul", {row, emit("Range", {integer(0), columns.value, integer(1)})}), period.value});
    const ValueId n = emit("Cast", {period.value}, to(DType::kF64));
    const ValueId angle =
        emit("Mul", {emit("Cast", {turns}, to(DType::kF64)), emit("Div", {real(2 * std::numbers::pi), n})});
    ValueId values = emit(cosine ? "Cos" : "Sin", {angle});
    if (inverse) values = emit("Div", {values, n});
    return emit("CastLike", {values, like});
  }

  // --- reading

  DType signalType() const { return graph_.value(node().input(0)).type.dtype; }

  // The components of a signal whose last axis holds real and perhaps imaginary part; none, and blocked, when not known.
  std::vector<ValueId> parts(ValueId signal) {
    const auto shape = signal ? context_.inference.shape(signal) : std::nullopt;
    if (!shape || shape->size() < 2 || !isFloating(graph_.value(signal).type.dtype)) {
      stay("the type or rank of its signal is unknown, or not that of one; expected a float signal of rank 2 or more");
      return {};
    }
    const Dim& last = shape->back();
    if (!last.known() || last.value() < 1 || last.value() > 2) {
      stay(
          fmt::format("the last extent of its signal is {}; expected 1 (real) or 2 (real and imaginary part)", last.text()));
      return {};
    }
    std::vector<ValueId> found;
    for (std::int64_t i = 0; i < last.value(); ++i)
      found.push_back(emit("Gather", {signal, integer(i)}, {{"axis", std::int64_t{-1}}}));
    return found;
  }

  Extent known(std::int64_t n) { return {n, integer(n)}; }

  Extent extentOf(ValueId v, std::size_t axis) {
    const auto shape = context_.inference.shape(v);
    if (shape && axis < shape->size() && (*shape)[axis].known()) return known((*shape)[axis].value());
    const auto begin = static_cast<std::int64_t>(axis);
    return {{}, emit("Reshape", {emit("Shape", {v}, {{"start", begin}, {"end", begin + 1}}), ints({})})};
  }

  Extent scalarOf(ValueId v) {
    const auto numbers = context_.inference.integers(v);
    if (numbers && numbers->size() == 1) return known(numbers->front());
    return {{}, emit("Cast", {emit("Reshape", {v, ints({})})}, to(DType::kI64))};
  }

  // --- writing

  ValueId vector(const Extent& e) { return e.known ? ints({*e.known}) : emit("Unsqueeze", {e.value, ints({0})}); }
  ValueId real(double value) { return NodeLowering::real(DType::kF64, value); }
  static Attributes to(DType dtype) { return {{"to", static_cast<std::int64_t>(dtype == DType::kI64 ? 7 : 11)}}; }
};

}  // namespace

Status lowerSignal(Graph& graph, PassContext& context) { return Signal(graph, context).run(); }

}  // namespace stepscope
