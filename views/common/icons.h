// SPDX-License-Identifier: GPL-3.0-or-later
// Our own line icons: one 16 × 16 grid, one stroke width, drawn in a colour of the tokens at any scale.
#pragma once

#include <QIcon>
#include <QPixmap>
#include <QString>

namespace stepscope {

// Names: open, run, runback, back, step, phase, phaseback, whole, to, stop, options, export, warning, menu, layout, search,
// close, refresh, copy, pin, eye, file, plus, minus, left, right, more, save, check, info, gpu. An unknown name is a bug of
// ours.
QIcon icon(const QString& name);
QIcon icon(const QString& name, const QColor& colour);
QPixmap iconPixmap(const QString& name, const QColor& colour, int size, double devicePixelRatio);

// A small rounded square in a category colour, the mark before an operator's name.
QPixmap swatch(const QColor& colour, int size, double devicePixelRatio);

}  // namespace stepscope
