#include "app/cli/manual.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "app/version.h"

namespace stepscope::cli {
namespace {

bool isFlag(const Option& option) { return option.names.starts_with('-'); }
bool takesValue(const Option& option) { return !std::holds_alternative<bool*>(option.target); }

std::vector<std::string> namesOf(const Option& option) {
  std::vector<std::string> names;
  for (std::size_t begin = 0; begin <= option.names.size();) {
    const std::size_t end = std::min(option.names.find(',', begin), option.names.size());
    names.push_back(option.names.substr(begin, end - begin));
    begin = end + 1;
  }
  return names;
}

// A dash is one that can be copied, a backslash is none of man's, what is not ASCII is named, and a line does not begin with
// a request.
std::string roff(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0xc0) {
      const int more = byte >= 0xf0 ? 3 : byte >= 0xe0 ? 2 : 1;
      unsigned value = byte & (0x3fu >> more);
      for (int k = 0; k < more && i + 1 < text.size(); ++k)
        value = value << 6 | (static_cast<unsigned char>(text[++i]) & 0x3fu);
      out += fmt::format("\\[u{:04X}]", value);
    } else if (c == '-') {
      out += "\\-";
    } else if (c == '\\') {
      out += "\\e";
    } else if (out.empty() && (c == '.' || c == '\'')) {
      out += std::string("\\&") + c;
    } else {
      out += c;
    }
  }
  return out;
}

// In single quotes of a shell.
std::string inQuotes(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// For _arguments of zsh, where brackets and colons mean something.
std::string zshText(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

// The table of `stepscope options`, group after group in the order of their first option.
std::string settingsText(const std::vector<OptionInfo>& settings) {
  std::vector<std::string_view> groups;
  for (const OptionInfo& info : settings)
    if (std::find(groups.begin(), groups.end(), info.group) == groups.end()) groups.push_back(info.group);
  std::string out = ".SH SETTINGS\nWhat \\fB\\-\\-set\\fR \\fINAME\\fR=\\fIVALUE\\fR takes.\n";
  for (const std::string_view group : groups) {
    out += fmt::format(".SS \"{}\"\n", roff(std::string(group)));
    for (const OptionInfo& info : settings) {
      if (info.group != group) continue;
      const std::string choices = info.choices.empty() ? "" : fmt::format(" ({})", fmt::join(info.choices, ", "));
      const std::string byDefault = info.defaultValue.empty() ? "" : fmt::format(" [{}]", info.defaultValue);
      out += fmt::format(".TP\n\\fB{}\\fR\n{}\n", roff(std::string(info.name)),
                         roff(std::string(info.doc) + choices + byDefault));
    }
  }
  return out;
}

std::string wordsOf(const auto& words) { return inQuotes(fmt::format("{}", fmt::join(words, " "))); }

std::string zshValues(const Option& option) {
  return option.choices.empty() ? "_files" : fmt::format("({})", fmt::join(option.choices, " "));
}

void options(const Command& command, std::string& out) {
  for (const Option& option : command.options) {
    if (option.hidden || !isFlag(option)) continue;
    std::string names;
    for (const std::string& name : namesOf(option))
      names += fmt::format("{}\\fB{}\\fR", names.empty() ? "" : ", ", roff(name));
    if (takesValue(option)) names += fmt::format(" \\fI{}\\fR", option.type.empty() ? "VALUE" : roff(option.type));
    out += fmt::format(".TP\n{}\n{}\n", names, roff(option.help));
  }
}

}  // namespace

std::string manPage(const std::vector<Command>& commands, const std::vector<OptionInfo>& settings) {
  std::string out = fmt::format(
      ".TH STEPSCOPE 1 \"\" \"stepscope {}\" \"User Commands\"\n.SH NAME\nstepscope \\- neural\\-network training, opened "
      "up\n"
      ".SH SYNOPSIS\n\\fBstepscope\\fR \\fICOMMAND\\fR [\\fIARGUMENTS\\fR]\n.SH DESCRIPTION\nBuilds the training step of an "
      "ONNX "
      "model, runs it, records it in a project file and reports it. \\fBstepscope open\\fR opens the window, "
      "\\fBstepscope\\-workbench\\fR(1).\n.SH COMMANDS\n",
      roff(versionText()));
  for (const Command& command : commands) {
    out += fmt::format(".SS \"stepscope {}\"\n{}\n", roff(command.name), roff(command.help));
    for (const Option& option : command.options)
      if (!option.hidden && !isFlag(option))
        out += fmt::format(".TP\n\\fI{}\\fR\n{}\n", roff(option.names), roff(option.help));
    options(command, out);
  }
  return out + settingsText(settings) +
         ".SH EXIT STATUS\n0 success, 1 the work failed, 2 wrong usage.\n.SH OUTPUT FOR PROGRAMS\nWith \\fB\\-\\-json\\fR "
         "every "
         "command prints one object per line with the key \\fBevent\\fR, the last one \\fBdone\\fR or \\fBerror\\fR.\n"
         ".SH ENVIRONMENT\n\\fBSTEPSCOPE_WORKER\\fR names another worker program for the window.\n.SH SEE ALSO\n"
         "\\fBstepscope\\-workbench\\fR(1)\n";
}

std::string bashCompletion(const std::vector<Command>& commands, const std::vector<OptionInfo>& settings) {
  std::string names, cases, values, arguments, settingNames, settingValues;
  for (const Command& command : commands) {
    names += fmt::format("{}{}", names.empty() ? "" : " ", command.name);
    std::string flags = "--help";
    for (const Option& option : command.options) {
      if (!isFlag(option) && !option.choices.empty())
        arguments += fmt::format("    {}) choices={} ;;\n", command.name, wordsOf(option.choices));
      if (option.hidden || !isFlag(option)) continue;
      for (const std::string& name : namesOf(option)) flags += ' ' + name;
      if (!option.choices.empty())
        values += fmt::format("    {}:{}) COMPREPLY=($(compgen -W {} -- \"$word\")); return ;;\n", command.name,
                              namesOf(option).back(), wordsOf(option.choices));
    }
    cases += fmt::format("    {}) flags={} ;;\n", command.name, inQuotes(flags));
  }
  for (const OptionInfo& info : settings) {
    settingNames += fmt::format("{}{}=", settingNames.empty() ? "" : " ", info.name);
    if (!info.choices.empty()) settingValues += fmt::format("      {}) choices={} ;;\n", info.name, wordsOf(info.choices));
  }
  return fmt::format(R"(# Completion of stepscope for bash; made by `stepscope manual bash`.
_stepscope() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} command=${{COMP_WORDS[1]}} flags= choices= name=
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W {} -- "$word"))
    return
  fi
  case "$command:$before" in
{}  esac
  if [ "$before" = --set ]; then
    COMPREPLY=($(compgen -W {} -- "$word"))
    compopt -o nospace 2> /dev/null
    return
  fi
  # bash takes NAME=VALUE apart at the sign.
  if [ "$word" = = ] && [ "${{COMP_WORDS[COMP_CWORD-2]}}" = --set ]; then
    name=$before word=
  elif [ "$before" = = ] && [ "${{COMP_WORDS[COMP_CWORD-3]}}" = --set ]; then
    name=${{COMP_WORDS[COMP_CWORD-2]}}
  fi
  if [ -n "$name" ]; then
    case "$name" in
{}    esac
    COMPREPLY=($(compgen -W "$choices" -- "$word"))
    return
  fi
  if [ "$COMP_CWORD" -eq 2 ]; then
    case "$command" in
{}    esac
    if [ -n "$choices" ]; then
      COMPREPLY=($(compgen -W "$choices" -- "$word"))
      return
    fi
  fi
  case "$command" in
{}  esac
  case "$word" in
    -*) COMPREPLY=($(compgen -W "$flags" -- "$word")) ;;
    *) COMPREPLY=($(compgen -f -- "$word")) ;;
  esac
}}
complete -o filenames -F _stepscope stepscope
)",
                     inQuotes(names + " --help --version"), values, inQuotes(settingNames), settingValues, arguments, cases);
}

