//! Networks: vertices with names, and edges between them with arrow heads, coloured by type.
//!
//! ```
//! use perilune_chart::{Link, Network, Spot};
//!
//! let spot = |name: &str| Spot { name: name.into(), is_start: name == "ada" };
//! let edge = Link { source: 0, target: 1, kind: "KNOWS".into() };
//! let network = Network::new("^social", "two people", vec![spot("ada"), spot("ben")], vec![edge]);
//! assert!(network.svg().contains("KNOWS"));
//! # Ok::<(), perilune_chart::Error>(())
//! ```
//!
//! Invariants
//! - The more vertices, the larger the sheet: letters have one size, and names are placed so that none meets another.
//! - Types beyond the colours have dashes besides; edges alike between two vertices are one line, which is thicker.
//! - What has no room for its name shows it to who points at it.

use std::collections::BTreeMap;
use std::fmt::Write;

use plotters::style::RGBColor;

use crate::layout::{layout, Place};
use crate::names::{self, Rectangle};
use crate::style::{
    lines_of, width, DARK, INK, LETTERS, MARGIN, NETWORK_DARK, OF_TYPES, PAPER, TITLE, WIDTH,
};
use crate::{escaped, picture, Error};

/// Of a vertex, and of one that the picture starts from.
const RADIUS: f64 = 6.0;
const START_RADIUS: f64 = 9.0;
/// Pixels of the sheet for each vertex, until it is as wide as it gets.
const ROOM: f64 = 17_000.0;
const WIDTH_MAX: f64 = 1_600.0;
/// Letters of a name; what is longer is cut.
const NAME_LETTERS: usize = 28;
/// Entries of the legend; further types share the last one.
const TYPES_MAX: usize = 14;
/// Between lines of text, as a part of the letters' size.
const LEADING: f64 = 1.35;
/// Of an arrow head.
const HEAD_LENGTH: f64 = 9.0;
const HEAD_WIDTH: f64 = 4.0;

/// A vertex.
#[derive(Clone, Debug)]
pub struct Spot {
    /// Written beside it.
    pub name: String,
    /// Whether the picture starts from it: it is drawn larger.
    pub is_start: bool,
}

/// An edge between vertices by their places in the list.
#[derive(Clone, Debug)]
pub struct Link {
    /// Where it begins.
    pub source: usize,
    /// Where its arrow head is.
    pub target: usize,
    /// Its type, which the legend names.
    pub kind: String,
}

/// A picture of a network.
#[derive(Clone, Debug)]
pub struct Network {
    title: String,
    note: String,
    spots: Vec<Spot>,
    lines: Vec<Line>,
    /// Types, the most frequent first, and how many edges they have.
    kinds: Vec<(String, usize)>,
}

/// Edges alike, drawn as one.
#[derive(Clone, Debug)]
struct Line {
    source: usize,
    target: usize,
    kind: String,
    count: usize,
    /// How far it bends to its left.
    bend: f64,
}

impl Network {
    /// The picture of these vertices and edges, nearest to the start first. Edges of which there is no such vertex are left out.
    #[must_use]
    pub fn new(title: &str, note: &str, spots: Vec<Spot>, links: Vec<Link>) -> Network {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        let mut alike: BTreeMap<(usize, usize, &str), usize> = BTreeMap::new();
        for link in links.iter().filter(|link| link.source.max(link.target) < spots.len()) {
            *counts.entry(&link.kind).or_default() += 1;
            *alike.entry((link.source, link.target, &link.kind)).or_default() += 1;
        }
        let mut kinds: Vec<(String, usize)> =
            counts.into_iter().map(|(kind, count)| (kind.to_owned(), count)).collect();
        kinds.sort_by_key(|(_, count)| usize::MAX - count);
        let mut between: BTreeMap<(usize, usize), Vec<Line>> = BTreeMap::new();
        for ((source, target, kind), count) in alike {
            let line = Line { source, target, kind: kind.to_owned(), count, bend: 0.0 };
            between.entry((source.min(target), source.max(target))).or_default().push(line);
        }
        let mut lines = Vec::new();
        for mut group in between.into_values() {
            let middle = (group.len() as f64 - 1.0) / 2.0;
            for (at, line) in group.iter_mut().enumerate() {
                let side = if line.source <= line.target { 1.0 } else { -1.0 };
                line.bend = (at as f64 - middle) * 18.0 * side;
            }
            lines.append(&mut group);
        }
        Network { title: title.to_owned(), note: note.to_owned(), spots, lines, kinds }
    }

