#include "engine/build/registry.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/build/plugin_options.h"

namespace stepscope {

const std::shared_ptr<const Registry>& Registry::builtIn() {
  static const std::shared_ptr<const Registry> registry = RegistryBuilder().build();
  return registry;
}

const PassList& Registry::passesOf(std::string_view phase) const {
  const auto list = std::find_if(pipeline_.begin(), pipeline_.end(), [&](const PassList& l) { return l.phase == phase; });
  SS_CHECK(list != pipeline_.end());
  return *list;
}

RegistryBuilder::RegistryBuilder() : registry_(std::make_shared<Registry>()) {
  registry_->operators_ = builtInOperators();
  registry_->pipeline_ = pipeline();
  registry_->options_ = plainOptions();
}

Status RegistryBuilder::addOps(std::span<const OpDef* const> ops) { return registry_->operators_.ops.add(ops); }

Status RegistryBuilder::addKernels(std::string_view device, std::span<const KernelEntry> entries) {
  return registry_->operators_.kernels.add(device, entries);
}

Status RegistryBuilder::addPass(std::string_view phase, const Pass& pass) {
  const auto list = std::find_if(registry_->pipeline_.begin(), registry_->pipeline_.end(),
                                 [&](const PassList& l) { return l.phase == phase; });
  if (list == registry_->pipeline_.end()) {
    std::string phases;
    for (const PassList& l : registry_->pipeline_) phases += (phases.empty() ? "" : ", ") + std::string(l.phase);
    return invalid(fmt::format("pass '{}': found phase '{}'; expected one of {}", pass.name, phase, phases));
  }
  if (std::any_of(list->passes.begin(), list->passes.end(), [&](const Pass& other) { return other.name == pass.name; }))
    return invalid(fmt::format("pass '{}': found a second one of that name in phase '{}'; expected one", pass.name, phase));
  list->passes.push_back(pass);
  return {};
}

Status RegistryBuilder::addOption(const OptionInfo& option) {
  const auto& list = registry_->options_;
  if (std::any_of(list.begin(), list.end(), [&](const OptionInfo& other) { return other.name == option.name; }) ||
      option.name.starts_with("pass."))
    return invalidOption(option.name, "the name is taken; expected another");
  registry_->options_.push_back(option);
  return {};
}

std::shared_ptr<const Registry> RegistryBuilder::build() && {
  Registry& r = *registry_;
  for (const OptionInfo& option : pluginOptions())
    if (std::none_of(r.options_.begin(), r.options_.end(), [&](const OptionInfo& o) { return o.name == option.name; }))
      r.options_.push_back(option);
  for (const PassList& list : r.pipeline_)
    for (const Pass& pass : list.passes) {
      const std::string name = "pass." + std::string(pass.name);
      if (pass.enabled == PassSwitch::kMandatory ||
          std::any_of(r.options_.begin(), r.options_.end(), [&](const OptionInfo& o) { return o.name == name; }))
        continue;
      r.options_.push_back(
          described({r.names_.emplace_back(name), pass.enabled == PassSwitch::kOn ? "on" : "off", pass.doc, {"on", "off"}}));
    }
  return std::move(registry_);
}

}  // namespace stepscope
