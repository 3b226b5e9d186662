//! Shapes as SVG.

use std::fmt::Write;

use super::{Drawing, Shape, INK, WIDTH};

/// The text of the file.
pub(super) fn draw(drawing: &Drawing) -> String {
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
            Shape::Text { x, y, text } => {
                writeln!(
                    out,
                    "<text x=\"{x}\" y=\"{}\" fill=\"{}\">{}</text>",
                    y + 14,
                    hex(INK),
                    escaped(text)
                )
            }
        };
    }
    out.push_str("</svg>\n");
    out
}

fn hex([red, green, blue]: [u8; 3]) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
