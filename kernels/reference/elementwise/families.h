// The families of elementwise reference kernels; kernels.cpp joins them. One line per op in the list of its family.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "kernels/reference/kernel_list.h"

namespace stepscope::reference {

// The factory for a plain function that reads the first kInputs inputs and writes output 0: refuses a node that leaves one
// out.
template <std::size_t kInputs, ReferenceFunction kFunction>
Result<std::unique_ptr<Kernel>> readingAs(const KernelSpec& spec, Determinism determinism) {
  for (std::size_t i = 0; i < kInputs; ++i)
    if (!spec.inputPresent(i)) return invalid(spec.op + ": input " + std::to_string(i) + " is absent; it is required");
  if (!spec.outputPresent(0)) return invalid(spec.op + ": output 0 is absent; it is required");
  return makeFunctionKernel(spec, kFunction, "reference", std::move(determinism));
}
template <std::size_t kInputs, ReferenceFunction kFunction>
Result<std::unique_ptr<Kernel>> reading(const KernelSpec& spec) {
  return readingAs<kInputs, kFunction>(spec, Determinism::oneThread());
}
// The same for one that draws numbers with the key of the call.
template <std::size_t kInputs, ReferenceFunction kFunction>
Result<std::unique_ptr<Kernel>> drawing(const KernelSpec& spec) {
  return readingAs<kInputs, kFunction>(spec, Determinism::keyedRandom());
}

#define SS_FAMILY(kernels, file) std::span<const KernelEntry> kernels();
#include "kernels/reference/elementwise/kernels.inc"
#undef SS_FAMILY

}  // namespace stepscope::reference
