// What a report says, as values: sections of paragraphs, tables with typed columns, and charts as vectors. Nothing here
// knows HTML, paper or a terminal; writers do (html_writer.h, text_writer.h, and the window's printer). Texts are as they
// came from the file: a writer escapes all of them. Colours are names of the palette (style.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "storage/report/drawing.h"
#include "storage/timing.h"

namespace stepscope::storage::doc {

enum class Style { kPlain, kStrong, kDim, kMono, kSmall, kBad, kChip };

struct TextPart {
  std::string text;
  Style style = Style::kPlain;
  Colour colour = {};  // of a chip; empty: muted
};

// A line break is "\n" in a part.
struct Text {
  Text() = default;
  Text(std::string plain) { add(std::move(plain)); }
  Text(std::string_view plain) { add(std::string(plain)); }
  Text(const char* plain) { add(plain); }

  Text& add(std::string text, Style style = Style::kPlain, Colour colour = {});
  bool empty() const { return parts.empty(); }
  std::string plain() const;  // without styles

  std::vector<TextPart> parts;
};

// What the numbers of a column are: it decides how they are written and that they stand to the right.
enum class Quantity { kText, kNumber, kCount, kTime, kBytes, kShare, kFactor, kFlopRate, kByteRate };

struct Column {
  std::string label;
  std::string tooltip;  // defines the quantity and its unit
  Quantity quantity = Quantity::kText;
  bool wraps = false;  // long texts take several lines
  bool mono = false;
  bool dim = false;
  bool right = false;  // a text that stands to the right all the same
};

// In the cell, behind its text.
struct Bar {
  double width = 0;  // of the room there is, 0 to 1
  Colour colour = "accent";
};

struct Cell {
  Cell() = default;  // nothing to say
  Cell(std::int64_t number) : value(number) {}
  Cell(int number) : value(std::int64_t{number}) {}
  Cell(double number) : value(number) {}
  Cell(std::optional<double> number);
  Cell(Text text) : value(std::move(text)) {}
  Cell(std::string text) : value(Text(std::move(text))) {}
  Cell(std::string_view text) : value(Text(text)) {}
  Cell(const char* text) : value(Text(text)) {}

  Cell& withTooltip(std::string text);
  Cell& withSwatch(Colour colour);  // a square before the text
  Cell& withBar(double width, Colour colour);
  Cell& withSpan(int columns);

  std::variant<std::monostate, std::int64_t, double, Text> value;
  std::string tooltip;  // empty: numbers with a unit are written out
  std::optional<Bar> bar;
  std::optional<Drawing> plot;  // instead of a value
  Colour swatch = {};
  int span = 1;    // columns
  int indent = 0;  // levels below the row above
  std::string pointsTitle;
  std::vector<Text> points;  // below the value; folded where a reader can unfold them
};

// A number by the quantity of its column, "5.41 ms"; a text without its styles.
std::string shownText(const Column& column, const Cell& cell);
// The same with all digits, "5,412,345 ns"; empty where that says no more.
std::string exactText(const Column& column, const Cell& cell);

struct Table {
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;
  std::string folded;  // not empty: shown on demand, under this title
  bool heads = true;
};

struct Paragraph {
  enum class Kind { kBody, kExplains, kEmpty, kBad };  // kEmpty: says why there is nothing, and what would fill it
  Text text;
  Kind kind = Kind::kBody;
};

// Of what follows within a section.
struct Heading {
  explicit Heading(std::string_view words);
  std::string text;
};

// "Processor", and which.
struct Fact {
  std::string name;
  Text value;
};
// Facts of one thing, under its name.
struct FactList {
  std::string title;
  std::vector<Fact> facts;
};
// Lists next to each other.
struct FactLists {
  std::vector<FactList> lists;
};

// The large numbers at the top.
struct Tile {
  std::string label;
  Text value;
  std::string foot, tooltip;
};
struct Tiles {
  std::vector<Tile> tiles;
};

// Parts of a whole, next to each other.
struct StackPart {
  double share = 0;
  Colour colour;
  std::string label;
};
struct Stack {
  std::vector<StackPart> parts;
};

struct LegendItem {
  Colour colour;
  std::string label, value, tooltip;
  bool line = false;  // of a line, not of an area
};
struct Legend {
  std::string title;
  std::vector<LegendItem> items;
};

struct Notice {
  std::string kind;  // "warning"
  Colour colour;
  std::string text, place;
};
struct Notices {
  std::vector<Notice> notices;
};

// One point after the other.
struct Bullets {
  std::vector<Text> items;
};

struct Figure {
  std::string title;    // above it; may be empty
  std::string summary;  // what it shows, in words: for writers that cannot draw
  Drawing drawing;
};
// Small ones next to each other.
struct Figures {
  std::vector<Figure> figures;
};

// What a section consists of, from top to bottom.
using Block = std::variant<Paragraph, Heading, FactLists, Tiles, Table, Stack, Legend, Notices, Bullets, Figure, Figures>;

struct Section {
  std::string id, title;
  Text sub;  // a line under the title
  std::vector<Block> blocks;
  std::int64_t counted = 0;  // above 0: stands beside its entry in the contents
};

struct Document {
  std::string title;        // "digits/model.onnx"
  std::vector<Block> lead;  // facts of the run, the large numbers
  std::vector<Section> sections;
  std::string about;  // "Run 1 of a.stepscope"
  std::string notes;  // how to read it
};

// Builders of parts that several sections have.
Section emptySection(std::string id, std::string title, std::string_view why);
Cell shareCell(double share, Colour colour = "accent", double largest = 1);  // its bar is as long as it is of `largest`
void addStatsColumns(std::vector<Column>& columns);                          // n, total, mean, median, p95, min, max
void addStats(std::vector<Cell>& row, const TimeStats& stats);
// Names of the palette: only these may come from a text of the file.
Colour categoryColour(std::string_view category);
Colour phaseColour(std::string_view phase);

}  // namespace stepscope::storage::doc
