// What a plugin did wrong while one of its functions ran, and what it said itself. The first of each counts.
#pragma once

#include <fmt/format.h>

#include <string>

#include "engine/plugin/guard.h"
#include "plugins/abi/stepscope_plugin.h"

namespace stepscope {

class Misuse {
 public:
  // Against the contract: "reads input 3 of 2", "an index below 2".
  void note(std::string found, std::string expected) {
    if (found_.empty()) found_ = std::move(found), expected_ = std::move(expected);
  }
  ssp_status fail(const char* message) {
    if (said_.empty()) said_ = message == nullptr || *message == '\0' ? "no reason given" : message;
    return SSP_ERROR;
  }
  bool any() const { return !found_.empty(); }

  // What the function that `label` names came to, whose answer was `status`. `where` stands before what the plugin said:
  // the label of a node, or "".
  Status verdict(const std::string& label, ssp_status status, const std::string& where) const {
    if (!found_.empty()) return againstContract(prefix(where) + label, found_, "expected " + expected_);
    if (status == SSP_OK && said_.empty()) return {};
    if (status != SSP_OK && said_.empty())
      return againstContract(prefix(where) + label, fmt::format("answers {} without fail()", status),
                             "expected SSP_OK, or what fail() returns");
    return invalid(prefix(where) + label + ": " + said_);
  }

 private:
  static std::string prefix(const std::string& where) { return where.empty() ? "" : where + ": "; }
  std::string found_, expected_, said_;
};

}  // namespace stepscope
