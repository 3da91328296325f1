//! The page: what stands there before its script draws the controls and asks for answers.

use serde_json::{Value, json};

use super::session::{Findings, Session};
use crate::report::page::data::within_script;
use crate::report::page::{CHART_SCRIPT, CHART_STYLE, Html, STYLE, script, served_head, text};

const OWN_STYLE: &str = include_str!("page/studio.css");
const SCRIPT: [&str; 4] = [
    include_str!("page/state.js"),
    include_str!("page/controls.js"),
    include_str!("page/answers.js"),
    include_str!("page/talk.js"),
];
const BESIDE_STYLE: &str = include_str!("page/beside.css");
const BESIDE_SCRIPT: &str = include_str!("page/beside.js");
const OPENING_SCRIPT: &str = include_str!("page/opening.js");

/// The page of a session; until its controls are found, one that says so.
pub(super) fn render(session: &Session) -> String {
    let found = match session.found() {
        Some(Ok(found)) => found,
        Some(Err(why)) => return opening(session, why),
        None => return opening(session, "Simulating today's settings"),
    };
    let mut page = Html::new();
    let scripts = [&CHART_SCRIPT[..], &SCRIPT[..]].concat();
    let name = &session.scenario.name;
    served_head(&mut page, &format!("{name}, studio"), &[STYLE, CHART_STYLE, OWN_STYLE], &scripts);
    page.raw("<header class=\"top\">\n");
    page.raw(&format!("<h1>{} <span class=\"faint\">{}</span></h1>\n", text(name), text(&session.policy)));
    page.raw(include_str!("page/studio.html"));
    page.raw("</main>\n");
    script(&mut page, &within_script(&about(session, found)), &scripts);
    page.raw("</body>\n</html>\n");
    page.finish()
}

/// The page before the controls are found; `status` is what it waits for, or why it waits in vain.
fn opening(session: &Session, status: &str) -> String {
    let mut page = Html::new();
    served_head(&mut page, &format!("{}, studio", session.scenario.name), &[STYLE], &[OPENING_SCRIPT]);
    page.element("h1", &session.scenario.name);
    page.element("p id=\"status\" role=\"status\"", status);
    page.raw("<noscript><p>Reload this page in a few seconds.</p></noscript>\n</main>\n");
    script(&mut page, "null", &[OPENING_SCRIPT]);
    page.raw("</body>\n</html>\n");
    page.finish()
}

/// What the script works with.
fn about(session: &Session, found: &Findings) -> Value {
    // What this program has just written it can read.
    let mut about: Value = serde_json::from_str(&found.today).unwrap_or_else(|_| json!({}));
    let charts = about.get_mut("charts").map_or(Value::Null, Value::take);
    let mut put = |key: &str, value: Value| {
        if let Value::Object(entries) = &mut about {
            entries.insert(key.to_owned(), value);
        }
    };
    put("charts", json!([]));
    put("today", charts);
    put("scenario", json!(session.scenario.name));
    put("file", json!(session.request.scenario.display().to_string()));
    put("policy", json!(session.policy));
    put("seed", json!(session.seed));
    put("replications", json!(session.request.replications));
    put("controls", json!(found.controls.all()));
    put("warnings", json!(found.warnings.lines()));
    put("folder", json!(session.folder().display().to_string()));
    about
}

/// The reports of today and of a state beside each other, their replays going together. `query` is the state as `report` takes it.
pub(super) fn side_by_side(session: &Session, query: &str) -> String {
    let mut page = Html::new();
    let title = format!("{}: replay compared with today", session.scenario.name);
    served_head(&mut page, &title, &[STYLE, BESIDE_STYLE], &[BESIDE_SCRIPT]);
    page.element("h1", &title);
    page.element(
        "p class=\"note\"",
        "Both use the first seed, so load and Spot market are identical. The two replays move together.",
    );
    page.raw("<div class=\"beside\">\n");
    for (name, query) in [("Today", "values=%7B%7D"), ("Changed", query)] {
        page.raw("<section>\n");
        page.element("h2", name);
        page.raw(&format!("<iframe title=\"{name}\" src=\"report?{}#player\"></iframe>\n</section>\n", text(query)));
    }
    page.raw("</div>\n</main>\n");
    script(&mut page, "null", &[BESIDE_SCRIPT]);
    page.raw("</body>\n</html>\n");
    page.finish()
}
