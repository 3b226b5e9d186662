//! Colours, letters and markers, and what the dark of a reader's screen makes of them.
//!
//! The colours are those of Okabe and Ito, which people who see few colours can tell apart; lines differ in their
//! markers besides. Sizes are such that a drawing shrunk to 400 pixels has letters of 10.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// Pixels from left to right of every drawing.
pub const WIDTH: u32 = 640;
/// Between the edge and what is drawn.
pub(crate) const MARGIN: u32 = 16;
/// Pixels of letters, and of those of a title.
pub(crate) const LETTERS: f64 = 16.0;
pub(crate) const TITLE: f64 = 20.0;

/// The first is the one that is compiled in, for pictures.
const FAMILY: &str = "Roboto, sans-serif";
/// Sizes of fonts of the drawing library are so many times those of SVG.
const FONT_SCALE: f64 = 1.24;
/// Average width of a letter, as a part of its size.
const LETTER_WIDTH: f64 = 0.56;

pub(crate) const INK: RGBColor = RGBColor(0x1f, 0x23, 0x28);
pub(crate) const GRID: RGBColor = RGBColor(0xd0, 0xd7, 0xde);
pub(crate) const PAPER: RGBColor = RGBColor(0xff, 0xff, 0xff);

const BLUE: RGBColor = RGBColor(0x00, 0x72, 0xb2);
const GREEN: RGBColor = RGBColor(0x00, 0x9e, 0x73);
const SKY: RGBColor = RGBColor(0x56, 0xb4, 0xe9);
const VERMILION: RGBColor = RGBColor(0xd5, 0x5e, 0x00);
const GREY: RGBColor = RGBColor(0x8c, 0x8c, 0x8c);
const ORANGE: RGBColor = RGBColor(0xe6, 0x9f, 0x00);
const PURPLE: RGBColor = RGBColor(0xcc, 0x79, 0xa7);

/// Of bars: ours, others', and what others have done in a way of their own.
pub(crate) const OURS: RGBColor = BLUE;
pub(crate) const THEIRS: RGBColor = GREY;
pub(crate) const AS_PUBLISHED: RGBColor = ORANGE;
/// Of lines, one after the other.
pub(crate) const OWN_LINES: [RGBColor; 3] = [BLUE, GREEN, SKY];
pub(crate) const OTHER_LINES: [RGBColor; 4] = [VERMILION, GREY, ORANGE, PURPLE];

// As thin lines on white paper the light ones of the seven would be hard to see.
const DARK_ORANGE: RGBColor = RGBColor(0xa6, 0x72, 0x00);
const DARK_SKY: RGBColor = RGBColor(0x2a, 0x8c, 0xc4);

/// Of types of edges, one after the other; beyond them dashes tell them apart.
pub(crate) const OF_TYPES: [RGBColor; 7] = [BLUE, VERMILION, GREEN, PURPLE, DARK_ORANGE, DARK_SKY, GREY];

/// What changes where the reader's screen is dark.
pub(crate) const DARK: &str = "<style>@media (prefers-color-scheme: dark) {\n\
svg [fill=\"#FFFFFF\"] { fill: #0D1117 } svg [fill=\"#1F2328\"] { fill: #E6EDF3 }\n\
svg [stroke=\"#1F2328\"] { stroke: #8B949E } svg [stroke=\"#D0D7DE\"] { stroke: #30363D }\n\
svg [fill=\"#0072B2\"] { fill: #3A9BDC } svg [stroke=\"#0072B2\"] { stroke: #3A9BDC }\n\
}</style>\n";

/// What changes besides in networks: the paper around letters, and rings around vertices.
pub(crate) const NETWORK_DARK: &str = "<style>@media (prefers-color-scheme: dark) {\n\
svg [stroke=\"#FFFFFF\"] { stroke: #0D1117 } svg [stroke=\"#1F2328\"] { stroke: #E6EDF3 }\n\
svg [fill=\"#D55E00\"] { fill: #F0803C } svg [stroke=\"#D55E00\"] { stroke: #F0803C }\n\
}</style>\n";

/// Where a text stands from its place.
#[derive(Clone, Copy)]
pub(crate) enum Side {
    /// To its right.
    Right,
    /// To its left.
    Left,
    /// Right of it and below.
    Below,
}

/// Letters of so many pixels.
pub(crate) fn letters(size: f64, side: Side) -> TextStyle<'static> {
    let (horizontal, vertical) = match side {
        Side::Right => (HPos::Left, VPos::Center),
        Side::Left => (HPos::Right, VPos::Center),
        Side::Below => (HPos::Left, VPos::Top),
    };
    let style: TextStyle<'static> = (FAMILY, size * FONT_SCALE).into_font().color(&INK);
    style.pos(Pos::new(horizontal, vertical))
}

/// Pixels that a text is wide, about.
pub(crate) fn width(text: &str, size: f64) -> u32 {
    (text.chars().count() as f64 * size * LETTER_WIDTH).ceil() as u32
}

/// Text in lines of at most so many pixels, broken between words.
pub(crate) fn lines_of(text: &str, size: f64, room: u32) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if width(&format!("{line} {word}"), size) <= room => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_between_words_and_lose_none() {
        let text = "3n+1 over 100000, as it is done by one process";
        let lines = lines_of(text, LETTERS, 200);
        assert!(lines.len() > 1 && lines.iter().all(|line| width(line, LETTERS) <= 200), "{lines:?}");
        assert_eq!(lines.join(" "), text);
        assert_eq!(lines_of("wordlongerthanaline", LETTERS, 20), ["wordlongerthanaline"]);
        assert!(lines_of("", LETTERS, 20).is_empty());
    }

    /// Of light, as WCAG 2.2 defines it ("relative luminance").
    fn luminance(color: RGBColor) -> f64 {
        let part = |value: u8| match f64::from(value) / 255.0 {
            low if low <= 0.04045 => low / 12.92,
            high => ((high + 0.055) / 1.055).powf(2.4),
        };
        0.2126 * part(color.0) + 0.7152 * part(color.1) + 0.0722 * part(color.2)
    }

    /// WCAG asks for 3 of what must be seen. The paper in the dark is #0D1117.
    #[test]
    fn edges_are_seen_on_either_paper() {
        for color in OF_TYPES {
            for paper in [PAPER, RGBColor(0x0d, 0x11, 0x17)] {
                let (a, b) = (luminance(color) + 0.05, luminance(paper) + 0.05);
                assert!(a.max(b) / a.min(b) >= 3.0, "{color:?} on {paper:?}");
            }
        }
    }

    #[test]
    fn the_dark_knows_the_colours_by_their_names() {
        let name = |color: RGBColor| format!("\"#{:02X}{:02X}{:02X}\"", color.0, color.1, color.2);
        assert!([PAPER, INK, VERMILION].into_iter().all(|color| NETWORK_DARK.contains(&name(color))));
        for color in [PAPER, INK, GRID, OURS] {
            let name = name(color);
            assert!(DARK.contains(&name), "{name}");
        }
    }
}