    /// The text of an SVG file. It follows the dark mode of whoever looks at it.
    #[must_use]
    pub fn svg(&self) -> String {
        self.drawn(&format!("{DARK}{NETWORK_DARK}"))
    }

    /// The bytes of a PNG file, so many pixels wide.
    ///
    /// # Errors
    /// The drawing library's: a picture that is too large.
    pub fn png(&self, pixels: u32) -> Result<Vec<u8>, Error> {
        picture::draw_wide(&self.drawn(""), pixels)
    }

    /// How wide and high the part with the vertices is.
    fn size(&self) -> Place {
        let wide = (self.spots.len() as f64 * ROOM).sqrt().clamp(f64::from(WIDTH), WIDTH_MAX).round();
        (wide, (wide * 0.75).round())
    }

    fn drawn(&self, style: &str) -> String {
        let (wide, high) = self.size();
        let (head, above) = self.head(wide);
        let inner = (wide - 2.0 * f64::from(MARGIN), high - 2.0 * f64::from(MARGIN));
        let pairs: Vec<(usize, usize)> = self.lines.iter().map(|line| (line.source, line.target)).collect();
        let places: Vec<Place> = layout(self.spots.len(), &pairs, (inner.0 - 120.0, inner.1 - 40.0), 22.0)
            .into_iter()
            .map(|(x, y)| (x + 60.0 + f64::from(MARGIN), y + 20.0 + f64::from(MARGIN)))
            .collect();
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {wide} {total}\" width=\"{wide}\" \
             height=\"{total}\" role=\"img\">\n<title>{title}</title>\n{style}<rect width=\"{wide}\" \
             height=\"{total}\" fill=\"{paper}\"/>\n{head}<g transform=\"translate(0 {above})\">\n",
            total = above + high,
            title = escaped(&self.title),
            paper = hex(PAPER),
        );
        self.lines.iter().for_each(|line| self.draw_line(&mut out, line, &places));
        self.draw_spots(&mut out, &places, (wide, high));
        out.push_str("</g>\n</svg>\n");
        out
    }

    /// Title, note and legend, and how high they are together.
    fn head(&self, wide: f64) -> (String, f64) {
        let left = f64::from(MARGIN);
        let room = (wide - 2.0 * left) as u32;
        let (mut out, mut y) = (String::new(), left / 2.0);
        for (text, size) in [(&self.title, TITLE), (&self.note, LETTERS)] {
            for line in lines_of(text, size, room) {
                y += size * LEADING;
                write_text(&mut out, (left, y - size * 0.3), size, &line);
            }
        }
        let mut x = left;
        if !self.kinds.is_empty() {
            y += LETTERS * LEADING;
        }
        for (name, color, dashes) in self.legend() {
            let entry = 44.0 + f64::from(width(&name, LETTERS));
            if x > left && x + entry > wide - left {
                (x, y) = (left, y + LETTERS * LEADING);
            }
            let middle = y - LETTERS * 0.35;
            let _ = writeln!(
                out,
                "<path d=\"M{x} {middle}h24\" fill=\"none\" stroke=\"{color}\" stroke-width=\"2.5\"{dashes}/>"
            );
            write_head(&mut out, (x + 30.0, middle), (1.0, 0.0), &color);
            write_text(&mut out, (x + 36.0, y - LETTERS * 0.05), LETTERS, &name);
            x += entry + 14.0;
        }
        (out, y + left / 2.0)
    }

    /// Name, colour and dashes of each entry.
    fn legend(&self) -> Vec<(String, String, &'static str)> {
        let mut entries = Vec::new();
        for (at, (kind, count)) in self.kinds.iter().enumerate().take(TYPES_MAX) {
            let (mut name, mut count) = (short(kind), *count);
            if at + 1 == TYPES_MAX && self.kinds.len() > TYPES_MAX {
                name = format!("{} other types", self.kinds.len() - at);
                count = self.kinds[at..].iter().map(|(_, count)| count).sum();
            }
            let (color, dashes) = look(at);
            entries.push((format!("{name} ({count})"), color, dashes));
        }
        entries
    }

    fn radius(&self, spot: usize) -> f64 {
        if self.spots[spot].is_start {
            START_RADIUS
        } else {
            RADIUS
        }
    }

    fn draw_line(&self, out: &mut String, line: &Line, places: &[Place]) {
        let at = self.kinds.iter().position(|(kind, _)| *kind == line.kind).unwrap_or(0);
        let (color, dashes) = look(at.min(TYPES_MAX - 1));
        let thick = 1.5 + (line.count as f64).log2().min(4.0) * 0.75;
        let (from, to) = (places[line.source], places[line.target]);
        let (start, control, end, way) = if line.source == line.target {
            let (x, y) = from;
            let out_of = self.radius(line.source) + 16.0 + line.bend.abs();
            let end = (x + 2.0, y - self.radius(line.source) - 1.0);
            ((x - 3.0, y - self.radius(line.source)), None, end, (out_of, out_of))
        } else {
            let control = bent(from, to, line.bend);
            let start = toward(from, control, self.radius(line.source));
            let end = toward(to, control, self.radius(line.target) + 1.0);
            (start, Some(control), end, (0.0, 0.0))
        };
        let tail = |from: Place| toward(end, from, HEAD_LENGTH - 2.0);
        let (path, direction) = match control {
            Some(control) => {
                let stop = tail(control);
                let path = format!(
                    "M{:.1} {:.1}Q{:.1} {:.1} {:.1} {:.1}",
                    start.0, start.1, control.0, control.1, stop.0, stop.1
                );
                (path, (end.0 - control.0, end.1 - control.1))
            }
            None => {
                let (above, aside) = (from.1 - way.1 * 2.0, way.0);
                let path = format!(
                    "M{:.1} {:.1}C{:.1} {above:.1} {:.1} {above:.1} {:.1} {:.1}",
                    start.0,
                    start.1,
                    from.0 - aside,
                    from.0 + aside,
                    end.0,
                    end.1 - HEAD_LENGTH
                );
                (path, (-0.3, 1.0))
            }
        };
        let name =
            format!("{} -[{}]-> {}", self.spots[line.source].name, line.kind, self.spots[line.target].name);
        let times = if line.count > 1 { format!("{} x ", line.count) } else { String::new() };
        let _ = writeln!(
            out,
            "<g><title>{times}{}</title><path d=\"{path}\" fill=\"none\" stroke=\"{color}\" \
             stroke-width=\"{thick:.2}\"{dashes}/>",
            escaped(&name)
        );
        write_head(out, end, direction, &color);
        out.push_str("</g>\n");
    }

    fn draw_spots(&self, out: &mut String, places: &[Place], size: Place) {
        let radii: Vec<f64> = (0..self.spots.len()).map(|spot| self.radius(spot)).collect();
        for ((spot, (x, y)), radius) in self.spots.iter().zip(places).zip(&radii) {
            let (fill, ink) = if spot.is_start { (INK, INK) } else { (PAPER, INK) };
            let _ = writeln!(
                out,
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\" fill=\"{}\" stroke=\"{}\" \
                 stroke-width=\"1.5\"><title>{}</title></circle>",
                hex(fill),
                hex(ink),
                escaped(&spot.name)
            );
        }
        let names: Vec<String> = self.spots.iter().map(|spot| short(&spot.name)).collect();
        for (name, place) in names.iter().zip(self.named(&names, places, &radii, size)) {
            if let Some(place) = place {
                write_text(out, (place.left, place.bottom - LETTERS * 0.2), LETTERS, name);
            }
        }
    }

    fn named(
        &self,
        names: &[String],
        places: &[Place],
        radii: &[f64],
        size: Place,
    ) -> Vec<Option<Rectangle>> {
        let mut degrees = vec![0_usize; self.spots.len()];
        for line in &self.lines {
            degrees[line.source] += 1;
            degrees[line.target] += 1;
        }
        let mut order: Vec<usize> = (0..self.spots.len()).collect();
        order.sort_by_key(|spot| (!self.spots[*spot].is_start, usize::MAX - degrees[*spot]));
        let edges: Vec<(Place, Place)> =
            self.lines.iter().map(|line| (places[line.source], places[line.target])).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        names::place(&names, places, radii, &edges, size, &order)
    }
}

