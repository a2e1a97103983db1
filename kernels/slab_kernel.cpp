#include "kernels/slab_kernel.h"

#include <algorithm>
#include <utility>

#include "kernels/converted_kernel.h"
#include "kernels/strided_view.h"
#include "kernels/threads.h"

namespace stepscope {
namespace {

constexpr std::int64_t kSlabElements = 8192;

std::int64_t elementsBehind(const Dims& dims, std::size_t axis) { return elementCount(std::span(dims).subspan(axis + 1)); }

// Extents and strides of an operand on the axes of output 0; an extent of 1 where it is repeated.
Dims padded(const Dims& dims, std::size_t rank) {
  Dims all(rank - dims.size(), 1);
  all.insert(all.end(), dims.begin(), dims.end());
  return all;
}

bool broadcastsTo(const OperandSpec& operand, const Dims& result) {
  if (!operand.present()) return true;
  if (operand.dims.size() > result.size()) return false;
  const Dims all = padded(operand.dims, result.size());
  for (std::size_t a = 0; a < all.size(); ++a)
    if (all[a] != 1 && all[a] != result[a]) return false;
  return true;
}

// An operand in its own type and the float32 copy of a slab of it.
struct SlabOperand {
  DType dtype = DType::kUndefined;  // kUndefined: absent
  bool low = false;
  Dims steps;              // elements from one slab to the next along each cut axis; 0 where it is repeated
  Dims dims, restDims;     // of a whole slab and of the last one along the axis
  std::size_t offset = 0;  // of the copy in the memory of a worker
};

// The kernels for slabs of one size, and the operands as they see them. Views keep their extents; only addresses change.
struct SlabForm {
  std::unique_ptr<Kernel> kernel;
  std::vector<std::unique_ptr<Kernel>> casts;  // inputs first; null for operands that are used as they are
  std::vector<TensorView> given;               // in the operand itself, inputs first
  std::vector<TensorView> inputs, outputs;     // what the kernel gets
};

// What one thread needs: kernels keep the addresses of a run, so each has its own.
struct Worker {
  SlabForm whole, rest;          // rest: the shorter last slab along the axis
  std::vector<std::int64_t> at;  // of the input copies: where in the operand they begin; -1 = nothing converted yet
  Status status;                 // of the last run
};

class SlabKernel final : public Kernel {
 public:
  SlabKernel(const KernelSpec& spec, SlabCut cut) : cut_(cut), inputs_(spec.inputs.size()) {
    const Dims& y = spec.outputs[0].dims;
    for (std::size_t a = 0; a < cut.axis; ++a) extents_.push_back(y[a]);
    extents_.push_back((y[cut.axis] + cut.rows - 1) / cut.rows);
    slabs_ = elementCount(extents_);
    rest_ = y[cut.axis] % cut.rows;
    threads_ = static_cast<int>(std::min<std::int64_t>(slabs_, threadsForElements(elementCount(y), spec.threads)));
    for (const auto* operands : {&spec.inputs, &spec.outputs})
      for (const OperandSpec& operand : *operands) addOperand(operand, y.size());
  }

  Status makeWorkers(const KernelSpec& spec, const MakeKernel& make) {
    workers_.resize(static_cast<std::size_t>(threads_));
    for (Worker& worker : workers_) {
      SS_TRY(makeForm(spec, false, make, worker.whole));
      if (rest_ > 0) SS_TRY(makeForm(spec, true, make, worker.rest));
      worker.at.resize(inputs_);
    }
    inner_ = (inner_ + 63) / 64 * 64;
    return {};
  }

  std::size_t workspaceBytes() const override { return workers_.size() * (copies_ + inner_); }

  Status run(const KernelCall& call) override {
#pragma omp parallel for schedule(static) num_threads(threads_) if (threads_ > 1)
    for (int t = 0; t < threads_; ++t) workers_[static_cast<std::size_t>(t)].status = runPart(call, t);
    for (Worker& worker : workers_) SS_TRY(std::move(worker.status));
    return {};
  }
  bool mayFail() const override { return workers_[0].whole.kernel->mayFail(); }
  std::string implementation() const override { return workers_[0].whole.kernel->implementation() + " in float32 slabs"; }
  Determinism determinism() const override {
    return Determinism::fixed("every slab is computed by one thread; slabs depend on extents alone");
  }

