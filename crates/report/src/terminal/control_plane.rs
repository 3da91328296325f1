//! The tier of the control plane, and the controllers that waited for its limits.

use super::{LABEL, availability};
use crate::format::{count, span};
use crate::summary::{Limited, Summary};

/// Adds the lines; none for a standard control plane that held no controller up for long.
pub(super) fn lines(summary: &Summary, lines: &mut Vec<String>) {
    let Some(control_plane) = &summary.controllers.control_plane else { return };
    let limited = summary.controllers.limited();
    if limited.is_empty() && !control_plane.is_provisioned() {
        return;
    }
    lines.push(format!("{:<LABEL$}{}", "control plane", control_plane.words()));
    let text = |limited: &Limited| {
        let (delayed, all) = (count(limited.delayed.0), count(limited.delayed.1));
        format!("{} ({}): {delayed} of {all} waited, max {}", limited.who, limited.limit, span(limited.longest_seconds))
    };
    let all: Vec<String> = limited.iter().map(text).collect();
    availability::list(lines, "  limited", &all, ("more controller", "more controllers"));
    lines.push(String::new());
}
