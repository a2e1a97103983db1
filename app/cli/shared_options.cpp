#include "app/cli/shared_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/plugin/guard.h"
#include "engine/plugin/plugin_registry.h"

namespace stepscope::cli {

SharedOptions::SharedOptions() = default;
SharedOptions::~SharedOptions() = default;

const std::vector<OptionInfo>& SharedOptions::table() const { return registry_ ? registry_->options() : optionTable(); }

void SharedOptions::addTo(Command& command, const std::vector<std::string_view>& shown) {
  const std::size_t first = command.options.size();
  for (const Option& option : command.options)
    if (option.names == "--json") json_ = std::get<bool*>(option.target);
  for (const OptionInfo& info : optionTable()) {
    // Dotted names have no flag of their own, and a switch takes no value.
    if (info.name.find('.') != std::string_view::npos || info.name == "nesterov" || info.name == "kernels" ||
        info.name == "record")
      continue;
    // What the command itself has under that name means something else there.
    if (std::any_of(command.options.begin(), command.options.begin() + static_cast<std::ptrdiff_t>(first),
                    [&](const Option& own) { return own.names == "--" + std::string(info.name); }))
      continue;
    std::string doc(info.doc);
    if (!info.choices.empty()) {
      doc += " (";
      // A choice that holds a comma would read as two.
      const bool lists = std::any_of(info.choices.begin(), info.choices.end(),
                                     [](std::string_view choice) { return choice.find(',') != std::string_view::npos; });
      bool first = true;
      for (const std::string_view choice : info.choices) {
        if (choice.empty()) continue;
        doc += (first ? "" : lists ? " | " : ", ") + std::string(choice);
        first = false;
      }
      doc += ")";
    }
    if (!info.defaultValue.empty()) doc += fmt::format(" [{}]", info.defaultValue);
    auto& [name, values] = values_.emplace_back(std::string(info.name), std::vector<std::string>{});
    Option option{"--" + name, &values, doc};
    for (const std::string_view choice : info.choices)
      if (!choice.empty()) option.choices.emplace_back(choice);
    command.options.push_back(std::move(option));
  }
  command.options.push_back({"--nesterov", &nesterov_, "Nesterov momentum of sgd"});
  command.options.push_back({"--set", &set_, "NAME=VALUE: any option of `stepscope options`"});
  command.options.push_back({"--init-from", &initFrom, "parameters from a .safetensors file", "FILE"});
  command.options.push_back(
      {"--map-weights", &mapWeights,
       "map weights that lie in files beside the model instead of copying them: what is not trained stays in the "
       "file cache; the files must stay as they are"});
  command.options.push_back({"--resume", &resume, "with --init-from: optimizer state and step number too"});
  for (std::size_t i = first; i < command.options.size() && !shown.empty(); ++i)
    command.options[i].hidden = std::find(shown.begin(), shown.end(), command.options[i].names) == shown.end();
}

namespace {

bool isPluginOption(std::string_view name) { return name == "plugin" || name == "plugin.path" || name == "plugin.check"; }

}  // namespace

// --plugin may be given several times; of --set plugin=… the last one counts, as of any option.
Result<PluginWish> SharedOptions::wish() const {
  std::map<std::string, std::string> settings;
  for (const auto& [name, values] : values_)
    for (const std::string& value : values)
      if (name == "plugin") settings[name] += (settings[name].empty() ? "" : ":") + value;
  for (const std::string& assignment : set_)
    if (const auto equals = assignment.find('=');
        equals != std::string::npos && isPluginOption(assignment.substr(0, equals)))
      settings[assignment.substr(0, equals)] = assignment.substr(equals + 1);
  return pluginWish(settings, "command line");
}

Result<TrainOptions> SharedOptions::apply() const {
  SS_ASSIGN(const PluginWish plugins, wish());
  if (!plugins.files.empty()) tellPluginCrashes(kFailed, json_ != nullptr && *json_);
  SS_ASSIGN(registry_, registryWith(plugins));
  TrainOptions options;
  const auto set = [&](const std::string& name, const std::string& value) {
    return applySetting(options, name, value, "command line", table());
  };
  SS_TRY(applyEnvironment(options, plugins, table()));
  for (const auto& [name, values] : values_)
    for (const std::string& value : values)
      if (!isPluginOption(name)) SS_TRY(set(name, value));
  if (nesterov_) SS_TRY(set("nesterov", "on"));
  for (const std::string& assignment : set_) {
    const auto equals = assignment.find('=');
    if (equals == std::string::npos) return invalidOption("set", fmt::format("found '{}'; expected NAME=VALUE", assignment));
    const std::string name = assignment.substr(0, equals);
    if (!isPluginOption(name)) SS_TRY(set(name, assignment.substr(equals + 1)));
  }
  SS_TRY(checkOptions(options));
  options.stepsAreAll = true;
  if (resume && options.startStep > 0)
    return invalidOption("start-step", fmt::format("found {} with --resume, which begins at the step of the file; "
                                                   "expected one of the two",
                                                   options.startStep));
  if (resume && initFrom.empty()) return invalidOption("resume", "no file; expected --init-from FILE.safetensors");
  return options;
}

std::optional<int> usageError(const SharedOptions& shared, const std::vector<std::string>& fetches) {
  Status status;
  if (const auto options = shared.apply(); !options)
    status = tl::make_unexpected(options.error());
  else if (const auto parsed = parseFetches(fetches); !parsed)
    status = tl::make_unexpected(parsed.error());
  if (status) return std::nullopt;
  const int code = report(status.error());
  return status.error().code == ErrorCode::kInvalidArgument ? kUsage : code;
}

Result<std::vector<std::pair<std::string, std::string>>> parseFetches(const std::vector<std::string>& items) {
  std::vector<std::pair<std::string, std::string>> fetches;
  for (const std::string& item : items) {
    const auto equals = item.rfind('=');
    if (equals == std::string::npos || equals == 0)
      return invalidOption("fetch", fmt::format("found '{}'; expected VALUE=FILE.npy", item));
    fetches.emplace_back(item.substr(0, equals), item.substr(equals + 1));
  }
  return fetches;
}

}  // namespace stepscope::cli
