#include "kernels/cpu/loops/broadcast.h"

namespace stepscope::cpu {

Result<Broadcast> Broadcast::of(const KernelSpec& spec, const Dims& out, std::initializer_list<const Dims*> operands) {
  Broadcast b;
  b.elements_ = elementCount(out);
  std::array<std::int64_t, kOperands> stride{1, 1, 1};
  for (const Dims* dims : operands)
    if (dims->size() > out.size()) return notTaken(spec, "an operand of higher rank than the result");
  for (std::size_t back = 1; back <= out.size(); ++back) {
    const std::int64_t extent = out[out.size() - back];
    std::array<std::int64_t, kOperands> step{};
    std::size_t o = 0;
    for (const Dims* dims : operands) {
      const std::int64_t own = back <= dims->size() ? (*dims)[dims->size() - back] : 1;
      if (own != 1 && own != extent) return notTaken(spec, "operands that do not broadcast");
      if (own != 1) step[o] = stride[o];
      stride[o] *= own;
      ++o;
    }
    if (extent == 1) continue;
    bool merges = b.rank_ > 0;
    for (o = 0; merges && o < operands.size(); ++o) merges = step[o] == b.strides_[o][b.rank_ - 1] * b.extents_[b.rank_ - 1];
    if (merges) {
      b.extents_[b.rank_ - 1] *= extent;
      continue;
    }
    if (b.rank_ == kAxes) return notTaken(spec, "too many axes");
    b.extents_[b.rank_] = extent;
    for (o = 0; o < operands.size(); ++o) b.strides_[o][b.rank_] = step[o];
    ++b.rank_;
  }
  if (b.rank_ == 0) {
    b.rank_ = 1;
    b.extents_[0] = 1;
  }
  return b;
}

Result<std::unique_ptr<Kernel>> makePairKernel(const KernelSpec& spec, PairLoop loop) {
  const auto sizes =
      std::array{dtypeSize(spec.inputs[0].dtype), dtypeSize(spec.inputs[1].dtype), dtypeSize(spec.outputs[0].dtype)};
  SS_ASSIGN(const Broadcast broadcast,
            Broadcast::of(spec, spec.outputs[0].dims, {&spec.inputs[0].dims, &spec.inputs[1].dims}));
  return makeBodyKernel("vector loop", [=, threads = spec.threads](const KernelCall& call) {
    const auto *a = input<std::byte>(call, 0), *b = input<std::byte>(call, 1);
    auto* y = output<std::byte>(call, 0);
    parallelElements(broadcast.elements(), threads, [&](std::int64_t begin, std::int64_t end) {
      broadcast.runs(begin, end, [&](const Broadcast::Run& run) {
        loop(a + static_cast<std::size_t>(run.at[0]) * sizes[0], broadcast.step(0),
             b + static_cast<std::size_t>(run.at[1]) * sizes[1], broadcast.step(1),
             y + static_cast<std::size_t>(run.out) * sizes[2], run.count);
      });
    });
  });
}

}  // namespace stepscope::cpu
