//! An SVG file as a PNG, with the letters that are compiled in: a machine may have no fonts at all.

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree};

use crate::Error;

/// Roboto, of which there are Latin letters; see its folder.
const LETTERS: &[u8] = include_bytes!("../font/Roboto-Latin.ttf");
/// Pixels for one of the SVG: screens have small ones.
const FINE: f32 = 2.0;

/// The bytes of the file, twice as wide as the SVG.
pub(crate) fn draw(svg: &str) -> Result<Vec<u8>, Error> {
    scaled(&tree(svg)?, FINE)
}

/// The bytes of the file, so many pixels wide.
pub(crate) fn draw_wide(svg: &str, pixels: u32) -> Result<Vec<u8>, Error> {
    let tree = tree(svg)?;
    scaled(&tree, pixels as f32 / tree.size().width())
}

fn tree(svg: &str) -> Result<Tree, Error> {
    let mut options = Options::default();
    options.fontdb_mut().load_font_data(LETTERS.to_vec());
    Tree::from_str(svg, &options).map_err(Error::new)
}

fn scaled(tree: &Tree, by: f32) -> Result<Vec<u8>, Error> {
    let size = tree.size().to_int_size().scale_by(by).ok_or_else(too_large)?;
    let mut pixels = Pixmap::new(size.width(), size.height()).ok_or_else(too_large)?;
    resvg::render(tree, Transform::from_scale(by, by), &mut pixels.as_mut());
    pixels.encode_png().map_err(Error::new)
}

fn too_large() -> Error {
    Error::new("too large for a picture")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_drawn_without_any_font_of_the_machine() {
        let dark = |text: &str| {
            let svg = format!(
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"100\" height=\"30\">\
                 <text y=\"20\" font-family=\"Roboto, sans-serif\">{text}</text></svg>"
            );
            let pixels = Pixmap::decode_png(&draw(&svg).unwrap()).unwrap();
            assert_eq!((pixels.width(), pixels.height()), (200, 60));
            pixels.pixels().iter().filter(|pixel| pixel.alpha() > 128).count()
        };
        assert!(dark("i") > 10 && dark("wide") > 3 * dark("i"));
        assert_eq!(dark(""), 0);
    }
}
