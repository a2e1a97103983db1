#include "engine/ops/elementwise/rank_messages.h"

#include <fmt/format.h>

namespace stepscope::ops {

Result<MessageEnds> messageEnds(const ShapeContext& c) {
  const Attributes& attrs = c.attrs();
  const MessageEnds ends{attrs.integer("from", -1), attrs.integer("to", -1), attrs.integer("tag", 0)};
  if (ends.from < 0 || ends.to < 0)
    return c.error(fmt::format("from rank {} to rank {}; expected attributes from and to, each the number of a rank",
                               ends.from, ends.to));
  return ends;
}

Status checkRoot(const ShapeContext& c) {
  const std::int64_t root = c.attrs().integer("root", 0);
  if (root < 0) return c.error(fmt::format("attribute root is {}; expected the number of a rank", root));
  return {};
}

Status movedLikeInput0(ShapeContext& c) {
  if (c.inputDType(0) == DType::kString) return c.error("string; expected numbers or bool, which ranks can send");
  c.setOutput(0, c.inputDType(0), c.inputShape(0));
  return {};
}

}  // namespace stepscope::ops
