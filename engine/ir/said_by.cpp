#include "engine/ir/said_by.h"

namespace stepscope {

Error saidBy(const Node& node, Error error) {
  std::string& message = error.message;
  for (const std::string& op : {node.op + ": ", node.domain + "." + node.op + ": "})
    if (message.starts_with(op)) message.erase(0, op.size());
  message.insert(0, node.label() + ": ");
  return error;
}

}  // namespace stepscope
