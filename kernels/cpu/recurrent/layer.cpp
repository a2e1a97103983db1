#include <algorithm>

#include "kernels/cpu/dnnl_support.h"
#include "kernels/cpu/loops/support.h"
#include "kernels/cpu/recurrent/panels.h"
#include "kernels/cpu/recurrent/product.h"
#include "kernels/cpu/recurrent/recurrent.h"

namespace stepscope::cpu {
namespace {

class LayerKernel final : public Kernel {
 public:
  static Result<std::unique_ptr<Kernel>> make(const KernelSpec& spec) {
    SS_ASSIGN(const RecurrentExtents e, recurrentExtents(spec, 0));
    for (std::size_t i = 0; i < spec.outputs.size(); ++i)
      if (spec.outputPresent(i) && spec.outputs[i].dtype != DType::kF32)
        return unsupported(spec.op + ": an output that is not float32");
    SS_ASSIGN(StepsProduct product,
              StepsProduct::make(
                  {{e.rows(), e.input}, {e.width(), e.input}, {e.rows(), e.width()}, false, true, true, false}, e.threads));
    return std::unique_ptr<Kernel>(new LayerKernel(spec, e, std::move(product)));
  }

  std::size_t workspaceBytes() const override { return layout_.size(); }
  std::string implementation() const override { return "steps in panels"; }
  Determinism determinism() const override { return libraryOrder(); }

  Status run(const KernelCall& call) override {
    const auto region = [&](std::size_t offset) { return reinterpret_cast<float*>(call.workspace.data() + offset); };
    const auto optional = [&](std::size_t i) { return call.inputPresent(i) ? input(call, i) : nullptr; };
    auto* lengths = reinterpret_cast<std::int32_t*>(call.workspace.data() + lengths_);
    SS_TRY(readLengths(call, 4, e_, lengths));
    float* gates = call.outputPresent(kept_) ? output(call, kept_) : region(gates_);
    const std::int64_t width = e_.width(), matrix = packedSize(e_.hidden, width);
    for (std::int64_t d = 0; d < e_.directions; ++d) {
      const float* b = call.inputPresent(3) ? input(call, 3) + d * 2 * width : nullptr;
      float* bias = region(bias_);
      for (std::int64_t i = 0; i < width; ++i)
        bias[i] = b == nullptr ? 0.0F : e_.cell == Cell::kGru ? b[i] : b[i] + b[width + i];
      SS_TRY(product_.run(input(call, 0), input(call, 1) + d * width * e_.input, bias, gates + d * e_.rows() * width,
                          call.workspace.data() + scratch_));
      packPanels(input(call, 2) + d * width * e_.hidden, e_.hidden, width, 1, e_.hidden, region(packed_) + d * matrix,
                 e_.threads);
      startState(optional(5), d, region(h_));
      if (e_.hasCells()) startState(optional(6), d, region(c_));
    }
    const Buffers buffers{gates,
                          call.outputPresent(kept_ + 1) ? output(call, kept_ + 1) : nullptr,
                          region(h_),
                          region(c_),
                          region(linear_),
                          region(packed_),
                          call.inputPresent(3) ? input(call, 3) : nullptr,
                          call.outputPresent(0) ? output(call, 0) : nullptr,
                          lengths};
    walkParts(e_, [&](std::int64_t d, std::int64_t begin, std::int64_t end) {
      for (std::int64_t k = 0; k < e_.steps; ++k)
        step(buffers, e_.reversed[static_cast<std::size_t>(d)] ? e_.steps - 1 - k : k, d, begin, end);
    });
    if (call.outputPresent(1)) endState(region(h_), output(call, 1));
    if (e_.hasCells() && call.outputPresent(2)) endState(region(c_), output(call, 2));
    return {};
  }

 private:
  struct Buffers {
    float *gates, *kept, *h, *c, *linear;
    const float *packed, *b;
    float* y;
    const std::int32_t* lengths;
  };

