#include "kernels/dispatch.h"
#include "kernels/reference/linear/conv_loops.h"
#include "kernels/reference/linear/linear_kernels.h"

namespace stepscope::reference {
namespace {

Status floatsOnly(bool dispatched, const KernelSpec& spec) {
  if (dispatched) return {};
  return unsupported(spec.op + ": dtype " + std::string(dtypeName(spec.inputs[0].dtype)) + "; expected a float");
}

template <typename T>
auto reader(const TensorView& view) {
  return
      [data = static_cast<const T*>(view.data)](std::int64_t i, std::int64_t = 0) { return static_cast<double>(data[i]); };
}

// y (+ bias) where the geometry is that of a convolution from `x` to `y`.
Status forward(const KernelSpec& spec, const ConvGeometry& g, const TensorView& x, const TensorView& w,
               const TensorView* bias, const TensorView& y) {
  return floatsOnly(dispatchFloat(x.dtype,
                                  [&](auto tag) {
                                    using T = decltype(tag);
                                    T* out = static_cast<T*>(y.data);
                                    const T* b = bias ? static_cast<const T*>(bias->data) : nullptr;
                                    convForward(g, reader<T>(x), reader<T>(w),
                                                [&](std::int64_t i, std::int64_t m, double sum) {
                                                  out[i] = static_cast<T>(b ? sum + static_cast<double>(b[m]) : sum);
                                                });
                                  }),
                    spec);
}

Status inputGradient(const KernelSpec& spec, const ConvGeometry& g, const TensorView& dy, const TensorView& w,
                     const TensorView* bias, const TensorView& dx) {
  return floatsOnly(dispatchFloat(dy.dtype,
                                  [&](auto tag) {
                                    using T = decltype(tag);
                                    T* out = static_cast<T*>(dx.data);
                                    const T* b = bias ? static_cast<const T*>(bias->data) : nullptr;
                                    convInputGradient(g, reader<T>(dy), reader<T>(w),
                                                      [&](std::int64_t i, std::int64_t c, double sum) {
                                                        out[i] = static_cast<T>(b ? sum + static_cast<double>(b[c]) : sum);
                                                      });
                                  }),
                    spec);
}

Status weightGradient(const KernelSpec& spec, const ConvGeometry& g, const TensorView& dy, const TensorView& x,
                      const TensorView& dw) {
  return floatsOnly(dispatchFloat(dy.dtype,
                                  [&](auto tag) {
                                    using T = decltype(tag);
                                    T* out = static_cast<T*>(dw.data);
                                    convWeightGradient(g, reader<T>(dy), reader<T>(x),
                                                       [&](std::int64_t i, double sum) { out[i] = static_cast<T>(sum); });
                                  }),
                    spec);
}

Result<const TensorView*> biasOf(const KernelCall& call, std::int64_t channels) {
  if (!call.inputPresent(2)) return nullptr;
  if (call.inputs[2].elements() != channels)
    return invalid("bias of shape " + dimsText(call.inputs[2].dims) + "; expected [" + std::to_string(channels) + "]");
  return &call.inputs[2];
}

}  // namespace

Status conv(const KernelSpec& spec, const KernelCall& call) {
  SS_ASSIGN(const ConvGeometry g, convGeometry(spec.attrs, call.inputs[0].dims, call.inputs[1].dims, call.outputs[0].dims));
  SS_ASSIGN(const TensorView* bias, biasOf(call, g.outChannels));
  return forward(spec, g, call.inputs[0], call.inputs[1], bias, call.outputs[0]);
}

Status convInputGrad(const KernelSpec& spec, const KernelCall& call) {
  SS_ASSIGN(const ConvGeometry g, convGeometry(spec.attrs, call.outputs[0].dims, call.inputs[1].dims, call.inputs[0].dims));
  return inputGradient(spec, g, call.inputs[0], call.inputs[1], nullptr, call.outputs[0]);
}

Status convWeightGrad(const KernelSpec& spec, const KernelCall& call) {
  SS_ASSIGN(const ConvGeometry g, convGeometry(spec.attrs, call.inputs[1].dims, call.outputs[0].dims, call.inputs[0].dims));
  return weightGradient(spec, g, call.inputs[0], call.inputs[1], call.outputs[0]);
}

Status convTranspose(const KernelSpec& spec, const KernelCall& call) {
  SS_ASSIGN(const ConvGeometry g,
            convTransposeGeometry(spec.attrs, call.inputs[0].dims, call.inputs[1].dims, call.outputs[0].dims));
  SS_ASSIGN(const TensorView* bias, biasOf(call, g.inChannels));
  return inputGradient(spec, g, call.inputs[0], call.inputs[1], bias, call.outputs[0]);
}

Status convTransposeInputGrad(const KernelSpec& spec, const KernelCall& call) {
  SS_ASSIGN(const ConvGeometry g,
            convTransposeGeometry(spec.attrs, call.outputs[0].dims, call.inputs[1].dims, call.inputs[0].dims));
  return forward(spec, g, call.inputs[0], call.inputs[1], nullptr, call.outputs[0]);
}

Status convTransposeWeightGrad(const KernelSpec& spec, const KernelCall& call) {
  SS_ASSIGN(const ConvGeometry g,
            convTransposeGeometry(spec.attrs, call.inputs[1].dims, call.outputs[0].dims, call.inputs[0].dims));
  return weightGradient(spec, g, call.inputs[1], call.inputs[0], call.outputs[0]);
}

}  // namespace stepscope::reference
