//! Draws panels of curves over a common time axis as one SVG, through plotters.
//!
//! plotters is used for its shapes and its SVG, not for its charts: built without font libraries it cannot measure text,
//! and its ticks would pass through the platform's floating-point functions.

use std::collections::BTreeMap;

use nodecast_model::text::cells::printable;
use plotters::coord::Shift;
use plotters::prelude::{
    Color, DrawingArea, IntoDrawingArea, IntoFont, PathElement, RGBAColor, RGBColor, Rectangle, SVGBackend, Text,
    TextStyle,
};
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::axis::{ValueAxis, time_ticks, value_axis};
use crate::curves::{Panel, Series};
use crate::domain::{SimDuration, SimTime};
use crate::short_names::{apart, without_middle};

const WIDTH: i32 = 760;
const LEFT: i32 = 64;
const RIGHT: i32 = 16;
const TITLE_HEIGHT: i32 = 34;
const PANEL_HEIGHT: i32 = 170;
const LEGEND_ROW_HEIGHT: i32 = 20;
const PANEL_GAP: i32 = 22;
const FOOT_HEIGHT: i32 = 46;
/// plotters divides font sizes by 1.24: these are 16 and 13 pixels on the page.
const TITLE_SIZE: f64 = 16.0 * 1.24;
const TEXT_SIZE: f64 = 13.0 * 1.24;
/// A generous mean width of a character at 13 pixels, for the legend's layout.
const CHARACTER_WIDTH: i32 = 7;

const INK: RGBColor = RGBColor(0x57, 0x60, 0x6a);
/// Told apart by colour-blind readers, legible on white and on near-black.
const PALETTE: [RGBColor; 5] = [
    RGBColor(0x2f, 0x81, 0xd6),
    RGBColor(0xd6, 0x7d, 0x1e),
    RGBColor(0x1f, 0x9e, 0x77),
    RGBColor(0x9a, 0x67, 0xc8),
    RGBColor(0xd6, 0x45, 0x5b),
];

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// From the end of a name to that of its place in the legend, with the mark before it.
const BESIDE_NAME: i32 = 40;
/// Characters of a name that one row of the legend has room for.
const NAME_MAX: usize = ((WIDTH - RIGHT - LEFT - BESIDE_NAME) / CHARACTER_WIDTH).unsigned_abs() as usize;

/// The legend's series with their names in rows that fit the width.
fn legend_rows(panel: &Panel) -> Vec<Vec<(&Series, String)>> {
    let mut rows = vec![Vec::new()];
    let mut right = LEFT;
    let names: Vec<&str> = panel.series.iter().map(|series| series.name.as_str()).collect();
    for (series, name) in panel.series.iter().zip(apart(&names, NAME_MAX, without_middle)) {
        let width = legend_width(&name);
        if right + width > WIDTH - RIGHT && right > LEFT {
            rows.push(Vec::new());
            right = LEFT;
        }
        right += width;
        if let Some(row) = rows.last_mut() {
            row.push((series, name));
        }
    }
    rows
}

/// Height of the lines above a chart: its unit, then the legend.
fn head_height(panel: &Panel) -> i32 {
    LEGEND_ROW_HEIGHT * (1 + legend_rows(panel).len() as i32) + 6
}

/// A curve that stands behind its sibling is lighter, yet clear on white and on near-black.
fn color(series: &Series) -> RGBAColor {
    PALETTE[series.color % PALETTE.len()].mix(if series.faint { 0.7 } else { 1.0 })
}

fn legend_width(name: &str) -> i32 {
    let characters = i32::try_from(name.chars().count()).unwrap_or(i32::MAX / 16);
    characters * CHARACTER_WIDTH + BESIDE_NAME
}

/// Draws `panels` below each other. The error is plotters' own text.
pub(super) fn draw(title: &str, duration: SimDuration, panels: &[Panel]) -> Result<String, String> {
    let panels_height: i32 = panels.iter().map(|panel| head_height(panel) + PANEL_HEIGHT + PANEL_GAP).sum();
    let height = TITLE_HEIGHT + panels_height - PANEL_GAP + FOOT_HEIGHT;
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (WIDTH.unsigned_abs(), height.unsigned_abs())).into_drawing_area();
        let canvas = Canvas { area, duration };
        canvas.text(title, (LEFT, 8), TITLE_SIZE, HPos::Left, VPos::Top)?;
        let mut top = TITLE_HEIGHT;
        for (index, panel) in panels.iter().enumerate() {
            top += head_height(panel);
            canvas.panel(panel, top, index + 1 == panels.len())?;
            top += PANEL_HEIGHT + PANEL_GAP;
        }
        canvas.text(
            "time since the start",
            ((LEFT + WIDTH - RIGHT) / 2, height - 4),
            TEXT_SIZE,
            HPos::Center,
            VPos::Bottom,
        )?;
        canvas.area.present().map_err(|error| error.to_string())?;
    }
    Ok(svg)
}

