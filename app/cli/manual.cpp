#include "app/cli/manual.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

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

std::string manPage(const std::vector<Command>& commands) {
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
  return out +
         ".SH EXIT STATUS\n0 success, 1 the work failed, 2 wrong usage.\n.SH OUTPUT FOR PROGRAMS\nWith \\fB\\-\\-json\\fR "
         "every "
         "command prints one object per line with the key \\fBevent\\fR, the last one \\fBdone\\fR or \\fBerror\\fR.\n"
         ".SH ENVIRONMENT\n\\fBSTEPSCOPE_WORKER\\fR names another worker program for the window.\n.SH SEE ALSO\n"
         "\\fBstepscope\\-workbench\\fR(1)\n";
}

std::string bashCompletion(const std::vector<Command>& commands) {
  std::string names, cases, values;
  for (const Command& command : commands) {
    names += fmt::format("{}{}", names.empty() ? "" : " ", command.name);
    std::string flags = "--help";
    for (const Option& option : command.options) {
      if (option.hidden || !isFlag(option)) continue;
      for (const std::string& name : namesOf(option)) flags += ' ' + name;
      if (!option.choices.empty())
        values += fmt::format("    {}:{}) COMPREPLY=($(compgen -W {} -- \"$word\")); return ;;\n", command.name,
                              namesOf(option).back(), inQuotes(fmt::format("{}", fmt::join(option.choices, " "))));
    }
    cases += fmt::format("    {}) flags={} ;;\n", command.name, inQuotes(flags));
  }
  return fmt::format(R"(# Completion of stepscope for bash; made by `stepscope manual bash`.
_stepscope() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} command=${{COMP_WORDS[1]}} flags=
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W {} -- "$word"))
    return
  fi
  case "$command:$before" in
{}  esac
  case "$command" in
{}  esac
  case "$word" in
    -*) COMPREPLY=($(compgen -W "$flags" -- "$word")) ;;
    *) COMPREPLY=($(compgen -f -- "$word")) ;;
  esac
}}
complete -o filenames -F _stepscope stepscope
)",
                     inQuotes(names + " --help --version"), values, cases);
}

std::string zshCompletion(const std::vector<Command>& commands) {
  std::string names, cases;
  for (const Command& command : commands) {
    names += fmt::format("    {}\n", inQuotes(command.name + ':' + zshText(command.help)));
    cases += fmt::format("    {}) _arguments", command.name);
    for (const Option& option : command.options) {
      if (option.hidden) continue;
      if (!isFlag(option)) {
        cases += fmt::format(" {}", inQuotes(fmt::format(":{}:_files", zshText(option.names))));
        continue;
      }
      for (const std::string& name : namesOf(option)) {
        std::string value;
        if (takesValue(option))
          value = option.choices.empty() ? ":value:_files" : fmt::format(":value:({})", fmt::join(option.choices, " "));
        cases += fmt::format(" \\\n      {}", inQuotes(fmt::format("{}[{}]{}", name, zshText(option.help), value)));
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
