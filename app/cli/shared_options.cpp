#include "app/cli/shared_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/build/environment.h"

namespace stepscope::cli {

void SharedOptions::addTo(Command& command, const std::vector<std::string_view>& shown) {
  const std::size_t first = command.options.size();
  for (const OptionInfo& info : optionTable()) {
    // Dotted names have no flag of their own, and a switch takes no value.
    if (info.name.find('.') != std::string_view::npos || info.name == "nesterov" || info.name == "kernels" ||
        info.name == "record")
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

Result<TrainOptions> SharedOptions::apply() const {
  TrainOptions options;
  SS_TRY(applyEnvironment(options));
  for (const auto& [name, values] : values_)
    for (const std::string& value : values) SS_TRY(applySetting(options, name, value, "command line"));
  if (nesterov_) SS_TRY(applySetting(options, "nesterov", "on", "command line"));
  for (const std::string& assignment : set_) {
    const auto equals = assignment.find('=');
    if (equals == std::string::npos)
      return invalid(fmt::format("option 'set': found '{}'; expected NAME=VALUE", assignment));
    SS_TRY(applySetting(options, assignment.substr(0, equals), assignment.substr(equals + 1), "command line"));
  }
  SS_TRY(checkOptions(options));
  if (resume && initFrom.empty()) return invalid("option 'resume': no file; expected --init-from FILE.safetensors");
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
      return invalid(fmt::format("option 'fetch': found '{}'; expected VALUE=FILE.npy", item));
    fetches.emplace_back(item.substr(0, equals), item.substr(equals + 1));
  }
  return fetches;
}

}  // namespace stepscope::cli