  LayerKernel(const KernelSpec& spec, const RecurrentExtents& e, StepsProduct product)
      : e_(e), product_(std::move(product)), kept_(e.cell == Cell::kLstm ? 3 : 2) {
    const auto floats = [&](std::int64_t count) { return layout_.add(static_cast<std::size_t>(count) * sizeof(float)); };
    const std::int64_t state = e.directions * e.batch * e.hidden;
    const bool gru = e.cell == Cell::kGru, keeps = (e.hasCells() || gru) && spec.outputPresent(kept_);
    gates_ = floats(keeps ? 0 : e.directions * e.rows() * e.width());
    h_ = floats(state);
    c_ = floats(e.hasCells() ? state : 0);
    linear_ = floats(gru ? 3 * state : 0);
    packed_ = floats(e.directions * packedSize(e.hidden, e.width()));
    bias_ = floats(e.width());
    lengths_ = layout_.add(static_cast<std::size_t>(e.batch) * sizeof(std::int32_t));
    scratch_ = layout_.add(product_.workspaceBytes());
  }

  // States are kept as [directions, batch, hidden] here, whatever the layout.
  float* stateOf(float* all, std::int64_t d, std::int64_t n) const { return all + (d * e_.batch + n) * e_.hidden; }

  void startState(const float* given, std::int64_t d, float* state) const {
    for (std::int64_t n = 0; n < e_.batch; ++n) {
      if (given != nullptr)
        std::copy_n(given + e_.state(d, n), e_.hidden, stateOf(state, d, n));
      else
        std::fill_n(stateOf(state, d, n), e_.hidden, 0.0F);
    }
  }
  void endState(float* state, float* to) const {
    for (std::int64_t d = 0; d < e_.directions; ++d)
      for (std::int64_t n = 0; n < e_.batch; ++n) std::copy_n(stateOf(state, d, n), e_.hidden, to + e_.state(d, n));
  }

  // Step `t` of the sequences [begin, end). A sequence that is over in time, or has not begun in reverse, keeps its state.
  void step(const Buffers& b, std::int64_t t, std::int64_t d, std::int64_t begin, std::int64_t end) const {
    const std::int64_t hidden = e_.hidden, width = e_.width();
    const float* packed = b.packed + d * packedSize(hidden, width);
    float* gates = b.gates + (d * e_.rows() + e_.row(t, begin)) * width;
    const bool gru = e_.cell == Cell::kGru;
    float* linear = gru ? b.linear + (d * e_.batch + begin) * width : nullptr;
    if (gru) {
      for (std::int64_t n = 0; n < end - begin; ++n) {
        if (b.b != nullptr)
          std::copy_n(b.b + (2 * d + 1) * width, width, linear + n * width);
        else
          std::fill_n(linear + n * width, width, 0.0F);
      }
    }
    addPanels(stateOf(b.h, d, begin), hidden, end - begin, packed, hidden, width, gru ? linear : gates,
              gru ? width : e_.rowStep() * width);
    for (std::int64_t n = begin; n < end; ++n) {
      const std::int64_t row = d * e_.rows() + e_.row(t, n);
      float *own = b.gates + row * width, *h = stateOf(b.h, d, n),
            *kept = b.kept == nullptr ? nullptr : b.kept + row * hidden;
      if (t >= b.lengths[n]) {
        std::fill_n(own, width, 0.0F);
        if (kept != nullptr) std::fill_n(kept, hidden, 0.0F);
        if (b.y != nullptr) std::fill_n(b.y + e_.y(t, d, n), hidden, 0.0F);
        continue;
      }
      if (e_.hasCells()) {
        float* c = stateOf(b.c, d, n);
        lstmStep(own, h, c, hidden);
        if (kept != nullptr) std::copy_n(c, hidden, kept);
      } else if (gru) {
        const float* part = linear + (n - begin) * width;
        gruStep(own, part, h, hidden);
        if (kept != nullptr) std::copy_n(part + 2 * hidden, hidden, kept);
      } else {
        rnnStep(e_.cell, own, h, hidden);
      }
      if (b.y != nullptr) std::copy_n(h, hidden, b.y + e_.y(t, d, n));
    }
  }

  RecurrentExtents e_;
  StepsProduct product_;
  std::size_t kept_;  // the first output that is kept for the way back
  WorkspaceLayout layout_;
  std::size_t gates_ = 0, h_ = 0, c_ = 0, linear_ = 0, packed_ = 0, bias_ = 0, lengths_ = 0, scratch_ = 0;
};

}  // namespace

Result<std::unique_ptr<Kernel>> makeRecurrent(const KernelSpec& spec) { return LayerKernel::make(spec); }

}  // namespace stepscope::cpu
