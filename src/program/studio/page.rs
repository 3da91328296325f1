//! The page: what stands there before its script draws the controls and asks for answers.

use serde_json::{Value, json};

use super::session::Session;
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

/// The page of a session.
pub(super) fn render(session: &Session) -> String {
    let mut page = Html::new();
    let scripts = [&CHART_SCRIPT[..], &SCRIPT[..]].concat();
    let name = &session.scenario.name;
    served_head(&mut page, &format!("{name}, studio"), &[STYLE, CHART_STYLE, OWN_STYLE], &scripts);
    page.raw("<header class=\"top\">\n");
    page.raw(&format!("<h1>{} <span class=\"faint\">{}</span></h1>\n", text(name), text(&session.policy)));
    page.raw(include_str!("page/studio.html"));
    page.raw("</main>\n");
    script(&mut page, &within_script(&about(session)), &scripts);
    page.raw("</body>\n</html>\n");
    page.finish()
}

/// What the script works with.
fn about(session: &Session) -> Value {
    // What this program has just written it can read.
    let mut about: Value = serde_json::from_str(&session.today).unwrap_or_else(|_| json!({}));
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
    put("controls", json!(session.controls.all()));
    put("warnings", json!(session.warnings.lines()));
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
