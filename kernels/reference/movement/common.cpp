#include "kernels/reference/movement/common.h"

namespace stepscope::reference {
namespace {

class AccumulatingKernel final : public Kernel {
 public:
  AccumulatingKernel(KernelSpec spec, ReferenceFunction function) : spec_(std::move(spec)), function_(function) {}
  std::size_t workspaceBytes() const override {
    if (spec_.outputs.empty()) return 0;
    const OperandSpec& y = spec_.outputs[0];
    if (!isLow(y.dtype)) return 0;
    return static_cast<std::size_t>(elementCount(y.dims)) * sizeof(float);
  }
  Status run(const KernelCall& call) override { return function_(spec_, call); }
  std::string implementation() const override { return "reference"; }
  Determinism determinism() const override { return Determinism::oneThread(); }

 private:
  KernelSpec spec_;
  ReferenceFunction function_;
};

}  // namespace

tl::unexpected<Error> kernelError(const KernelSpec& spec, std::string message) {
  return invalid((spec.domain.empty() ? spec.op : spec.domain + "." + spec.op) + ": " + std::move(message));
}

Status checkRank(const KernelSpec& spec, std::size_t rank) {
  if (rank <= kMaxRank) return {};
  return kernelError(spec, "rank " + std::to_string(rank) + "; expected at most " + std::to_string(kMaxRank));
}

Status checkIndexType(const KernelSpec& spec, const TensorView& indices) {
  if (indices.dtype == DType::kI32 || indices.dtype == DType::kI64) return {};
  return kernelError(spec, "indices of type " + std::string(dtypeName(indices.dtype)) + "; expected int32 or int64");
}

tl::unexpected<Error> indexError(const KernelSpec& spec, std::int64_t value, std::int64_t position, std::int64_t extent) {
  return kernelError(
      spec, "index " + std::to_string(value) + " at position " + std::to_string(position) + " out of range; valid " +
                (extent == 0 ? "none, the axis is empty" : std::to_string(-extent) + ".." + std::to_string(extent - 1)));
}

Status checkOutput(const KernelSpec& spec, const KernelCall& call, std::size_t i, const std::int64_t* dims,
                   std::size_t rank) {
  const Dims& planned = call.outputs[i].dims;
  if (planned.size() == rank && std::equal(planned.begin(), planned.end(), dims)) return {};
  return kernelError(spec, "contents at run time give shape " + dimsText(std::span(dims, rank)) + "; expected " +
                               dimsText(planned) + " as it was planned");
}

Status prepareOutput(const KernelSpec& spec, const KernelCall& call, std::size_t i, Dims dims) {
  if (i < spec.outputs.size() && spec.outputs[i].dynamic && call.allocate) return call.allocate(i, std::move(dims));
  return checkOutput(spec, call, i, dims.data(), dims.size());
}

Extents stridesOf(const Dims& dims) {
  Extents strides{};
  std::int64_t stride = 1;
  for (std::size_t a = std::min(dims.size(), kMaxRank); a-- > 0;) {
    strides[a] = stride;
    stride *= dims[a];
  }
  return strides;
}

std::int64_t product(const Dims& dims, std::size_t begin, std::size_t end) {
  std::int64_t count = 1;
  for (std::size_t a = begin; a < end; ++a) count *= dims[a];
  return count;
}

std::unique_ptr<Kernel> makeAccumulatingKernel(const KernelSpec& spec, ReferenceFunction function) {
  return std::make_unique<AccumulatingKernel>(spec, function);
}

}  // namespace stepscope::reference
