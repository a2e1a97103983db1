// Attributes of nodes as plugins see them, and the other way round.
#pragma once

#include <deque>
#include <span>
#include <string_view>

#include "kernels/attributes.h"
#include "plugins/abi/stepscope_plugin.h"

namespace stepscope {

// Keeps what it hands out until it is destroyed; contents stay those of `attrs`, which outlive it.
class AttributeViews {
 public:
  explicit AttributeViews(std::span<const ssp_attr_info> schema = {}) : schema_(schema) {}
  // The attribute of the node, else the fallback of the schema, else nullptr. nullptr also for kinds that the ABI does not
  // know (tensors).
  const ssp_attr* find(const Attributes& attrs, const char* name);

 private:
  std::span<const ssp_attr_info> schema_;
  std::deque<ssp_attr> views_;
};

// Errors (kCorrupt, without a label): a size, kind or pointer that the ABI does not allow, a name that is there twice.
Result<Attributes> attributesOf(const ssp_attr* attrs, std::uint32_t count);

// Whether a node of an op may have these. Empty when it may; else what is wrong: "attribute 'epsilon' is a string; expected
// a float".
std::string attributeProblem(std::span<const ssp_attr_info> schema, const Attributes& attrs);

std::string_view attributeKindName(std::int32_t kind);  // "int" …; "" for none of the ABI

}  // namespace stepscope
