#include "reports/pictures/canvas.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/formats/display.h"
#include "reports/pictures/graph_dot.h"

namespace metaprof {
namespace {

constexpr std::string_view kInk = "#1c2733";
constexpr size_t kMostWords = 160;

std::string for_xml(std::string_view text) {
  std::string result;
  for (const char c : shown(text, kMostWords)) {
    if (c == '&')
      result += "&amp;";
    else if (c == '<')
      result += "&lt;";
    else if (c == '>')
      result += "&gt;";
    else
      result += c;
  }
  return result;
}

// Quotes and backslashes would end the attribute that a text stands in.
std::string without_quotes(std::string_view text) {
  std::string plain;
  for (const char c : text)
    if (c != '"' && c != '\\') plain += c;
  return plain;
}

// A word of xdot: its bytes, and itself.
std::string counted(std::string_view word) { return fmt::format("{} -{}", word.size(), word); }

}  // namespace

void Canvas::line(Point from, Point to, std::string_view colour, double width) {
  shapes_.push_back(
      {.kind = Shape::Kind::line, .points = {from, to}, .colour = std::string(colour), .size = width});
}
void Canvas::polygon(std::vector<Point> corners, std::string_view colour) {
  shapes_.push_back(
      {.kind = Shape::Kind::polygon, .points = std::move(corners), .colour = std::string(colour)});
}
void Canvas::circle(Point centre, double radius, std::string_view colour) {
  shapes_.push_back(
      {.kind = Shape::Kind::circle, .points = {centre}, .colour = std::string(colour), .size = radius});
}
void Canvas::text(Point at, std::string_view text, Words words) {
  shapes_.push_back({.kind = Shape::Kind::text,
                     .points = {at},
                     .colour = std::string(kInk),
                     .text = std::string(text),
                     .words = words});
}

std::string Canvas::svg_of(const Shape& shape) const {
  const auto& [x, y] = shape.points[0];
  switch (shape.kind) {
    case Shape::Kind::line:
      return fmt::format(
          "<line x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" "
          "stroke-width=\"{}\"/>\n",
          x, shape.points[1].first, y, shape.points[1].second, shape.colour, shape.size);
    case Shape::Kind::polygon: {
      std::string corners;
      for (const auto& [px, py] : shape.points) corners += fmt::format("{:.1f},{:.1f} ", px, py);
      return fmt::format("<polygon points=\"{}\" fill=\"{}\"/>\n", corners, shape.colour);
    }
    case Shape::Kind::circle:
      return fmt::format(
          "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\"/>\n",
          x, y, shape.size, shape.colour);
    case Shape::Kind::text: break;
  }
  constexpr const char* kAnchors[] = {"start", "middle", "end"};
  return fmt::format(
      "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" fill=\"{}\" font-size=\"{}\"{}>{}</text>\n", x, y,
      kAnchors[static_cast<size_t>(shape.words.anchor)], shape.colour, shape.words.size,
      shape.words.bold ? " font-weight=\"600\"" : "", for_xml(shape.text));
}

std::string Canvas::svg() const {
  std::string text = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
      "font-family=\"system-ui, sans-serif\">\n<rect width=\"{0}\" height=\"{1}\" fill=\"#fff\"/>\n",
      width_, height_);
  for (const Shape& shape : shapes_) text += svg_of(shape);
  return text + "</svg>\n";
}

// The drawing operations of Graphviz (graphviz.org/docs/outputs/canon/#xdot), whose y goes upwards.
std::string Canvas::xdot_of(const Shape& shape) const {
  const auto place = [&](const Point& point) {
    return fmt::format(" {:.1f} {:.1f}", point.first, height_ - point.second);
  };
  std::string points;
  for (const Point& point : shape.points) points += place(point);
  const std::string colour = counted(shape.colour);
  switch (shape.kind) {
    case Shape::Kind::line:
      return fmt::format("S {} c {} L 2{} ", counted(fmt::format("setlinewidth({})", shape.size)), colour,
                         points);
    case Shape::Kind::polygon:
      return fmt::format("S {0} c {1} C {1} P {2}{3} ", counted("setlinewidth(0)"), colour,
                         shape.points.size(), points);
    case Shape::Kind::circle:
      return fmt::format("S {0} c {1} e{2} {3} {3} ", counted("setlinewidth(1.5)"), colour, points,
                         shape.size);
    case Shape::Kind::text: break;
  }
  return "";
}

// Text as a node of its own, as wide as its letters about are; the library places no text in a background.
std::string Canvas::node_of(const Shape& shape) const {
  const auto& [x, y] = shape.points[0];
  const std::string words = without_quotes(shown(shape.text, kMostWords));
  constexpr double kWidthOfLetter = 0.65;
  const double all = static_cast<double>(width_of(words)) * shape.words.size * kWidthOfLetter;
  const bool start = shape.words.anchor == Anchor::start, end = shape.words.anchor == Anchor::end;
  const double width = std::min(all, start ? width_ - x : end ? x : all);
  const double centre = start ? x + width / 2 : end ? x - width / 2 : x;
  return fmt::format(
      "  n{} [label=\"{}{}\", pos=\"{:.1f},{:.1f}!\", width={:.3f}, fontsize={}, "
      "fontname=\"Helvetica{}\"];\n",
      &shape - shapes_.data(), words,
      start ? "\\l"
      : end ? "\\r"
            : "",
      centre, height_ - y + shape.words.size / 3, width / 72, shape.words.size,
      shape.words.bold ? " bold" : "");
}

// A node without a look takes the sheet's size; all shapes but texts are its graph's background.
std::string Canvas::png() const {
  std::string drawing, texts;
  for (const Shape& shape : shapes_) {
    drawing += xdot_of(shape);
    if (shape.kind == Shape::Kind::text) texts += node_of(shape);
  }
  return png_of_dot(
      fmt::format(
          "graph sheet {{ pad=0; margin=0; notranslate=true;\n  node [shape=none, fixedsize=true, height=0, "
          "margin=0, fontcolor=\"{}\"];\n  sheet [label=\"\", width={:.4f}, height={:.4f}, "
          "pos=\"{},{}!\"];\n{}  _background=\"{}\";\n}}",
          kInk, width_ / 72.0, height_ / 72.0, width_ / 2.0, height_ / 2.0, texts, drawing),
      "nop2");
}

}  // namespace metaprof