std::string zshCompletion(const std::vector<Command>& commands, const std::vector<OptionInfo>& settings) {
  std::string names, cases, settingNames;
  for (const OptionInfo& info : settings) settingNames += fmt::format("{}{}=", settingNames.empty() ? "" : " ", info.name);
  for (const Command& command : commands) {
    names += fmt::format("    {}\n", inQuotes(command.name + ':' + zshText(command.help)));
    cases += fmt::format("    {}) _arguments", command.name);
    for (const Option& option : command.options) {
      if (option.hidden) continue;
      if (!isFlag(option)) {
        cases += fmt::format(" {}", inQuotes(fmt::format(":{}:{}", zshText(option.names), zshValues(option))));
        continue;
      }
      for (const std::string& name : namesOf(option)) {
        std::string value;
        if (takesValue(option)) value = ":value:" + (name == "--set" ? '(' + settingNames + ')' : zshValues(option));
        const char* const often = std::holds_alternative<std::vector<std::string>*>(option.target) ? "*" : "";
        cases += fmt::format(" \\\n      {}", inQuotes(fmt::format("{}{}[{}]{}", often, name, zshText(option.help), value)));
      }
    }
    cases += " ;;\n";
  }
  return fmt::format(R"(#compdef stepscope
# Completion of stepscope for zsh; made by `stepscope manual zsh`.
_stepscope() {{
  local -a commands
  commands=(
{}  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  local command=$words[2]
  shift words
  (( CURRENT-- ))
  case $command in
{}  esac
}}
_stepscope "$@"
)",
                     names, cases);
}

}  // namespace stepscope::cli
