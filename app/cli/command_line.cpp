// The only file that sees CLI11: a command that included it would take seven times as long to compile.
#include <CLI/CLI.hpp>
#include <sstream>

#include "app/cli/command.h"
#include "app/cli/terminal.h"
#include "app/version.h"

namespace stepscope::cli {
namespace {

void declare(CLI::App& app, const Option& option) {
  if (bool* const* on = std::get_if<bool*>(&option.target)) {
    CLI::Option* flag = app.add_flag(option.names, **on, option.help);
    if (option.hidden) flag->group("");
    return;
  }
  CLI::Option* added = nullptr;
  if (auto* const* text = std::get_if<std::string*>(&option.target)) {
    added = app.add_option(option.names, **text, option.help);
  } else if (auto* const* number = std::get_if<double*>(&option.target)) {
    added = app.add_option(option.names, **number, option.help);
  } else if (auto* const* count = std::get_if<std::int64_t*>(&option.target)) {
    added = app.add_option(option.names, **count, option.help);
  } else {
    added = app.add_option(option.names, *std::get<std::vector<std::string>*>(option.target), option.help);
    added->type_name("")->expected(1)->take_all();
  }
  if (!option.type.empty()) added->type_name(option.type);
  added->required(option.required);
  if (option.hidden) added->group("");
}

}  // namespace

int runCommandLine(int argc, char** argv, const std::vector<Command>& commands) {
  CLI::App app{"Stepscope: neural-network training, opened up", "stepscope"};
  app.set_version_flag("--version", std::string(versionText()));
  app.require_subcommand(0, 1);
  app.failure_message(CLI::FailureMessage::simple);
  std::vector<const CLI::App*> parsers;
  for (const Command& command : commands) {
    CLI::App* parser = app.add_subcommand(command.name, command.help);
    for (const Option& option : command.options) declare(*parser, option);
    parsers.push_back(parser);
  }
  if (argc <= 1) {
    say("{}", Ready{app.help()});
    return kSuccess;
  }
  for (int i = 1; i < argc && std::string_view(argv[i]) != "--"; ++i)
    if (std::string_view(argv[i]) == "--json") speakJson();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {  // --help, --version
      std::ostringstream out, errors;
      const int code = app.exit(error, out, errors);
      say("{}", Ready{out.str()});
      return code;
    }
    return tellError(error.what()), kUsage;
  }
  for (std::size_t i = 0; i < commands.size(); ++i)
    if (parsers[i]->parsed()) {
      const int code = commands[i].run();
      endJson(code);
      return code;
    }
  return kUsage;
}

}  // namespace stepscope::cli
