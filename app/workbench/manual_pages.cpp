// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/manual_pages.h"

#include <map>

#include "app/version.h"
#include "app/workbench/layouts.h"

namespace stepscope {
namespace {

// Values that are known; file names elsewhere.
std::map<QString, QStringList> choices() {
  QStringList layouts;
  for (const ViewLayout& layout : shippedLayouts()) layouts << layout.name;
  return {{QStringLiteral("theme"), {QStringLiteral("light"), QStringLiteral("dark")}}, {QStringLiteral("layout"), layouts}};
}

QString roff(QString text) { return text.replace('\\', QStringLiteral("\\e")).replace('-', QStringLiteral("\\-")); }

QString man() {
  QString out = QStringLiteral(
                    ".TH STEPSCOPE\\-WORKBENCH 1 \"\" \"stepscope %1\" \"User Commands\"\n.SH NAME\n"
                    "stepscope\\-workbench \\- the window of stepscope\n.SH SYNOPSIS\n"
                    "\\fBstepscope\\-workbench\\fR [\\fIOPTIONS\\fR] [\\fIMODEL\\fR|\\fIPROJECT\\fR]\n.SH DESCRIPTION\n"
                    "Opens a model (.onnx) or a recorded project (.stepscope) in the window: graph, instructions, tensors,\n"
                    "memory, times and comparisons of training steps. The worker that computes is \\fBstepscope\\fR(1),\n"
                    "started as a process of its own.\n.SH OPTIONS\n")
                    .arg(roff(QString::fromUtf8(versionText())));
  for (const QCommandLineOption& option : windowOptions())
    out += QStringLiteral(".TP\n\\fB\\-\\-%1\\fR \\fI%2\\fR\n%3\n")
               .arg(roff(option.names().first()), roff(option.valueName()), roff(option.description()));
  return out + QStringLiteral(
                   ".TP\n\\fB\\-\\-help\\fR, \\fB\\-\\-version\\fR\nneed no display\n.SH ENVIRONMENT\n"
                   "\\fBSTEPSCOPE_WORKER\\fR names another worker program, \\fBSTEPSCOPE_SSH\\fR another ssh.\n"
                   ".SH SEE ALSO\n\\fBstepscope\\fR(1)\n");
}

QString bash() {
  QString flags = QStringLiteral("--help --version"), values;
  for (const QCommandLineOption& option : windowOptions()) flags += QStringLiteral(" --") + option.names().first();
  for (const auto& [name, words] : choices())
    values +=
        QStringLiteral("    --%1) COMPREPLY=($(compgen -W '%2' -- \"$word\")); return ;;\n").arg(name, words.join(' '));
  return QStringLiteral(
             "# Completion of stepscope-workbench for bash; made by `stepscope-workbench --manual bash`.\n"
             "_stepscope_workbench() {\n"
             "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
             "  COMPREPLY=()\n"
             "  case \"$before\" in\n%1  esac\n"
             "  case \"$word\" in\n"
             "    -*) COMPREPLY=($(compgen -W '%2' -- \"$word\")) ;;\n"
             "    *) COMPREPLY=($(compgen -f -- \"$word\")) ;;\n"
             "  esac\n"
             "}\n"
             "complete -o filenames -F _stepscope_workbench stepscope-workbench\n")
      .arg(values, flags);
}

QString zsh() {
  QString out = QStringLiteral(
      "#compdef stepscope-workbench\n# Completion of stepscope-workbench for zsh; made by `stepscope-workbench --manual "
      "zsh`.\n_arguments ':path:_files'");
  const auto known = choices();
  for (const QCommandLineOption& option : windowOptions()) {
    const QString name = option.names().first();
    const auto words = known.find(name);
    QString text = option.description();
    for (const char c : {'\\', '[', ']', ':'}) text.replace(QLatin1Char(c), QStringLiteral("\\") + QLatin1Char(c));
    const QString values = words == known.end() ? QStringLiteral("_files") : '(' + words->second.join(' ') + ')';
    out += QStringLiteral(" \\\n  '*--%1[%2]:value:%3'").arg(name, text.replace('\'', QStringLiteral("'\\''")), values);
  }
  return out + '\n';
}

}  // namespace

QList<QCommandLineOption> windowOptions() {
  return {
      {"host", "work with the worker of this machine, through ssh", "host"},
      {"worker", "stepscope on that machine; without it the one that its shell finds", "program"},
      {"attach", "the loop of a running script that has called stepscope.attach()", "pid|socket"},
      {"layout", "Explore, Step, Profile, Memory, Compare, or a saved one", "name"},
      {"theme", "light or dark", "theme"},
      {"screenshot", "open, wait until nothing runs, write a picture of the window, leave", "file.png"},
      {"size", "size of the window, such as 1280x800", "size"},
      {"show", "bring a view to the front, by its title or name; may be repeated", "view"},
      {"steps", "run this many training steps first", "n"},
      {"run-to", "then stop before this instruction of the next step", "n"},
      {"select", "select this instruction", "n"},
      {"set", "any setting of `stepscope train`, such as data=batches.npz or lr=0.1; may be repeated", "name=value"},
  };
}

QString manualPage(const QString& what) {
  return what == u"man" ? man() : what == u"bash" ? bash() : what == u"zsh" ? zsh() : QString();
}

}  // namespace stepscope
