#include <algorithm>
#include <optional>

#include "kernels/cpu/dnnl_support.h"
#include "kernels/cpu/loops/support.h"
#include "kernels/cpu/recurrent/panels.h"
#include "kernels/cpu/recurrent/product.h"
#include "kernels/cpu/recurrent/recurrent.h"

namespace stepscope::cpu {
namespace {

// Numbers of the operands.
enum In : std::size_t { kDy, kDyH, kDyC, kX, kW, kR, kB, kLengths, kH0, kC0, kP, kY, kGates, kLinear };
enum Out : std::size_t { kDx, kDw, kDr, kDb, kDh0, kDc0, kDp /* not taken */ };

class LayerGradientKernel final : public Kernel {
 public:
  static Result<std::unique_ptr<Kernel>> make(const KernelSpec& spec) {
    SS_ASSIGN(const RecurrentExtents e, recurrentExtents(spec, kX));
    if (spec.outputPresent(kDp)) return unsupported(spec.op + ": peepholes; falls back to the reference kernel");
    const bool gated = e.cell == Cell::kLstm || e.cell == Cell::kGru;
    const auto has = [&](std::size_t i, std::int64_t count) {
      return spec.inputPresent(i) && elementCount(spec.inputs[i].dims) == count;
    };
    const auto hasOrAbsent = [&](std::size_t i, std::int64_t count) { return !spec.inputPresent(i) || has(i, count); };
    const std::int64_t all = e.directions * e.rows() * e.hidden, state = e.directions * e.batch * e.hidden;
    if (!has(kY, all) || (gated && (!has(kGates, all * e.gates) || !has(kLinear, all))))
      return unsupported(spec.op + ": the values of the way forward are missing; falls back to the reference kernel");
    if (!hasOrAbsent(kDy, all) || !hasOrAbsent(kDyH, state) || !hasOrAbsent(kDyC, state))
      return unsupported(spec.op + ": a gradient of other extents; falls back to the reference kernel");
    auto kernel = std::unique_ptr<LayerGradientKernel>(new LayerGradientKernel(e));
    SS_TRY(kernel->plan(spec));
    return std::unique_ptr<Kernel>(std::move(kernel));
  }

  std::size_t workspaceBytes() const override { return layout_.size(); }
  std::string implementation() const override { return "steps in panels"; }
  Determinism determinism() const override { return libraryOrder(); }

  Status run(const KernelCall& call) override {
    const auto optional = [&](std::size_t i) { return call.inputPresent(i) ? input(call, i) : nullptr; };
    auto* lengths = reinterpret_cast<std::int32_t*>(call.workspace.data() + lengths_);
    SS_TRY(readLengths(call, kLengths, e_, lengths));
    const std::int64_t width = e_.width(), hidden = e_.hidden, matrix = packedSize(width, hidden);
    for (std::int64_t d = 0; d < e_.directions; ++d) {
      packPanels(input(call, kR) + d * width * hidden, width, hidden, hidden, 1, region(call, packed_) + d * matrix,
                 e_.threads);
      for (std::int64_t n = 0; n < e_.batch; ++n) {
        copyOrZeros(optional(kDyH), e_.state(d, n), stateOf(region(call, dh_), d, n));
        if (e_.hasCells()) copyOrZeros(optional(kDyC), e_.state(d, n), stateOf(region(call, dc_), d, n));
      }
    }
    std::fill_n(region(call, zeros_), hidden, 0.0F);
    walkParts(e_, [&](std::int64_t d, std::int64_t begin, std::int64_t end) {
      for (std::int64_t k = e_.steps; k-- > 0;)
        step(call, lengths, e_.reversed[static_cast<std::size_t>(d)] ? e_.steps - 1 - k : k, d, begin, end);
    });
    for (std::int64_t d = 0; d < e_.directions; ++d) SS_TRY(weights(call, d));
    if (call.outputPresent(kDh0)) endState(region(call, dh_), output(call, kDh0));
    if (call.outputPresent(kDc0)) {
      if (e_.hasCells())
        endState(region(call, dc_), output(call, kDc0));
      else
        std::fill_n(output(call, kDc0), call.outputs[kDc0].elements(), 0.0F);
    }
    return {};
  }

