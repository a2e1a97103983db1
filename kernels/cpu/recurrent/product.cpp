#include "kernels/cpu/recurrent/product.h"

#include "kernels/cpu/linear/matmul.h"

namespace stepscope::cpu {

Result<StepsProduct> StepsProduct::make(const Form& form, int threads) {
  MatMulParams params;
  SS_ASSIGN(params.shape, matMulShape(form.a, form.b, {form.transA, form.transB, {}, {}, {}}));
  params.beta = form.bias ? 1.0F : 0.0F;
  params.cColumn = 1;
  params.addend = form.addend;
  params.threads = threads;
  StepsProduct result;
  SS_ASSIGN(result.product_, makeProduct(params));
  const auto view = [](const Dims& dims) { return TensorView{nullptr, DType::kF32, dims}; };
  result.in_ = {view(form.a), view(form.b), view({form.y[1]}), view(form.y)};
  result.out_ = {view(form.y)};
  return result;
}

Status StepsProduct::run(const float* a, const float* b, const float* bias, float* y, std::byte* workspace) {
  in_[0].data = const_cast<float*>(a);
  in_[1].data = const_cast<float*>(b);
  in_[2].data = const_cast<float*>(bias);
  in_[3].data = y;
  out_[0].data = y;
  return product_->run({in_, out_, {workspace, product_->workspaceBytes()}, {}, {}});
}

}  // namespace stepscope::cpu
