#pragma once
// Shapes on a white sheet, as SVG or PNG. Places are in points from the upper left corner; colours are "#rrggbb".

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace metaprof {

using Point = std::pair<double, double>;

class Canvas {
 public:
  enum class Anchor : unsigned char { start, middle, end };
  struct Words {
    double size = 12;
    bool bold = false;
    Anchor anchor = Anchor::start;
  };

  Canvas(int width, int height) : width_(width), height_(height) {}

  void line(Point from, Point to, std::string_view colour, double width = 1);
  void polygon(std::vector<Point> corners, std::string_view colour);
  void circle(Point centre, double radius, std::string_view colour);
  void text(Point at, std::string_view text, Words words);

  /// Needs nothing else.
  std::string svg() const;
  /// Twice as many pixels as points. Errors: as png_of_dot.
  std::string png() const;

 private:
  struct Shape {
    enum class Kind : unsigned char { line, polygon, circle, text } kind;
    std::vector<Point> points;
    std::string colour;
    double size = 1;  ///< width of a line, radius of a circle
    std::string text = {};
    Words words = {};
  };
  std::string svg_of(const Shape& shape) const;
  std::string xdot_of(const Shape& shape) const;
  std::string node_of(const Shape& shape) const;

  int width_, height_;
  std::vector<Shape> shapes_;
};

}  // namespace metaprof