 private:
  explicit LayerGradientKernel(const RecurrentExtents& e) : e_(e) {}

  Status plan(const KernelSpec& spec) {
    const RecurrentExtents& e = e_;
    const std::int64_t width = e.width(), state = e.directions * e.batch * e.hidden;
    std::size_t scratch = 0;
    const auto product = [&](std::optional<StepsProduct>& to, const StepsProduct::Form& form) -> Status {
      SS_ASSIGN(to, StepsProduct::make(form, e.threads));
      scratch = std::max(scratch, to->workspaceBytes());
      return {};
    };
    const Dims rows{e.rows(), width}, x{e.rows(), e.input}, before{e.rows(), e.hidden}, w{width, e.input},
        r{width, e.hidden};
    if (spec.outputPresent(kDx)) {
      SS_TRY(product(dx_, {rows, w, x}));
      if (e.directions == 2) SS_TRY(product(dxMore_, {rows, w, x, false, false, false, true}));
    }
    if (spec.outputPresent(kDw)) SS_TRY(product(dw_, {rows, x, w, true}));
    if (spec.outputPresent(kDr)) SS_TRY(product(dr_, {rows, before, r, true}));
    const auto floats = [&](std::int64_t count) { return layout_.add(static_cast<std::size_t>(count) * sizeof(float)); };
    packed_ = floats(e.directions * packedSize(width, e.hidden));
    d_ = floats(e.directions * e.rows() * width);
    dLinear_ = e.cell == Cell::kGru ? floats(e.directions * e.rows() * width) : d_;
    before_ = floats(e.directions * e.rows() * e.hidden);
    dh_ = floats(state);
    dc_ = floats(e.hasCells() ? state : 0);
    zeros_ = floats(e.hidden);
    sums_ = layout_.add(static_cast<std::size_t>(width) * sizeof(double));
    lengths_ = layout_.add(static_cast<std::size_t>(e.batch) * sizeof(std::int32_t));
    scratch_ = layout_.add(scratch);
    return {};
  }

  static float* region(const KernelCall& call, std::size_t offset) {
    return reinterpret_cast<float*>(call.workspace.data() + offset);
  }
  float* stateOf(float* all, std::int64_t d, std::int64_t n) const { return all + (d * e_.batch + n) * e_.hidden; }
  void copyOrZeros(const float* given, std::int64_t offset, float* to) const {
    if (given != nullptr)
      std::copy_n(given + offset, e_.hidden, to);
    else
      std::fill_n(to, e_.hidden, 0.0F);
  }
  void endState(float* state, float* to) const {
    for (std::int64_t d = 0; d < e_.directions; ++d)
      for (std::int64_t n = 0; n < e_.batch; ++n) std::copy_n(stateOf(state, d, n), e_.hidden, to + e_.state(d, n));
  }

