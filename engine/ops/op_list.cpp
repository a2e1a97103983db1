#include "engine/ops/op_list.h"

#include <string>
#include <unordered_map>
#include <vector>

namespace stepscope {

std::span<const OpDef* const> allOps() {
  static const std::vector<const OpDef*> all = [] {
    std::vector<const OpDef*> ops;
    for (const auto list : {ops::elementwiseOps(), ops::reductionOps(), ops::movementOps(), ops::linearOps()})
      ops.insert(ops.end(), list.begin(), list.end());
    return ops;
  }();
  return all;
}

const OpDef* findOp(std::string_view domain, std::string_view name) {
  static const std::unordered_map<std::string, const OpDef*> table = [] {
    std::unordered_map<std::string, const OpDef*> ops;
    for (const OpDef* op : allOps()) ops.emplace(std::string(op->domain) + "." + std::string(op->name), op);
    return ops;
  }();
  const auto it = table.find(std::string(domain) + "." + std::string(name));
  return it == table.end() ? nullptr : it->second;
}

}  // namespace stepscope
