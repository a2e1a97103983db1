#include "kernels/reference/linear/linear_kernels.h"
#include "kernels/reference/linear/recurrent.h"

namespace stepscope::reference {
namespace {

class RnnCell final : public RecurrentCell {
 public:
  explicit RnnCell(Activation activation) : f_(activation) {}

  void forward(const RecurrentShape& s, const RecurrentWeights& w, const double* h, const double*,
               RecurrentStep& step) const override {
    const auto size = static_cast<std::size_t>(s.hidden);
    step.before.assign(w.b.begin(), w.b.begin() + s.hidden);
    for (std::size_t i = 0; i < size; ++i) step.before[i] += w.b[size + i];
    addProduct(w.w.data(), s.hidden, s.input, step.x, step.before.data());
    addProduct(w.r.data(), s.hidden, s.hidden, h, step.before.data());
    step.h.resize(size);
    step.c.assign(size, 0.0);
    for (std::size_t i = 0; i < size; ++i) step.h[i] = f_.value(step.before[i]);
  }

  void backward(const RecurrentShape& s, const RecurrentWeights& w, const double* h, const double*,
                const RecurrentStep& step, std::vector<double>& dh, std::vector<double>&, double* dx,
                RecurrentWeights& d) const override {
    const auto size = static_cast<std::size_t>(s.hidden);
    for (std::size_t i = 0; i < size; ++i) {
      dh[i] *= f_.derivative(step.before[i]);
      d.b[i] += dh[i];
      d.b[size + i] += dh[i];
    }
    addOuter(d.w.data(), s.hidden, s.input, dh.data(), step.x);
    addOuter(d.r.data(), s.hidden, s.hidden, dh.data(), h);
    addTransposedProduct(w.w.data(), s.hidden, s.input, dh.data(), dx);
    std::vector<double> previous(size, 0.0);
    addTransposedProduct(w.r.data(), s.hidden, s.hidden, dh.data(), previous.data());
    dh = std::move(previous);
  }

 private:
  Activation f_;
};

Result<std::unique_ptr<RecurrentCell>> makeCell(const KernelSpec& spec, std::size_t direction) {
  SS_ASSIGN(auto activations, readActivations(spec.attrs, direction, {"Tanh"}));
  return std::unique_ptr<RecurrentCell>(std::make_unique<RnnCell>(activations[0]));
}

}  // namespace

Status rnn(const KernelSpec& spec, const KernelCall& call) { return runRecurrent(spec, call, 1, makeCell); }
Status rnnGrad(const KernelSpec& spec, const KernelCall& call) { return runRecurrentGradient(spec, call, 1, makeCell); }

}  // namespace stepscope::reference
