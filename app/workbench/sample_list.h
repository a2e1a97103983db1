// SPDX-License-Identifier: GPL-3.0-or-later
// The samples that come with the program (app/samples), each for a journey of the guide. GUI thread.
#pragma once

#include <QString>
#include <vector>

namespace stepscope {

struct Sample {
  QString name;    // of its folder
  QString path;    // of the model or the project in it
  QString detail;  // one line: what is to be seen with it
};

// Those that are there: beside the program when it runs from a build, in the data folder when it is installed.
std::vector<Sample> samples();
// The path of one; empty when it is not there.
QString samplePath(const QString& name);

}  // namespace stepscope
