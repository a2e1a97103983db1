#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/cli/output.h"
#include "app/cli/plugin_template.h"
#include "app/cli/terminal.h"
#include "engine/plugin/guard.h"
#include "engine/plugin/plugin_check.h"

namespace stepscope::cli {
namespace {

struct PluginArguments {
  std::string verb, name, folder;
  bool json = false;
};

int checkFile(const PluginArguments& a) {
  tellPluginCrashes(kFailed, a.json);
  PluginWish wish;
  wish.files = {a.name.find('/') == std::string::npos ? "./" + a.name : a.name};
  const auto findings = checkPlugins(std::move(wish));
  if (!findings) return report(findings.error());
  std::vector<std::vector<std::string>> rows;
  std::int64_t failed = 0;
  for (const PluginFinding& finding : *findings) {
    failed += finding.verdict == PluginFinding::Verdict::kFailed ? 1 : 0;
    if (a.json)
      sayJson({{"event", "check"},
               {"op", finding.op},
               {"example", finding.example},
               {"check", finding.check},
               {"verdict", verdictName(finding.verdict)},
               {"detail", finding.detail}});
    rows.push_back({finding.op, std::to_string(finding.example), finding.check, std::string(verdictName(finding.verdict)),
                    finding.detail});
  }
  if (!a.json && rows.empty()) say("plugin '{}': loads; it has no ops to check\n", a.name);
  if (!a.json && !rows.empty()) say("{}", table({"op", "example", "check", "", "found"}, rows, 5));
  if (failed > 0)
    return report({ErrorCode::kCorrupt,
                   fmt::format("plugin '{}': {} of {} checks failed; expected none", a.name, failed, findings->size())});
  if (a.json) sayJson({{"event", "done"}, {"checks", findings->size()}});
  return kSuccess;
}

bool isName(const std::string& name) {
  return !name.empty() && name[0] >= 'a' && name[0] <= 'z' && name.size() <= 64 && name != "plugin" && name != "pass" &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; });
}

std::string named(std::string_view text, const std::string& name) {
  constexpr std::string_view kTemplate = "my_op";
  std::string made;
  for (std::size_t at = 0; at < text.size();)
    if (text.substr(at).starts_with(kTemplate))
      made += name, at += kTemplate.size();
    else
      made += text[at++];
  return made;
}

int makeFolder(const PluginArguments& a) {
  if (!isName(a.name)) {
    tellError(
        fmt::format("plugin '{}': found a name that is taken or not in snake_case; expected one such as my_op", a.name));
    return kUsage;
  }
  const std::filesystem::path folder = a.folder.empty() ? a.name : a.folder;
  std::error_code error;
  if (std::filesystem::exists(folder, error))
    return tellError(fmt::format("plugin '{}': '{}' is there already; expected a new folder", a.name, folder.string()));
  std::filesystem::create_directories(folder, error);
  const std::pair<std::string, std::string> files[] = {{a.name + ".c", named(templateSource(), a.name)},
                                                       {"Makefile", named(templateMakefile(), a.name)},
                                                       {"stepscope_plugin.h", std::string(pluginHeader())}};
  for (const auto& [name, text] : files) {
    std::ofstream file(folder / name, std::ios::binary);
    file << text;
    if (!file.flush())
      return tellError(
          fmt::format("plugin '{}': '{}' cannot be written; expected a folder with room", a.name, (folder / name).string()));
    if (a.json)
      sayJson({{"event", "file"}, {"path", (folder / name).string()}});
    else
      say("{}\n", (folder / name).string());
  }
  if (a.json)
    sayJson({{"event", "done"}});
  else
    say("next: make -C {} check\n", folder.string());
  return kSuccess;
}

}  // namespace

Command pluginCommand() {
  auto a = std::make_shared<PluginArguments>();
  Command command{"plugin",
                  "check FILE: what a plugin's ops compute; new NAME: a folder with one to begin with",
                  {{"VERB", &a->verb, "check or new", {}, true, false, {"check", "new"}},
                   {"NAME", &a->name, "check: the shared library; new: the name, in snake_case", {}, true},
                   {"-o,--output", &a->folder, "new: the folder [NAME]", "DIR"},
                   {"--json", &a->json, "one JSON object per line"}}};
  command.run = [a]() -> int {
    if (a->verb == "check") return checkFile(*a);
    if (a->verb == "new") return makeFolder(*a);
    tellError(fmt::format("plugin: found '{}'; expected check or new", a->verb));
    return kUsage;
  };
  return command;
}

}  // namespace stepscope::cli
