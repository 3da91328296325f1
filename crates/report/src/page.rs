//! `report.html`: one page that needs nothing else, the answers first.

mod answers;
pub mod bars;
mod churn;
pub mod data;
mod html;
mod policy;
mod sections;
mod short;
mod upgrades;

use super::plots::Plots;
use super::summary::Summary;
pub use html::{Html, prose, sentence, text};
use nodecast_world::Outcome;

/// Colours and shapes that every page shares.
pub const STYLE: &str = include_str!("page/style.css");
/// The look of the sentence that answers.
pub const VERDICT_STYLE: &str = "\
.verdict { font-size: 1.15rem; background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 0.75rem 1rem; margin: 1rem 0; }
.verdict p { margin: 0.3rem 0; }
";
/// The look of charts, of the replay and of what moves them.
pub const CHART_STYLE: &str = include_str!("page/charts.css");
/// What every page with charts runs.
pub const CHART_SCRIPT: [&str; 3] = [include_str!("page/core.js"), include_str!("page/charts.js"), SCROLL_SCRIPT];
/// What a page without charts runs: it says which tables scroll, and lets keys scroll them.
pub const SCROLL_SCRIPT: &str = include_str!("page/scroll.js");
/// What the page of a run has beside its charts.
const RUN_SCRIPT: [&str; 4] = [
    include_str!("page/replay.js"),
    include_str!("page/strips.js"),
    include_str!("page/decisions.js"),
    include_str!("page/folds.js"),
];

/// The page of a run. `command` is the command line that repeats it.
pub fn render(outcome: &Outcome, summary: &Summary, plots: &Plots, command: &str) -> String {
    let about = &summary.about;
    let mut page = Html::new();
    let scripts = [&CHART_SCRIPT[..], &RUN_SCRIPT[..]].concat();
    begin(&mut page, &format!("{}, policy {}", about.scenario, about.policy), "", &scripts);
    sections::heading(&mut page, summary);
    answers::answers(&mut page, summary);
    sections::timeline(&mut page, (outcome, summary), plots, command);
    fold(&mut page, ("cost", "Cost", short::cost(summary)), |page| {
        sections::cost(page, summary);
        sections::bill(page, outcome);
    });
    fold(&mut page, ("waiting", "Wait times and availability", short::waiting(summary)), |page| {
        sections::waiting(page, summary);
        sections::reached_limits(page, summary);
        sections::control_plane(page, summary);
        sections::replicas(page, summary);
        sections::requests(page, summary);
        sections::queues(page, summary);
    });
    fold(&mut page, ("nodes", "Nodes and churn", short::nodes(summary)), |page| {
        sections::nodes(page, outcome, summary);
        churn::section(page, summary);
        upgrades::section(page, summary);
    });
    fold(&mut page, ("scaling", "Scaling", short::scaling(summary)), |page| {
        sections::scaling(page, summary);
        sections::vertical(page, summary);
    });
    fold(&mut page, ("rests-on", "Assumptions and warnings", short::rests_on(summary)), |page| {
        sections::warnings(page, summary);
        sections::assumptions(page, summary);
    });
    page.raw("</main>\n");
    sections::footer(&mut page, summary, command);
    let others = page.bytes() + script_text(&scripts).len();
    script(&mut page, &data::page_data(outcome, others), &scripts);
    page.raw("</body>\n</html>\n");
    page.finish()
}

/// A part that is folded: its id, its question and its answer in short, and what is in it.
fn fold(page: &mut Html, (id, question, answer): (&str, &str, String), part: impl FnOnce(&mut Html)) {
    page.fold(id, question, &answer);
    part(page);
    page.end_fold();
}

/// The head of a page with charts, up to the beginning of its content; `scripts` are all that it may run.
pub fn begin(page: &mut Html, title: &str, own_style: &str, scripts: &[&str]) {
    head(page, title, &[STYLE, CHART_STYLE, own_style], scripts);
}

/// The head of a page with these styles, up to the beginning of its content. Its policy lets the browser apply them and run `scripts`,
/// and nothing else, whatever else the page may come to hold.
pub fn head(page: &mut Html, title: &str, styles: &[&str], scripts: &[&str]) {
    head_of(page, title, (styles, scripts), false);
}

/// The same for a page that this program serves: it may ask for more where it came from.
pub fn served_head(page: &mut Html, title: &str, styles: &[&str], scripts: &[&str]) {
    head_of(page, title, (styles, scripts), true);
}

fn head_of(page: &mut Html, title: &str, (styles, scripts): (&[&str], &[&str]), served: bool) {
    let style = format!("\n{}", styles.concat());
    let policy =
        policy::content_security_policy(&style, (!scripts.is_empty()).then(|| script_text(scripts)).as_deref(), served);
    page.raw("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n");
    page.raw(&format!("<meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\"/>\n"));
    page.raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n");
    page.raw("<meta name=\"color-scheme\" content=\"light dark\"/>\n");
    page.raw(&format!("<title>{} \u{2013} nodecast</title>\n", text(title)));
    page.raw(&format!("<style>{style}</style>\n</head>\n<body>\n<main>\n"));
}

/// The data of a page and what is done with it.
pub fn script(page: &mut Html, data: &str, parts: &[&str]) {
    page.raw(&format!("<script type=\"application/json\" id=\"data\">{data}</script>\n"));
    script_without_data(page, parts);
}

