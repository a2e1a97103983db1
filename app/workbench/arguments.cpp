// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/arguments.h"

#include <QCommandLineParser>
#include <cstdio>
#include <string_view>

#include "app/version.h"
#include "app/workbench/manual_pages.h"
#include "app/workbench/view_list.h"

namespace stepscope {
namespace {

constexpr std::string_view kStartPage = "start";  // stands in place of the views

// The id of a view that is named by it or by its title, in any case; empty: there is none.
QString viewNamed(const QString& name) {
  for (const ViewEntry& view : viewList())
    for (const char* known : {view.id, view.title})
      if (view.id != kStartPage && name.compare(QString::fromUtf8(known), Qt::CaseInsensitive) == 0)
        return QString::fromLatin1(view.id);
  return {};
}

QStringList viewNames() {
  QStringList names;
  for (const ViewEntry& view : viewList())
    if (view.id != kStartPage) names << QString::fromLatin1(view.id);
  return names;
}

}  // namespace

std::optional<int> parseArguments(const QStringList& arguments, Arguments* out) {
  QCommandLineParser parser;
  parser.setApplicationDescription(QStringLiteral("Opens a model or a recorded project in the window."));
  parser.addPositionalArgument(QStringLiteral("path"), QStringLiteral("model (.onnx) or project (.stepscope)"),
                               QStringLiteral("[MODEL|PROJECT]"));
  parser.addOptions(windowOptions());
  QCommandLineOption manual(QStringLiteral("manual"), QStringLiteral("man, bash or zsh"), QStringLiteral("what"));
  manual.setFlags(QCommandLineOption::HiddenFromHelp);
  parser.addOption(manual);
  const auto help = parser.addHelpOption();
  const auto version = parser.addVersionOption();
  const auto wrong = [](const QString& text) {
    std::fprintf(stderr, "error: %s\n", qPrintable(text));
    return 2;
  };
  if (!parser.parse(arguments)) return wrong(parser.errorText());
  if (parser.isSet(help)) {
    std::printf("%s", qPrintable(parser.helpText()));
    return 0;
  }
  if (parser.isSet(manual)) {
    const QString page = manualPage(parser.value(manual));
    if (page.isEmpty())
      return wrong(QStringLiteral("option 'manual': %1; expected man, bash or zsh").arg(parser.value(manual)));
    std::printf("%s", qPrintable(page));
    return 0;
  }
  if (parser.isSet(version)) {
    std::printf("stepscope-workbench %s\n", versionText());
    return 0;
  }
  if (parser.positionalArguments().size() > 1) {
    return wrong(QStringLiteral("arguments: %1 paths; expected at most one").arg(parser.positionalArguments().size()));
  }
  out->path = parser.positionalArguments().value(0);
  out->host = {parser.value(QStringLiteral("host")), parser.value(QStringLiteral("worker")),
               parser.value(QStringLiteral("attach"))};
  if (out->host.attached() && !out->path.isEmpty())
    return wrong(QStringLiteral("arguments: '%1' beside --attach; expected one of both").arg(out->path));
  if (parser.isSet(QStringLiteral("host")))
    if (const QString problem = problemOf(out->host); !problem.isEmpty()) return wrong(problem);
  out->layout = parser.value(QStringLiteral("layout"));
  out->theme = parser.value(QStringLiteral("theme")).toLower();
  if (!out->theme.isEmpty() && out->theme != u"light" && out->theme != u"dark") {
    return wrong(QStringLiteral("option 'theme': %1; expected light or dark").arg(out->theme));
  }
  out->screenshot = parser.value(QStringLiteral("screenshot"));
  for (const QString& wanted : parser.values(QStringLiteral("show"))) {
    const QString id = viewNamed(wanted);
    if (id.isEmpty())
      return wrong(
          QStringLiteral("option 'show': %1; expected one of %2").arg(wanted, viewNames().join(QStringLiteral(", "))));
    out->show << id;
  }
  if (const QString size = parser.value(QStringLiteral("size")); !size.isEmpty()) {
    const QStringList sides = size.toLower().split('x');
    out->size = sides.size() == 2 ? QSize(sides[0].toInt(), sides[1].toInt()) : QSize();
    if (out->size.isEmpty()) return wrong(QStringLiteral("option 'size': %1; expected such as 1280x800").arg(size));
  }
  const auto number = [&](const char* name, auto* target) -> std::optional<int> {
    if (!parser.isSet(QLatin1String(name))) return std::nullopt;
    bool ok = false;
    const int value = parser.value(QLatin1String(name)).toInt(&ok);
    if (!ok || value < 0)
      return wrong(QStringLiteral("option '%1': %2; expected a number from 0")
                       .arg(QLatin1String(name), parser.value(QLatin1String(name))));
    *target = value;
    return std::nullopt;
  };
  if (const auto code = number("steps", &out->steps)) return code;
  if (const auto code = number("run-to", &out->runTo)) return code;
  if (const auto code = number("select", &out->selectInstruction)) return code;
  for (const QString& pair : parser.values(QStringLiteral("set"))) {
    const auto equals = pair.indexOf('=');
    if (equals <= 0) return wrong(QStringLiteral("option 'set': %1; expected name=value").arg(pair));
    auto* setting = out->configuration.add_settings();
    setting->set_name(pair.left(equals).toStdString());
    setting->set_value(pair.mid(equals + 1).toStdString());
  }
  return std::nullopt;
}

}  // namespace stepscope
