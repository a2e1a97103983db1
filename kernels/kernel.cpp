#include "kernels/kernel.h"

namespace stepscope {
namespace {

class FunctionKernel final : public Kernel {
 public:
  FunctionKernel(KernelSpec spec, ReferenceFunction function, std::string implementation, Determinism determinism)
      : spec_(std::move(spec)),
        function_(function),
        implementation_(std::move(implementation)),
        determinism_(std::move(determinism)) {}
  Status run(const KernelCall& call) override { return function_(spec_, call); }
  bool keepsNothing() const override { return true; }
  std::string implementation() const override { return implementation_; }
  Determinism determinism() const override { return determinism_; }

 private:
  KernelSpec spec_;
  ReferenceFunction function_;
  std::string implementation_;
  Determinism determinism_;
};

}  // namespace

std::unique_ptr<Kernel> makeFunctionKernel(const KernelSpec& spec, ReferenceFunction function, std::string implementation,
                                           Determinism determinism) {
  return std::make_unique<FunctionKernel>(spec, function, std::move(implementation), std::move(determinism));
}

}  // namespace stepscope