/// What a page without data does.
pub fn script_without_data(page: &mut Html, parts: &[&str]) {
    page.raw(&format!("<script>{}</script>\n", script_text(parts)));
}

/// What stands in the page's one script.
fn script_text(parts: &[&str]) -> String {
    // A function of its own keeps the script's names out of the page's.
    format!("\n(() => {{\n\"use strict\";\n{}}})();\n", parts.concat())
}

#[cfg(test)]
mod tests {
    use super::{CHART_SCRIPT, CHART_STYLE, STYLE};

    /// A colour as numbers from 0 to 1.
    type Color = [f64; 3];

    fn color(hex: &str) -> Color {
        let part = |from: usize| f64::from(u8::from_str_radix(&hex[from..from + 2], 16).unwrap()) / 255.0;
        [part(1), part(3), part(5)]
    }

    /// The contrast of two colours as WCAG 2.2 defines it, from 1 to 21.
    fn contrast(one: Color, other: Color) -> f64 {
        let linear = |part: f64| if part <= 0.04045 { part / 12.92 } else { libm::pow((part + 0.055) / 1.055, 2.4) };
        let light = |[red, green, blue]: Color| 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
        let (one, other) = (light(one), light(other));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    /// A variable of the style, in light or in dark.
    fn shade(name: &str, dark: bool) -> Color {
        let style = [STYLE, CHART_STYLE].concat();
        let start = format!("--{name}: ");
        let found: Vec<&str> = style.match_indices(&start).map(|(at, _)| &style[at + start.len()..][..7]).collect();
        assert_eq!(found.len(), 2, "{name} is stated for light and for dark");
        color(found[usize::from(dark)])
    }

    /// Every colour that a curve, a layer or a pod may have, up to those that are worked out.
    fn series() -> Vec<&'static str> {
        let script = CHART_SCRIPT[0];
        let of = |name: &str| {
            let start = script.find(name).unwrap();
            script[start..].lines().next().unwrap()
        };
        let lines = [of("const PALETTE"), of("const NO_COLOR")];
        lines.iter().flat_map(|line| line.split('"').filter(|part| part.starts_with('#'))).collect()
    }

    #[test]
    fn series_colours_have_contrast_in_both_themes() {
        assert_eq!(series().len(), 9);
        for dark in [false, true] {
            let grounds = ["page", "card"].map(|ground| shade(ground, dark));
            for ground in grounds {
                for item in series() {
                    assert!(contrast(color(item), ground) >= 3.0, "{item}, dark: {dark}");
                }
                for mark in ["bad", "warn"] {
                    assert!(contrast(shade(mark, dark), ground) >= 3.0, "{mark}, dark: {dark}");
                }
            }
            // Boxes and strips stand on the page itself.
            for mark in ["spot", "demand", "frame", "waits", "heat-high"] {
                assert!(contrast(shade(mark, dark), grounds[0]) >= 3.0, "{mark}, dark: {dark}");
            }
        }
    }

    /// Lightness and two hues, as a reader sees a colour through this matrix of linear light.
    ///
    /// Source: Machado, Oliveira, Fernandes 2009, severity 1.0; CIE 1976 L*a*b*.
    fn seen([red, green, blue]: Color, matrix: [[f64; 3]; 3]) -> Color {
        let linear = |part: f64| if part <= 0.04045 { part / 12.92 } else { libm::pow((part + 0.055) / 1.055, 2.4) };
        let light = [red, green, blue].map(linear);
        let [red, green, blue] =
            matrix.map(|row| (row[0] * light[0] + row[1] * light[1] + row[2] * light[2]).clamp(0.0, 1.0));
        let root = |t: f64| if t > 0.008_856 { libm::cbrt(t) } else { 7.787 * t + 16.0 / 116.0 };
        let x = root((0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.950_47);
        let y = root(0.2126 * red + 0.7152 * green + 0.0722 * blue);
        let z = root((0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.088_83);
        [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
    }

    #[test]
    fn colours_of_one_pattern_differ_for_colour_blind_readers() {
        let deuteranopia = [[0.367, 0.861, -0.228], [0.28, 0.673, 0.047], [-0.012, 0.043, 0.969]];
        let protanopia = [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]];
        let series = series();
        for group in series[..8].chunks(4) {
            for (n, matrix) in (0..4).flat_map(|n| [(n, deuteranopia), (n, protanopia)]) {
                for other in &group[n + 1..] {
                    let [one, two] = [group[n], *other].map(|hex| seen(color(hex), matrix));
                    let squares = one.iter().zip(two).map(|(a, b)| (a - b) * (a - b)).sum::<f64>();
                    assert!(libm::sqrt(squares) >= 15.0, "{} and {other}", group[n]);
                }
            }
        }
    }

    #[test]
    fn text_is_legible_in_light_and_in_dark() {
        for dark in [false, true] {
            for ground in ["page", "card"].map(|ground| shade(ground, dark)) {
                for ink in ["ink", "faint", "good", "bad", "link"] {
                    assert!(contrast(shade(ink, dark), ground) >= 4.5, "{ink}, dark: {dark}");
                }
            }
            // The head of a node's box.
            for ground in ["spot", "demand"] {
                assert!(contrast([1.0; 3], shade(ground, dark)) >= 4.5, "{ground}, dark: {dark}");
            }
        }
    }
}
