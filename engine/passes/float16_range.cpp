#include "engine/passes/float16_range.h"

#include <fmt/format.h>

#include <cmath>

#include "engine/passes/infer.h"

namespace stepscope {

void tellOfOverflow(const Graph& graph, PassContext& context, const Node& node, ValueId in, DType wanted,
                    std::string_view hint) {
  if (wanted != DType::kF16 || !in) return;
  const Value& value = graph.value(in);
  constexpr std::int64_t kMost = 1 << 16;
  Result<Tensor> read = Tensor();
  if (value.data && value.data.elements() <= kMost) read = value.data.read();
  const Tensor* contents = value.data ? (read ? &*read : nullptr) : context.inference.constant(in);
  if (!contents || !isFloating(contents->dtype())) return;
  constexpr double kLargest = 65504;
  if (contents->elements() > kMost) return;
  for (std::int64_t i = 0; i < contents->elements(); ++i) {
    const double element = elementAsDouble(contents->view(), i);
    if (!std::isfinite(element) || std::abs(element) <= kLargest) continue;
    context.warn(fmt::format("{}: '{}' has {:g}, which is infinite in float16 (largest {:g}); hint: {}", node.label(),
                             value.name, element, kLargest, hint));
    return;
  }
}

}  // namespace stepscope