/// Colour and dashes of the type at this place in the legend.
fn look(at: usize) -> (String, &'static str) {
    let dashes = if at < OF_TYPES.len() { "" } else { " stroke-dasharray=\"7 4\"" };
    (hex(OF_TYPES[at % OF_TYPES.len()]), dashes)
}

/// Where the middle of a bent line is pulled to.
fn bent(from: Place, to: Place, bend: f64) -> Place {
    let (x, y) = (to.0 - from.0, to.1 - from.1);
    let length = x.hypot(y).max(1e-6);
    ((from.0 + to.0) / 2.0 - y / length * bend * 2.0, (from.1 + to.1) / 2.0 + x / length * bend * 2.0)
}

/// The place at a distance from one on the way to another.
fn toward(from: Place, to: Place, distance: f64) -> Place {
    let (x, y) = (to.0 - from.0, to.1 - from.1);
    let by = distance / x.hypot(y).max(1e-6);
    (from.0 + x * by, from.1 + y * by)
}

fn write_head(out: &mut String, tip: Place, direction: Place, color: &str) {
    let back = toward(tip, (tip.0 - direction.0, tip.1 - direction.1), HEAD_LENGTH);
    let length = direction.0.hypot(direction.1).max(1e-6);
    let (x, y) = (-direction.1 / length * HEAD_WIDTH, direction.0 / length * HEAD_WIDTH);
    let _ = writeln!(
        out,
        "<polygon points=\"{:.1},{:.1} {:.1},{:.1} {:.1},{:.1}\" fill=\"{color}\"/>",
        tip.0,
        tip.1,
        back.0 + x,
        back.1 + y,
        back.0 - x,
        back.1 - y
    );
}