 private:
  void addOperand(const OperandSpec& operand, std::size_t rank) {
    SlabOperand made;
    if (operand.present()) {
      made.dtype = operand.dtype;
      made.low = isLow(operand.dtype);
      const Dims all = padded(operand.dims, rank), strides = rowMajorStrides(all);
      for (std::size_t a = 0; a <= cut_.axis; ++a)
        made.steps.push_back(all[a] == 1 ? 0 : strides[a] * (a == cut_.axis ? cut_.rows : 1));
      made.dims = all;
      std::fill_n(made.dims.begin(), cut_.axis, 1);
      made.restDims = made.dims;
      if (all[cut_.axis] != 1) made.dims[cut_.axis] = cut_.rows, made.restDims[cut_.axis] = rest_;
      // Vectors of scales stay vectors: leading axes that the operand does not have are left out again.
      const auto own = static_cast<std::ptrdiff_t>(rank - operand.dims.size());
      made.dims.erase(made.dims.begin(), made.dims.begin() + own);
      made.restDims.erase(made.restDims.begin(), made.restDims.begin() + own);
      if (made.low) {
        made.offset = copies_;
        copies_ += (static_cast<std::size_t>(elementCount(made.dims)) * sizeof(float) + 63) / 64 * 64;
      }
    }
    operands_.push_back(std::move(made));
  }

  Status makeForm(const KernelSpec& spec, bool rest, const MakeKernel& make, SlabForm& form) {
    const KernelSpec slab = slabSpec(spec, rest);
    SS_ASSIGN(form.kernel, make(slab));
    inner_ = std::max(inner_, form.kernel->workspaceBytes());
    for (std::size_t k = 0; k < operands_.size(); ++k) {
      const SlabOperand& operand = operands_[k];
      const bool isInput = k < inputs_;
      const OperandSpec& seen = isInput ? slab.inputs[k] : slab.outputs[k - inputs_];
      const TensorView view{nullptr, operand.dtype, seen.dims};
      form.given.push_back(view);
      (isInput ? form.inputs : form.outputs).push_back({nullptr, seen.dtype, seen.dims});
      auto& cast = form.casts.emplace_back();
      if (operand.low) {
        SS_ASSIGN(cast,
                  make(castSpec(seen.dims, isInput ? operand.dtype : DType::kF32, isInput ? DType::kF32 : operand.dtype)));
      }
    }
    return {};
  }

  KernelSpec slabSpec(const KernelSpec& spec, bool rest) const {
    KernelSpec slab = widened(spec);
    slab.threads = 1;
    for (std::size_t k = 0; k < operands_.size(); ++k) {
      OperandSpec& operand = k < inputs_ ? slab.inputs[k] : slab.outputs[k - inputs_];
      if (!operand.present()) continue;
      const SlabOperand& cut = operands_[k];
      operand.dims = rest ? cut.restDims : cut.dims;
      if (std::any_of(cut.steps.begin(), cut.steps.end(), [](std::int64_t step) { return step != 0; }))
        operand.constant = {};
    }
    return slab;
  }

  static KernelSpec castSpec(const Dims& dims, DType from, DType to) {
    KernelSpec cast;
    cast.op = "Cast";
    cast.inputs = {{.dtype = from, .dims = dims}};
    cast.outputs = {{.dtype = to, .dims = dims}};
    cast.attrs.set("to", static_cast<std::int64_t>(to));
    return cast;
  }

  Status runPart(const KernelCall& call, int t) {
    Worker& worker = workers_[static_cast<std::size_t>(t)];
    std::byte* own = call.workspace.data() + static_cast<std::size_t>(t) * (copies_ + inner_);
    std::fill(worker.at.begin(), worker.at.end(), -1);
    const std::int64_t first = slabs_ * t / threads_, last = slabs_ * (t + 1) / threads_;
    for (std::int64_t slab = first; slab < last; ++slab) SS_TRY(runSlab(call, worker, own, slab));
    return {};
  }