  // Step `t` of the sequences [begin, end), from the end of the walk to its start.
  void step(const KernelCall& call, const std::int32_t* lengths, std::int64_t t, std::int64_t d, std::int64_t begin,
            std::int64_t end) const {
    const std::int64_t hidden = e_.hidden, width = e_.width(), rows = e_.rows();
    const bool reversed = e_.reversed[static_cast<std::size_t>(d)];
    float *dAll = region(call, d_) + d * rows * width, *dLinearAll = region(call, dLinear_) + d * rows * width;
    for (std::int64_t n = begin; n < end; ++n) {
      const std::int64_t row = e_.row(t, n);
      float *own = dAll + row * width, *linear = dLinearAll + row * width,
            *before = region(call, before_) + (d * rows + row) * hidden;
      if (t >= lengths[n]) {
        std::fill_n(own, width, 0.0F);
        if (linear != own) std::fill_n(linear, width, 0.0F);
        std::fill_n(before, hidden, 0.0F);
        continue;
      }
      const bool first = t == (reversed ? lengths[n] - 1 : 0);
      const std::int64_t previous = reversed ? t + 1 : t - 1;
      if (first)
        copyOrZeros(call.inputPresent(kH0) ? input(call, kH0) : nullptr, e_.state(d, n), before);
      else
        std::copy_n(input(call, kY) + e_.y(previous, d, n), hidden, before);
      float* dh = stateOf(region(call, dh_), d, n);
      if (call.inputPresent(kDy)) {
        const float* arriving = input(call, kDy) + e_.y(t, d, n);
        for (std::int64_t i = 0; i < hidden; ++i) dh[i] += arriving[i];
      }
      if (e_.hasCells()) {
        const float* cells = input(call, kLinear) + d * rows * hidden;
        const float* c0 = call.inputPresent(kC0) ? input(call, kC0) + e_.state(d, n) : region(call, zeros_);
        lstmStepBack(input(call, kGates) + (d * rows + row) * width, cells + row * hidden,
                     first ? c0 : cells + e_.row(previous, n) * hidden, dh, stateOf(region(call, dc_), d, n), own, hidden);
        std::fill_n(dh, hidden, 0.0F);
      } else if (e_.cell == Cell::kGru) {
        gruStepBack(input(call, kGates) + (d * rows + row) * width, input(call, kLinear) + (d * rows + row) * hidden, before,
                    dh, own, linear, hidden);
      } else {
        rnnStepBack(e_.cell, input(call, kY) + e_.y(t, d, n), dh, own, hidden);
        std::fill_n(dh, hidden, 0.0F);
      }
    }
    addPanels(dLinearAll + e_.row(t, begin) * width, e_.rowStep() * width, end - begin,
              region(call, packed_) + d * packedSize(width, hidden), width, hidden, stateOf(region(call, dh_), d, begin),
              hidden);
  }

  // Gradients that are sums over all steps of direction `d`.
  Status weights(const KernelCall& call, std::int64_t d) {
    const std::int64_t width = e_.width(), rows = e_.rows();
    const float *own = region(call, d_) + d * rows * width, *linear = region(call, dLinear_) + d * rows * width;
    const float* before = region(call, before_) + d * rows * e_.hidden;
    std::byte* scratch = call.workspace.data() + scratch_;
    if (dx_)
      SS_TRY(
          (d == 0 ? dx_ : dxMore_)->run(own, input(call, kW) + d * width * e_.input, nullptr, output(call, kDx), scratch));
    if (dw_) SS_TRY(dw_->run(own, input(call, kX), nullptr, output(call, kDw) + d * width * e_.input, scratch));
    if (dr_) SS_TRY(dr_->run(linear, before, nullptr, output(call, kDr) + d * width * e_.hidden, scratch));
    if (!call.outputPresent(kDb)) return {};
    float* db = output(call, kDb) + d * 2 * width;
    sumRows(call, own, db);
    if (linear != own)
      sumRows(call, linear, db + width);
    else
      std::copy_n(db, width, db + width);
    return {};
  }

  void sumRows(const KernelCall& call, const float* x, float* to) const {
    const std::int64_t width = e_.width(), rows = e_.rows();
    auto* sums = reinterpret_cast<double*>(call.workspace.data() + sums_);
    parallelParts(width, partsOf(width, rows, e_.threads), 16, [&](int, std::int64_t begin, std::int64_t end) {
      std::fill(sums + begin, sums + end, 0.0);
      for (std::int64_t row = 0; row < rows; ++row) addTo(sums + begin, x + row * width + begin, end - begin);
      for (std::int64_t i = begin; i < end; ++i) to[i] = static_cast<float>(sums[i]);
    });
  }

  RecurrentExtents e_;
  std::optional<StepsProduct> dx_, dxMore_, dw_, dr_;
  WorkspaceLayout layout_;
  std::size_t packed_ = 0, d_ = 0, dLinear_ = 0, before_ = 0, dh_ = 0, dc_ = 0, zeros_ = 0, sums_ = 0, lengths_ = 0,
              scratch_ = 0;
};

}  // namespace

Result<std::unique_ptr<Kernel>> makeRecurrentGradient(const KernelSpec& spec) { return LayerGradientKernel::make(spec); }

}  // namespace stepscope::cpu
