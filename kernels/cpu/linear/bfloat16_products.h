// Whether products of bfloat16 are left to the processor's own instructions.
#pragma once

namespace stepscope::cpu {

// False where it has none, and where float32 is clearly faster: an Intel processor whose tiles are hidden, as from many
// virtual machines, takes twice the time for its dot products. Then kernels compute in float32 and round once
// (widened_product.h, converted_kernel.h). Tiles are always taken. Dot products are measured against float32 on one thread
// when the first bfloat16 kernel is made: about 20 ms, once per process. They are left only where float32 needs less than
// 0.8 of their time, so that a neighbour on the machine does not change the answer, and with it the bits, from one run to
// the next. Thread-safe.
bool multipliesBFloat16();

}  // namespace stepscope::cpu