  Status runSlab(const KernelCall& call, Worker& worker, std::byte* own, std::int64_t slab) {
    SlabForm& form = rest_ > 0 && slab % extents_.back() == extents_.back() - 1 ? worker.rest : worker.whole;
    const auto cast = [&](std::size_t k, const TensorView& from, TensorView& to) {
      return form.casts[k]->run({std::span(&from, 1), std::span(&to, 1), {}, call.random, call.stream, {}});
    };
    for (std::size_t k = 0; k < operands_.size(); ++k) {
      const SlabOperand& operand = operands_[k];
      if (operand.dtype == DType::kUndefined) continue;
      const bool isInput = k < inputs_;
      const std::int64_t at = offsetOf(operand, slab);
      form.given[k].data = static_cast<std::byte*>((isInput ? call.inputs[k] : call.outputs[k - inputs_]).data) +
                           static_cast<std::size_t>(at) * dtypeSize(operand.dtype);
      TensorView& seen = isInput ? form.inputs[k] : form.outputs[k - inputs_];
      seen.data = operand.low ? own + operand.offset : form.given[k].data;
      if (isInput && operand.low && std::exchange(worker.at[k], at) != at) SS_TRY(cast(k, form.given[k], seen));
    }
    SS_TRY(form.kernel->run({form.inputs, form.outputs, std::span(own + copies_, inner_), call.random, call.stream, {}}));
    for (std::size_t o = 0; o < form.outputs.size(); ++o)
      if (operands_[inputs_ + o].low) SS_TRY(cast(inputs_ + o, form.outputs[o], form.given[inputs_ + o]));
    return {};
  }

  std::int64_t offsetOf(const SlabOperand& operand, std::int64_t slab) const {
    std::int64_t at = 0;
    for (std::size_t a = extents_.size(); a-- > 0; slab /= extents_[a]) at += slab % extents_[a] * operand.steps[a];
    return at;
  }

  SlabCut cut_;
  std::size_t inputs_;
  Dims extents_;  // slabs along each cut axis
  std::int64_t slabs_ = 1, rest_ = 0;
  int threads_ = 1;
  std::vector<SlabOperand> operands_;   // inputs first
  std::size_t copies_ = 0, inner_ = 0;  // bytes of one worker
  std::vector<Worker> workers_;
};

}  // namespace

std::optional<SlabCut> slabCutOf(const KernelSpec& spec, IndependentParts parts) {
  if (parts == IndependentParts::kNone || spec.outputs.empty()) return std::nullopt;
  const Dims& y = spec.outputs[0].dims;
  const auto rank = static_cast<std::int64_t>(y.size());
  for (const auto* operands : {&spec.inputs, &spec.outputs})
    for (const OperandSpec& operand : *operands)
      if (operand.dynamic || operand.layout != Layout::kPlain || !broadcastsTo(operand, y)) return std::nullopt;
  for (std::size_t i = 0; i < spec.inputs.size(); ++i)
    if (seesView(spec.domain, spec.op, i, spec.attrs)) return std::nullopt;
  // Outputs are written once: none is repeated along a cut axis.
  std::int64_t limit = rank;
  if (parts == IndependentParts::kRows) {
    const auto axis = normalizeAxis(spec.attrs.integer("axis", -1), rank);
    if (!axis) return std::nullopt;
    limit = *axis;
  }
  if (limit == 0 || elementCount(y) == 0) return std::nullopt;
  std::int64_t axis = 0;
  while (axis + 1 < limit && elementsBehind(y, static_cast<std::size_t>(axis)) > kSlabElements) ++axis;
  const auto at = static_cast<std::size_t>(axis);
  for (const OperandSpec& output : spec.outputs) {
    if (!output.present()) continue;
    const Dims all = padded(output.dims, y.size());
    for (std::size_t a = 0; a <= at; ++a)
      if (all[a] != y[a]) return std::nullopt;
  }
  return SlabCut{at, std::clamp<std::int64_t>(kSlabElements / std::max<std::int64_t>(1, elementsBehind(y, at)), 1, y[at])};
}

Result<std::unique_ptr<Kernel>> makeSlabKernel(const KernelSpec& spec, SlabCut cut, const MakeKernel& make) {
  auto made = std::make_unique<SlabKernel>(spec, cut);
  SS_TRY(made->makeWorkers(spec, make));
  return made;
}

}  // namespace stepscope
