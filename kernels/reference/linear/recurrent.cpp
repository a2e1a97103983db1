#include "kernels/reference/linear/recurrent.h"

namespace stepscope::reference {
namespace {

std::vector<double> readAll(const TensorView& view) {
  std::vector<double> values(static_cast<std::size_t>(view.elements()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = elementAsDouble(view, static_cast<std::int64_t>(i));
  return values;
}

void storeAll(const TensorView& view, const std::vector<double>& values) {
  for (std::size_t i = 0; i < values.size(); ++i) storeElement(view, static_cast<std::int64_t>(i), values[i]);
}

// Places in tensors of either layout.
struct Places {
  const RecurrentShape& s;
  std::int64_t x(std::int64_t t, std::int64_t n) const {
    return (s.batchFirst ? n * s.steps + t : t * s.batch + n) * s.input;
  }
  std::int64_t y(std::int64_t t, std::int64_t d, std::int64_t n) const {
    return (s.batchFirst ? (n * s.steps + t) * s.directions + d : (t * s.directions + d) * s.batch + n) * s.hidden;
  }
  std::int64_t state(std::int64_t d, std::int64_t n) const {
    return (s.batchFirst ? n * s.directions + d : d * s.batch + n) * s.hidden;
  }
};

// The operands, read once; `first` is the number of input X.
struct Operands {
  RecurrentShape shape;
  std::vector<double> x, w, r, b, h0, c0, p;
  std::vector<std::unique_ptr<RecurrentCell>> cells;
};

Result<std::vector<double>> readShaped(const KernelCall& call, std::size_t i, const Dims& dims, const char* name) {
  if (!call.inputPresent(i)) return std::vector<double>(static_cast<std::size_t>(elementCount(dims)), 0.0);
  if (call.inputs[i].dims != dims)
    return invalid(std::string(name) + " of shape " + dimsText(call.inputs[i].dims) + "; expected " + dimsText(dims));
  return readAll(call.inputs[i]);
}

Result<Operands> readOperands(const KernelSpec& spec, const KernelCall& call, std::size_t first, std::int64_t gates,
                              CellMaker makeCell) {
  Operands o;
  RecurrentShape& s = o.shape;
  if (call.inputs.size() < first + 3) return invalid(spec.op + ": expected X, W and R");
  const Dims &x = call.inputs[first].dims, &w = call.inputs[first + 1].dims, &r = call.inputs[first + 2].dims;
  if (x.size() != 3 || w.size() != 3 || r.size() != 3)
    return invalid(spec.op + ": X, W, R of shapes " + dimsText(x) + ", " + dimsText(w) + ", " + dimsText(r) +
                   "; expected rank 3");
  const std::string direction = spec.attrs.text("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    return invalid(spec.op + ": attribute 'direction' is '" + direction + "'; expected forward, reverse or bidirectional");
  s.batchFirst = spec.attrs.integer("layout", 0) != 0;
  s.steps = x[s.batchFirst ? 1 : 0];
  s.batch = x[s.batchFirst ? 0 : 1];
  s.input = x[2];
  s.hidden = r[2];
  s.gates = gates;
  s.directions = direction == "bidirectional" ? 2 : 1;
  s.reversed = {direction == "reverse"};
  if (s.directions == 2) s.reversed.push_back(true);
  SS_ASSIGN(o.x, readShaped(call, first, x, "X"));
  SS_ASSIGN(o.w, readShaped(call, first + 1, {s.directions, gates * s.hidden, s.input}, "W"));
  SS_ASSIGN(o.r, readShaped(call, first + 2, {s.directions, gates * s.hidden, s.hidden}, "R"));
  SS_ASSIGN(o.b, readShaped(call, first + 3, {s.directions, 2 * gates * s.hidden}, "B"));
  const Dims state = s.batchFirst ? Dims{s.batch, s.directions, s.hidden} : Dims{s.directions, s.batch, s.hidden};
  SS_ASSIGN(o.h0, readShaped(call, first + 5, state, "initial_h"));
  SS_ASSIGN(o.c0, readShaped(call, first + 6, state, "initial_c"));
  SS_ASSIGN(o.p, readShaped(call, first + 7, {s.directions, 3 * s.hidden}, "P"));
  s.lengths.assign(static_cast<std::size_t>(s.batch), s.steps);
  if (call.inputPresent(first + 4)) {
    s.lengths = intElements(call.inputs[first + 4]);
    if (static_cast<std::int64_t>(s.lengths.size()) != s.batch)
      return invalid("sequence_lens of " + std::to_string(s.lengths.size()) + " elements; expected " +
                     std::to_string(s.batch));
    for (const std::int64_t length : s.lengths)
      if (length < 0 || length > s.steps)
        return invalid("sequence_lens: " + std::to_string(length) + "; expected 0.." + std::to_string(s.steps));
  }
  for (std::size_t d = 0; d < static_cast<std::size_t>(s.directions); ++d) {
    SS_ASSIGN(auto cell, makeCell(spec, d));
    o.cells.push_back(std::move(cell));
  }
  return o;
}

std::vector<double> slice(const std::vector<double>& all, std::int64_t part, std::int64_t parts) {
  const auto size = static_cast<std::int64_t>(all.size()) / parts;
  return {all.begin() + part * size, all.begin() + (part + 1) * size};
}

void addSlice(std::vector<double>& all, std::int64_t part, const std::vector<double>& values) {
  for (std::size_t i = 0; i < values.size(); ++i) all[static_cast<std::size_t>(part) * values.size() + i] += values[i];
}

RecurrentWeights weightsOf(const Operands& o, std::int64_t d) {
  const std::int64_t parts = o.shape.directions;
  return {slice(o.w, d, parts), slice(o.r, d, parts), slice(o.b, d, parts), slice(o.p, d, parts)};
}

// Time of step `k` in a sequence of `length`.
std::int64_t timeOf(const RecurrentShape& s, std::int64_t d, std::int64_t k, std::int64_t length) {
  return s.reversed[static_cast<std::size_t>(d)] ? length - 1 - k : k;
}

// All steps of one sequence.
std::vector<RecurrentStep> walk(const Operands& o, const RecurrentWeights& w, std::int64_t d, std::int64_t n) {
  const RecurrentShape& s = o.shape;
  const Places place{s};
  const std::int64_t length = s.lengths[static_cast<std::size_t>(n)];
  const double *h = o.h0.data() + place.state(d, n), *c = o.c0.data() + place.state(d, n);
  std::vector<RecurrentStep> steps(static_cast<std::size_t>(length));
  for (std::int64_t k = 0; k < length; ++k) {
    RecurrentStep& step = steps[static_cast<std::size_t>(k)];
    step.x = o.x.data() + place.x(timeOf(s, d, k, length), n);
    o.cells[static_cast<std::size_t>(d)]->forward(s, w, h, c, step);
    h = step.h.data();
    c = step.c.data();
  }
  return steps;
}

// What the way back can use: the results of the gates, and the cell states or the cell's own values; zeros beyond the
// sequence.
void keep(const KernelCall& call, const RecurrentShape& s, std::int64_t d, std::int64_t n,
          const std::vector<RecurrentStep>& steps) {
  if (s.gates == 1) return;
  const bool lstm = s.gates == 4;
  const std::size_t first = lstm ? 3 : 2;
  const auto length = static_cast<std::int64_t>(steps.size());
  for (std::int64_t k = 0; k < s.steps; ++k) {
    const std::int64_t t = k < length ? timeOf(s, d, k, length) : k,
                       row = d * s.steps * s.batch + (s.batchFirst ? n * s.steps + t : t * s.batch + n);
    const RecurrentStep* step = k < length ? &steps[static_cast<std::size_t>(k)] : nullptr;
    const auto put = [&](std::size_t output, std::int64_t width, const std::vector<double>& values) {
      if (!call.outputPresent(output)) return;
      for (std::int64_t i = 0; i < width; ++i)
        storeElement(call.outputs[output], row * width + i, step ? at(values, i) : 0.0);
    };
    static const std::vector<double> kNone;
    put(first, s.gates * s.hidden, step ? step->after : kNone);
    put(first + 1, s.hidden, step ? (lstm ? step->c : step->extra) : kNone);
  }
}

}  // namespace

void addProduct(const double* matrix, std::int64_t rows, std::int64_t columns, const double* x, double* y) {
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) y[i] += matrix[i * columns + j] * x[j];
}

void addTransposedProduct(const double* matrix, std::int64_t rows, std::int64_t columns, const double* x, double* y) {
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) y[j] += matrix[i * columns + j] * x[i];
}

void addOuter(double* matrix, std::int64_t rows, std::int64_t columns, const double* a, const double* b) {
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) matrix[i * columns + j] += a[i] * b[j];
}

Status runRecurrent(const KernelSpec& spec, const KernelCall& call, std::int64_t gates, CellMaker makeCell) {
  SS_ASSIGN(const Operands o, readOperands(spec, call, 0, gates, makeCell));
  const RecurrentShape& s = o.shape;
  const Places place{s};
  const auto put = [&](std::size_t output, std::int64_t start, const double* values) {
    if (!call.outputPresent(output)) return;
    for (std::int64_t i = 0; i < s.hidden; ++i) storeElement(call.outputs[output], start + i, values[i]);
  };
  const std::vector<double> zeros(static_cast<std::size_t>(s.hidden), 0.0);
  for (std::int64_t d = 0; d < s.directions; ++d) {
    const RecurrentWeights w = weightsOf(o, d);
    for (std::int64_t n = 0; n < s.batch; ++n) {
      const std::vector<RecurrentStep> steps = walk(o, w, d, n);
      const auto length = static_cast<std::int64_t>(steps.size());
      for (std::int64_t k = 0; k < length; ++k)
        put(0, place.y(timeOf(s, d, k, length), d, n), steps[static_cast<std::size_t>(k)].h.data());
      for (std::int64_t t = length; t < s.steps; ++t) put(0, place.y(t, d, n), zeros.data());
      keep(call, s, d, n, steps);
      put(1, place.state(d, n), length ? steps.back().h.data() : o.h0.data() + place.state(d, n));
      if (gates == 4) put(2, place.state(d, n), length ? steps.back().c.data() : o.c0.data() + place.state(d, n));
    }
  }
  return {};
}

Status runRecurrentGradient(const KernelSpec& spec, const KernelCall& call, std::int64_t gates, CellMaker makeCell) {
  SS_ASSIGN(const Operands o, readOperands(spec, call, 3, gates, makeCell));
  const RecurrentShape& s = o.shape;
  const Places place{s};
  Operands grad;  // gradients, in the layouts of the operands
  grad.x.assign(o.x.size(), 0.0);
  grad.w.assign(o.w.size(), 0.0);
  grad.r.assign(o.r.size(), 0.0);
  grad.b.assign(o.b.size(), 0.0);
  grad.h0.assign(o.h0.size(), 0.0);
  grad.c0.assign(o.c0.size(), 0.0);
  grad.p.assign(o.p.size(), 0.0);
  const auto hidden = static_cast<std::size_t>(s.hidden);
  const auto arriving = [&](std::size_t input, std::int64_t start, std::vector<double>& sum) {
    if (!call.inputPresent(input)) return;
    for (std::size_t i = 0; i < hidden; ++i)
      sum[i] += elementAsDouble(call.inputs[input], start + static_cast<std::int64_t>(i));
  };
  for (std::int64_t d = 0; d < s.directions; ++d) {
    const RecurrentWeights w = weightsOf(o, d);
    RecurrentWeights dw{std::vector<double>(w.w.size()), std::vector<double>(w.r.size()), std::vector<double>(w.b.size()),
                        std::vector<double>(w.p.size())};
    for (std::int64_t n = 0; n < s.batch; ++n) {
      const std::vector<RecurrentStep> steps = walk(o, w, d, n);
      const auto length = static_cast<std::int64_t>(steps.size());
      const std::int64_t state = place.state(d, n);
      std::vector<double> dh(hidden, 0.0), dc(hidden, 0.0);
      arriving(1, state, dh);
      arriving(2, state, dc);
      for (std::int64_t k = length; k-- > 0;) {
        const std::int64_t t = timeOf(s, d, k, length);
        arriving(0, place.y(t, d, n), dh);
        const double* h = k ? steps[static_cast<std::size_t>(k - 1)].h.data() : o.h0.data() + state;
        const double* c = k ? steps[static_cast<std::size_t>(k - 1)].c.data() : o.c0.data() + state;
        o.cells[static_cast<std::size_t>(d)]->backward(s, w, h, c, steps[static_cast<std::size_t>(k)], dh, dc,
                                                       grad.x.data() + place.x(t, n), dw);
      }
      std::copy(dh.begin(), dh.end(), grad.h0.begin() + state);
      std::copy(dc.begin(), dc.end(), grad.c0.begin() + state);
    }
    addSlice(grad.w, d, dw.w);
    addSlice(grad.r, d, dw.r);
    addSlice(grad.b, d, dw.b);
    addSlice(grad.p, d, dw.p);
  }
  std::size_t output = 0;
  for (const auto* values : {&grad.x, &grad.w, &grad.r, &grad.b, &grad.h0, &grad.c0, &grad.p}) {
    if (call.outputPresent(output)) storeAll(call.outputs[output], *values);
    ++output;
  }
  return {};
}

}  // namespace stepscope::reference
