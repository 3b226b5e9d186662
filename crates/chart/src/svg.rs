//! Shapes as SVG.

use std::fmt::Write;

use crate::{Color, Drawing, Shape, INK, WIDTH};

/// The text of the file.
pub(crate) fn draw(drawing: &Drawing) -> String {
    let height = drawing.height;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
         viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" font-size=\"16\">\n"
    );
    for shape in &drawing.shapes {
        // Writing to a string does not fail.
        let _ = match shape {
            Shape::Rectangle { x, y, width, height, color } => writeln!(
                out,
                "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"{}\"/>",
                hex(*color)
            ),
            Shape::Text { x, y, text } => writeln!(
                out,
                "<text x=\"{x}\" y=\"{}\" fill=\"{}\">{}</text>",
                y + 14,
                hex(INK),
                escaped(text)
            ),
            Shape::Line { from, to, thick, color } => writeln!(
                out,
                "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke-width=\"{thick}\" stroke=\"{}\"/>",
                from.0,
                from.1,
                to.0,
                to.1,
                hex(*color)
            ),
            Shape::Face { corners, color, edge } => {
                let corners = corners.map(|(x, y)| format!("{x:.1},{y:.1}")).join(" ");
                writeln!(
                    out,
                    "<polygon points=\"{corners}\" fill=\"{}\" stroke=\"{}\"/>",
                    hex(*color),
                    hex(*edge)
                )
            }
        };
    }
    out.push_str("</svg>\n");
    out
}

fn hex([red, green, blue]: Color) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// Text as HTML and SVG take it.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
