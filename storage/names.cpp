#include "storage/names.h"

namespace stepscope::storage {

std::string_view phaseName(snapshot::Phase phase) {
  switch (phase) {
    case snapshot::FORWARD: return "forward";
    case snapshot::BACKWARD: return "backward";
    case snapshot::RECOMPUTE: return "recompute";
    case snapshot::OPTIMIZER: return "optimizer";
    default: return "unknown";
  }
}

std::string_view roleName(snapshot::ValueRole role) {
  switch (role) {
    case snapshot::NODE_OUTPUT: return "node_output";
    case snapshot::INPUT: return "input";
    case snapshot::INITIALIZER: return "initializer";
    case snapshot::STATE: return "state";
    case snapshot::CONSTANT: return "constant";
    default: return "unknown";
  }
}

std::string_view bufferClassName(snapshot::BufferClass value) {
  switch (value) {
    case snapshot::CLASS_PARAMETER: return "parameter";
    case snapshot::CLASS_FROZEN: return "frozen";
    case snapshot::CLASS_OPTIMIZER_STATE: return "optimizer_state";
    case snapshot::CLASS_GRADIENT: return "gradient";
    case snapshot::CLASS_ACTIVATION: return "activation";
    case snapshot::CLASS_STASH: return "stash";
    case snapshot::CLASS_BACKWARD: return "backward";
    case snapshot::CLASS_WORKSPACE: return "workspace";
    case snapshot::CLASS_INPUT_DATA: return "input";
    case snapshot::CLASS_CONSTANT_DATA: return "constant";
    case snapshot::CLASS_UPDATE: return "update";
    default: return "unknown";
  }
}

std::string_view severityName(snapshot::Alert::Severity severity) {
  switch (severity) {
    case snapshot::Alert::INFO: return "info";
    case snapshot::Alert::WARNING: return "warning";
    default: return "error";
  }
}

}  // namespace stepscope::storage