/// A text with paper around its letters, so that it is read over a line.
fn write_text(out: &mut String, (x, y): Place, size: f64, text: &str) {
    let _ = writeln!(
        out,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" font-family=\"Roboto, sans-serif\" font-size=\"{size}\" fill=\"{}\" \
         stroke=\"{}\" stroke-width=\"3\" stroke-linejoin=\"round\" paint-order=\"stroke\">{}</text>",
        hex(INK),
        hex(PAPER),
        escaped(text)
    );
}

fn hex(color: RGBColor) -> String {
    format!("#{:02X}{:02X}{:02X}", color.0, color.1, color.2)
}

/// A name of one line that is not too long.
fn short(name: &str) -> String {
    let name: String = name.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    if name.chars().count() <= NAME_LETTERS {
        return name;
    }
    name.chars().take(NAME_LETTERS - 3).chain("...".chars()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spots(count: usize) -> Vec<Spot> {
        (0..count).map(|at| Spot { name: format!("Airport <{at}>"), is_start: at == 0 }).collect()
    }

    fn link(source: usize, target: usize, kind: &str) -> Link {
        Link { source, target, kind: kind.into() }
    }

    /// Numbers of an attribute of all elements that begin with `element`.
    fn numbers(svg: &str, element: &str, name: &str) -> Vec<f64> {
        let of = svg.lines().filter(|line| line.contains(element));
        let mark = format!(" {name}=\"");
        of.filter_map(|line| line.split(element).nth(1)?.split(&mark).nth(1)?.split('"').next()?.parse().ok())
            .collect()
    }

    /// A hub, a chain behind it, edges both ways, alike and around.
    fn many(count: usize) -> Network {
        let mut links: Vec<Link> = (1..count / 2).map(|at| link(0, at, "FLIES")).collect();
        links.extend((count / 2..count).map(|at| link(at, at - count / 2, "DRIVES")));
        links.extend([
            link(1, 0, "FLIES"),
            link(1, 0, "FLIES"),
            link(0, 0, "RESTS"),
            link(0, count, "NOWHERE"),
        ]);
        Network::new("^air", "a note", spots(count), links)
    }

    #[test]
    fn all_is_drawn_once_inside_the_sheet_and_names_do_not_meet() {
        for count in [2, 20, 150] {
            let network = many(count);
            let svg = network.svg();
            assert_eq!(svg, many(count).svg(), "the same again");
            assert_eq!(svg.matches("<circle").count(), count);
            // Alike edges are one line; each entry of the legend has a head, too.
            assert_eq!(svg.matches("<polygon").count(), network.lines.len() + network.kinds.len());
            assert!(svg.contains("2 x Airport &lt;1&gt; -[FLIES]-&gt;") && !svg.contains("NOWHERE"), "{svg}");
            let (wide, high) = network.size();
            assert!(numbers(&svg, "<circle", "cx").iter().all(|x| (0.0..wide).contains(x)));
            assert!(numbers(&svg, "<circle", "cy").iter().all(|y| (0.0..high).contains(y)));
            let body = svg.split("<g transform").nth(1).unwrap();
            let (left, bottom) = (numbers(body, "<text", "x"), numbers(body, "<text", "y"));
            let letters = f64::from(width("Airport <100>", LETTERS)) - 20.0;
            for (at, (x, y)) in left.iter().zip(&bottom).enumerate() {
                let apart = |(a, b): (&f64, &f64)| (a - x).abs() > letters || (b - y).abs() > LETTERS - 0.2;
                assert!(
                    left.iter().zip(&bottom).take(at).all(apart),
                    "{count}: a name over another at {x} {y}"
                );
            }
            assert!(left.len() * 10 > count * 8, "{} of {count} names have room", left.len());
        }
    }

    #[test]
    fn types_can_be_told_apart_by_colour_and_dashes() {
        let kinds = 20;
        let links: Vec<Link> = (0..kinds).map(|at| link(at, at + 1, &format!("T{at:02}"))).collect();
        let network = Network::new("", "", spots(kinds + 1), links);
        let legend = network.legend();
        let looks: std::collections::BTreeSet<_> =
            legend.iter().map(|(_, color, dashes)| (color, dashes)).collect();
        assert_eq!((legend.len(), looks.len()), (TYPES_MAX, TYPES_MAX));
        assert_eq!(legend[TYPES_MAX - 1].0, "7 other types (7)");
        assert!(network.svg().contains("stroke-dasharray"));
    }

    #[test]
    fn strange_networks_are_drawn_too() {
        for network in [
            Network::new("", "", Vec::new(), Vec::new()),
            Network::new(
                "t",
                "n",
                vec![Spot { name: "x\n".repeat(200), is_start: false }],
                vec![link(0, 0, "")],
            ),
        ] {
            assert!(network.png(400).is_ok());
        }
    }
}
