#include "kernels/reference/linear/linear_kernels.h"
#include "kernels/reference/linear/recurrent.h"

namespace stepscope::reference {
namespace {

constexpr std::int64_t kGates = 4;  // input, output, forget, cell

class LstmCell final : public RecurrentCell {
 public:
  LstmCell(std::vector<Activation> activations, bool coupled)
      : f_(activations[0]), g_(activations[1]), h_(activations[2]), coupled_(coupled) {}

  void forward(const RecurrentShape& s, const RecurrentWeights& w, const double* h, const double* c,
               RecurrentStep& step) const override {
    const std::int64_t size = s.hidden, rows = kGates * size;
    step.before.assign(w.b.begin(), w.b.begin() + rows);
    for (std::int64_t i = 0; i < rows; ++i) at(step.before, i) += at(w.b, rows + i);
    addProduct(w.w.data(), rows, s.input, step.x, step.before.data());
    addProduct(w.r.data(), rows, size, h, step.before.data());
    step.after.resize(static_cast<std::size_t>(rows));
    step.h.resize(static_cast<std::size_t>(size));
    step.c.resize(static_cast<std::size_t>(size));
    for (std::int64_t i = 0; i < size; ++i) {
      at(step.before, i) += at(w.p, i) * c[i];
      at(step.before, 2 * size + i) += at(w.p, 2 * size + i) * c[i];
      const double in = at(step.after, i) = f_.value(at(step.before, i));
      const double forget = at(step.after, 2 * size + i) = coupled_ ? 1 - in : f_.value(at(step.before, 2 * size + i));
      const double cell = at(step.after, 3 * size + i) = g_.value(at(step.before, 3 * size + i));
      at(step.c, i) = forget * c[i] + in * cell;
      at(step.before, size + i) += at(w.p, size + i) * at(step.c, i);
      const double out = at(step.after, size + i) = f_.value(at(step.before, size + i));
      at(step.h, i) = out * h_.value(at(step.c, i));
    }
  }

  void backward(const RecurrentShape& s, const RecurrentWeights& w, const double* h, const double* c,
                const RecurrentStep& step, std::vector<double>& dh, std::vector<double>& dc, double* dx,
                RecurrentWeights& d) const override {
    const std::int64_t size = s.hidden, rows = kGates * size;
    std::vector<double> gates(static_cast<std::size_t>(rows));
    for (std::int64_t i = 0; i < size; ++i) {
      const double in = at(step.after, i), out = at(step.after, size + i), forget = at(step.after, 2 * size + i);
      const double cell = at(step.after, 3 * size + i);
      const double dOut = at(dh, i) * h_.value(at(step.c, i)) * f_.derivative(at(step.before, size + i));
      double dCell = at(dc, i) + at(dh, i) * out * h_.derivative(at(step.c, i)) + dOut * at(w.p, size + i);
      const double dIn = (coupled_ ? dCell * (cell - c[i]) : dCell * cell) * f_.derivative(at(step.before, i));
      const double dForget = coupled_ ? 0 : dCell * c[i] * f_.derivative(at(step.before, 2 * size + i));
      at(gates, i) = dIn;
      at(gates, size + i) = dOut;
      at(gates, 2 * size + i) = dForget;
      at(gates, 3 * size + i) = dCell * in * g_.derivative(at(step.before, 3 * size + i));
      at(d.p, i) += dIn * c[i];
      at(d.p, size + i) += dOut * at(step.c, i);
      at(d.p, 2 * size + i) += dForget * c[i];
      at(dc, i) = dCell * forget + dIn * at(w.p, i) + dForget * at(w.p, 2 * size + i);
    }
    for (std::int64_t i = 0; i < rows; ++i) {
      at(d.b, i) += at(gates, i);
      at(d.b, rows + i) += at(gates, i);
    }
    addOuter(d.w.data(), rows, s.input, gates.data(), step.x);
    addOuter(d.r.data(), rows, size, gates.data(), h);
    addTransposedProduct(w.w.data(), rows, s.input, gates.data(), dx);
    dh.assign(static_cast<std::size_t>(size), 0.0);
    addTransposedProduct(w.r.data(), rows, size, gates.data(), dh.data());
  }

 private:
  Activation f_, g_, h_;
  bool coupled_;
};

Result<std::unique_ptr<RecurrentCell>> makeCell(const KernelSpec& spec, std::size_t direction) {
  SS_ASSIGN(auto activations, readActivations(spec.attrs, direction, {"Sigmoid", "Tanh", "Tanh"}));
  return std::unique_ptr<RecurrentCell>(
      std::make_unique<LstmCell>(std::move(activations), spec.attrs.integer("input_forget", 0) != 0));
}

}  // namespace

Status lstm(const KernelSpec& spec, const KernelCall& call) { return runRecurrent(spec, call, kGates, makeCell); }
Status lstmGrad(const KernelSpec& spec, const KernelCall& call) {
  return runRecurrentGradient(spec, call, kGates, makeCell);
}

}  // namespace stepscope::reference
