#include "kernels/reference/linear/linear_kernels.h"
#include "kernels/reference/linear/recurrent.h"

namespace stepscope::reference {
namespace {

constexpr std::int64_t kGates = 3;  // update, reset, hidden

class GruCell final : public RecurrentCell {
 public:
  GruCell(std::vector<Activation> activations, bool linearFirst)
      : f_(activations[0]), g_(activations[1]), linearFirst_(linearFirst) {}

  void forward(const RecurrentShape& s, const RecurrentWeights& w, const double* h, const double*,
               RecurrentStep& step) const override {
    const std::int64_t size = s.hidden, rows = kGates * size;
    step.before.assign(w.b.begin(), w.b.begin() + rows);
    addProduct(w.w.data(), rows, s.input, step.x, step.before.data());
    for (std::int64_t i = 0; i < 2 * size; ++i) at(step.before, i) += at(w.b, rows + i);
    addProduct(w.r.data(), 2 * size, size, h, step.before.data());
    step.after.resize(static_cast<std::size_t>(rows));
    for (std::int64_t i = 0; i < 2 * size; ++i) at(step.after, i) = f_.value(at(step.before, i));
    // The recurrent part of the hidden gate: R · h + b before the reset gate is applied, or R · (r * h) + b after it.
    step.extra.assign(w.b.begin() + rows + 2 * size, w.b.begin() + 2 * rows);
    const double* matrix = w.r.data() + 2 * size * size;
    if (linearFirst_) {
      addProduct(matrix, size, size, h, step.extra.data());
      for (std::int64_t i = 0; i < size; ++i) at(step.before, 2 * size + i) += at(step.after, size + i) * at(step.extra, i);
    } else {
      addProduct(matrix, size, size, resetState(s, h, step).data(), step.extra.data());
      for (std::int64_t i = 0; i < size; ++i) at(step.before, 2 * size + i) += at(step.extra, i);
    }
    step.h.resize(static_cast<std::size_t>(size));
    step.c.assign(static_cast<std::size_t>(size), 0.0);
    for (std::int64_t i = 0; i < size; ++i) {
      const double z = at(step.after, i), next = at(step.after, 2 * size + i) = g_.value(at(step.before, 2 * size + i));
      at(step.h, i) = (1 - z) * next + z * h[i];
    }
  }

  void backward(const RecurrentShape& s, const RecurrentWeights& w, const double* h, const double*,
                const RecurrentStep& step, std::vector<double>& dh, std::vector<double>&, double* dx,
                RecurrentWeights& d) const override {
    const std::int64_t size = s.hidden, rows = kGates * size;
    std::vector<double> gates(static_cast<std::size_t>(rows)), dLinear(static_cast<std::size_t>(size)),
        dBefore(static_cast<std::size_t>(size));
    const double* matrix = w.r.data() + 2 * size * size;
    for (std::int64_t i = 0; i < size; ++i) {
      const double z = at(step.after, i), next = at(step.after, 2 * size + i), r = at(step.after, size + i);
      at(gates, i) = at(dh, i) * (h[i] - next) * f_.derivative(at(step.before, i));
      at(gates, 2 * size + i) = at(dh, i) * (1 - z) * g_.derivative(at(step.before, 2 * size + i));
      at(dLinear, i) = at(gates, 2 * size + i) * (linearFirst_ ? r : 1);
      at(dBefore, i) = at(dh, i) * z;
    }
    std::vector<double> back(static_cast<std::size_t>(size), 0.0);  // through R of the hidden gate
    addTransposedProduct(matrix, size, size, dLinear.data(), back.data());
    const std::vector<double> reset = resetState(s, h, step);
    addOuter(d.r.data() + 2 * size * size, size, size, dLinear.data(), linearFirst_ ? h : reset.data());
    for (std::int64_t i = 0; i < size; ++i) {
      const double dReset = linearFirst_ ? at(gates, 2 * size + i) * at(step.extra, i) : at(back, i) * h[i];
      at(gates, size + i) = dReset * f_.derivative(at(step.before, size + i));
      at(dBefore, i) += at(back, i) * (linearFirst_ ? 1 : at(step.after, size + i));
    }
    for (std::int64_t i = 0; i < rows; ++i) {
      at(d.b, i) += at(gates, i);
      at(d.b, rows + i) += i < 2 * size ? at(gates, i) : at(dLinear, i - 2 * size);
    }
    addOuter(d.w.data(), rows, s.input, gates.data(), step.x);
    addOuter(d.r.data(), 2 * size, size, gates.data(), h);
    addTransposedProduct(w.w.data(), rows, s.input, gates.data(), dx);
    addTransposedProduct(w.r.data(), 2 * size, size, gates.data(), dBefore.data());
    dh = std::move(dBefore);
  }

 private:
  static std::vector<double> resetState(const RecurrentShape& s, const double* h, const RecurrentStep& step) {
    std::vector<double> state(static_cast<std::size_t>(s.hidden));
    for (std::int64_t i = 0; i < s.hidden; ++i) at(state, i) = at(step.after, s.hidden + i) * h[i];
    return state;
  }
  Activation f_, g_;
  bool linearFirst_;
};

Result<std::unique_ptr<RecurrentCell>> makeCell(const KernelSpec& spec, std::size_t direction) {
  SS_ASSIGN(auto activations, readActivations(spec.attrs, direction, {"Sigmoid", "Tanh"}));
  return std::unique_ptr<RecurrentCell>(
      std::make_unique<GruCell>(std::move(activations), spec.attrs.integer("linear_before_reset", 0) != 0));
}

}  // namespace

Status gru(const KernelSpec& spec, const KernelCall& call) { return runRecurrent(spec, call, kGates, makeCell); }
Status gruGrad(const KernelSpec& spec, const KernelCall& call) { return runRecurrentGradient(spec, call, kGates, makeCell); }

}  // namespace stepscope::reference