struct Canvas<'a> {
    area: Area<'a>,
    duration: SimDuration,
}

impl Canvas<'_> {
    /// A chart whose upper edge is at `top`, its unit and legend above it.
    fn panel(&self, panel: &Panel, top: i32, is_last: bool) -> Result<(), String> {
        let max = panel.series.iter().map(Series::max).fold(0.0, f64::max);
        let axis = value_axis(max, panel.whole);
        let mut line_middle = top - head_height(panel) + LEGEND_ROW_HEIGHT / 2;
        self.text(panel.unit, (LEFT, line_middle), TEXT_SIZE, HPos::Left, VPos::Center)?;
        for row in legend_rows(panel) {
            line_middle += LEGEND_ROW_HEIGHT;
            self.legend(&row, line_middle)?;
        }
        for (value, label) in &axis.ticks {
            let y = y_of(*value, &axis, top);
            self.path(vec![(LEFT, y), (WIDTH - RIGHT, y)], INK.mix(0.25), 1)?;
            self.text(label, (LEFT - 8, y), TEXT_SIZE, HPos::Right, VPos::Center)?;
        }
        for (at, label) in time_ticks(self.duration) {
            let x = self.x_of(SimTime::ZERO + at);
            self.path(vec![(x, top + PANEL_HEIGHT), (x, top + PANEL_HEIGHT + 4)], INK.mix(0.6), 1)?;
            if is_last {
                self.text(&label, (x, top + PANEL_HEIGHT + 8), TEXT_SIZE, HPos::Center, VPos::Top)?;
            }
        }
        for series in &panel.series {
            for stroke in self.strokes(series, &axis, top) {
                self.path(stroke, color(series), 2)?;
            }
        }
        Ok(())
    }

    fn legend(&self, row: &[(&Series, String)], middle: i32) -> Result<(), String> {
        let mut left = LEFT;
        for (series, name) in row {
            let swatch = Rectangle::new([(left, middle - 2), (left + 18, middle + 1)], color(series).filled());
            self.area.draw(&swatch).map_err(|error| error.to_string())?;
            self.text(name, (left + 24, middle), TEXT_SIZE, HPos::Left, VPos::Center)?;
            left += legend_width(name);
        }
        Ok(())
    }

    fn x_of(&self, at: SimTime) -> i32 {
        let span = i128::from(self.duration.as_micros().max(1));
        let since = i128::from(at.as_micros()).clamp(0, span);
        LEFT + (i128::from(WIDTH - LEFT - RIGHT) * since / span) as i32
    }

    /// The curve as connected runs of pixels. At most four points stand in one column (first, lowest, highest, last), so
    /// that no peak is lost and a long run does not make a large file.
    fn strokes(&self, series: &Series, axis: &ValueAxis, top: i32) -> Vec<Vec<(i32, i32)>> {
        let mut strokes = Vec::new();
        let mut columns: BTreeMap<i32, Column> = BTreeMap::new();
        for &(at, value) in &series.points {
            match value.get() {
                Some(value) => {
                    let y = y_of(value, axis, top);
                    columns
                        .entry(self.x_of(at))
                        .and_modify(|column| column.add(y))
                        .or_insert_with(|| Column::from_y(y));
                }
                None => strokes.push(connect(&std::mem::take(&mut columns), series.steps)),
            }
        }
        strokes.push(connect(&columns, series.steps));
        strokes.retain(|stroke| !stroke.is_empty());
        strokes
    }

    fn path(&self, points: Vec<(i32, i32)>, color: RGBAColor, width: u32) -> Result<(), String> {
        self.area.draw(&PathElement::new(points, color.stroke_width(width))).map_err(|error| error.to_string())
    }

    fn text(&self, text: &str, at: (i32, i32), size: f64, horizontal: HPos, vertical: VPos) -> Result<(), String> {
        let style = TextStyle::from(("sans-serif", size).into_font()).color(&INK).pos(Pos::new(horizontal, vertical));
        self.area.draw(&Text::new(printable(text), at, style)).map_err(|error| error.to_string())
    }
}

