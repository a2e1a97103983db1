// Alerts as they are made: of no step, node, value or instruction until somebody says of which.
#pragma once

#include <string>
#include <utility>

#include "engine/snapshot/run.pb.h"

namespace stepscope {

inline snapshot::Alert makeAlert(snapshot::Alert::Severity severity, std::string code, std::string message = {}) {
  snapshot::Alert alert;
  alert.set_severity(severity);
  alert.set_code(std::move(code));
  alert.set_message(std::move(message));
  alert.set_step(-1);
  alert.set_node(-1);
  alert.set_value(-1);
  alert.set_instruction(-1);
  return alert;
}

}  // namespace stepscope
