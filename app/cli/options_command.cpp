#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/cli/output.h"
#include "app/cli/setting_json.h"
#include "app/cli/shared_options.h"
#include "app/cli/terminal.h"
#include "engine/passes/attention_pattern.h"

namespace stepscope::cli {
Command optionsCommand() {
  struct Arguments {
    bool json = false, patterns = false;
    SharedOptions shared;
  };
  auto a = std::make_shared<Arguments>();
  Command command{"options",
                  "every option: value, default, who set it, what it does",
                  {{"--json", &a->json, "one JSON object per line"},
                   {"--patterns", &a->patterns, "the forms of attention that pass.fuse_attention looks for, as text"}}};
  a->shared.addTo(command, {"--set", "--plugin"});
  command.run = [a] {
    const auto options = a->shared.apply();
    if (!options) return tellError(options.error().message), kUsage;
    if (a->patterns) {
      if (a->json)
        sayJson({{"event", "patterns"}, {"pass", "fuse_attention"}, {"text", attentionPatternText()}});
      else
        for (std::string_view rest = attentionPatternText();
             !rest.empty();) {  // control characters of a text are shown as such
          const std::size_t end = std::min(rest.find('\n'), rest.size());
          say("{}\n", rest.substr(0, end));
          rest.remove_prefix(std::min(end + 1, rest.size()));
        }
      return kSuccess;
    }
    std::vector<std::vector<std::string>> rows;
    for (const OptionInfo& info : a->shared.table()) {
      const auto origin = options->origins.find(std::string(info.name));
      const std::string value = origin == options->origins.end() ? std::string(info.defaultValue) : origin->second.value;
      const std::string setBy = origin == options->origins.end() ? "default" : origin->second.setBy;
      if (a->json)
        sayJson({{"event", "option"},
                 {"name", info.name},
                 {"value", settingJson(info.name, value, a->shared.table())},
                 {"default", settingJson(info.name, std::string(info.defaultValue), a->shared.table())},
                 {"set_by", setBy},
                 {"doc", info.doc},
                 {"choices", info.choices},
                 {"group", info.group},
                 {"kind", info.kind}});
      rows.push_back({std::string(info.name), value, std::string(info.defaultValue), setBy, std::string(info.doc)});
    }
    if (!a->json) say("{}", table({"option", "value", "default", "set by", "effect"}, rows, 5));
    return kSuccess;
  };
  return command;
}

}  // namespace stepscope::cli