fn y_of(value: f64, axis: &ValueAxis, top: i32) -> i32 {
    let height = f64::from(PANEL_HEIGHT) * (value / axis.top).clamp(0.0, 1.0);
    top + PANEL_HEIGHT - libm::round(height) as i32
}

/// What a curve does within one column of pixels.
struct Column {
    first: i32,
    lowest: i32,
    highest: i32,
    last: i32,
}

impl Column {
    const fn from_y(y: i32) -> Self {
        Self { first: y, lowest: y, highest: y, last: y }
    }

    fn add(&mut self, y: i32) {
        self.lowest = self.lowest.min(y);
        self.highest = self.highest.max(y);
        self.last = y;
    }
}

/// Columns as one line of pixels without points that change nothing.
fn connect(columns: &BTreeMap<i32, Column>, steps: bool) -> Vec<(i32, i32)> {
    let mut stroke: Vec<(i32, i32)> = Vec::new();
    for (&x, column) in columns {
        let before = stroke.last().map(|point| point.1).filter(|_| steps);
        for y in before.into_iter().chain([column.first, column.lowest, column.highest, column.last]) {
            append(&mut stroke, (x, y));
        }
    }
    // A lone point is drawn as a short dash, or it would not be seen.
    if let [(x, y)] = stroke[..] {
        stroke.push((x + 2, y));
    }
    stroke
}

/// Adds a point; a point between two others on a level line is dropped.
fn append(stroke: &mut Vec<(i32, i32)>, point: (i32, i32)) {
    if stroke.last() == Some(&point) {
        return;
    }
    if let [.., before, last] = stroke[..]
        && before.1 == last.1
        && last.1 == point.1
        && before.0 <= last.0
    {
        stroke.pop();
    }
    stroke.push(point);
}

#[cfg(test)]
mod tests {
    use super::{Panel, Series, draw};
    use crate::curves::Point;
    use crate::domain::{SimDuration, SimTime};

    fn points(values: &[Option<f64>]) -> Vec<Point> {
        values
            .iter()
            .enumerate()
            .map(|(n, &value)| (SimTime::from_micros(n as i64 * 1_000_000), value.into()))
            .collect()
    }

    fn drawn(series: Series) -> String {
        let mut panel = Panel::counts("things");
        panel.series.push(series);
        draw("Title", SimDuration::from_secs(10), &[panel]).unwrap_or_default()
    }

    #[test]
    fn a_gap_splits_a_curve_in_two() {
        let curve = |values: &[Option<f64>]| {
            drawn(Series::line("a", 0, points(values))).matches("#2F81D6\" stroke-width=\"2\"").count()
        };
        assert_eq!(curve(&[Some(1.0), Some(2.0), Some(3.0), Some(1.0)]), 1);
        assert_eq!(curve(&[Some(1.0), None, Some(3.0), Some(1.0)]), 2);
    }

    #[test]
    fn plot_size_is_bounded_by_its_width() {
        let zigzag: Vec<Option<f64>> = (0..200_000).map(|n| Some(f64::from(n % 7))).collect();
        let panel = |points| {
            let mut panel = Panel::counts("things");
            panel.series.push(Series::line("a", 0, points));
            panel
        };
        let svg = draw("Title", SimDuration::from_secs(200_000), &[panel(points(&zigzag))]).unwrap_or_default();
        assert!(svg.len() > 1_000 && svg.len() < 60_000, "{}", svg.len());
    }

    #[test]
    fn long_legend_names_are_cut_but_distinct() {
        let name = |number: usize| format!("{}/{}-{number}-{} wanted", "n".repeat(63), "w".repeat(30), "w".repeat(30));
        let mut panel = Panel::counts("things");
        panel.series =
            (0..2).map(|number| Series::line(name(number), number, points(&[Some(1.0), Some(2.0)]))).collect();
        let svg = draw("Title", SimDuration::from_secs(10), &[panel]).unwrap_or_default();
        let names: Vec<&str> = svg.lines().filter(|line| line.contains("wanted")).collect();
        assert!(names.len() == 2 && names[0] != names[1], "{svg}");
        assert!(
            names.iter().all(|name| name.contains('\u{2026}') && name.chars().count() <= super::NAME_MAX),
            "{names:?}"
        );
    }

    #[test]
    fn names_are_escaped() {
        let svg = drawn(Series::line("<b>&\"\u{8}", 0, points(&[Some(1.0), Some(2.0)])));
        assert!(svg.contains("&lt;b&gt;&amp;&quot;\u{fffd}") && !svg.contains("<b>"));
    }
}
