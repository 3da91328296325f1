//! The log of events.

use std::io::{self, Write};

use super::output::{Kind, Output, table};
use super::workload_names;
use crate::domain::SimTime;
use crate::format::Calendar;
use nodecast_world::Outcome;

/// `events.jsonl`: what happened and why, one JSON object a line, in order; for a sink a row of each.
///
/// # Errors
/// Whatever `output` returns.
pub fn events(outcome: &Outcome, output: &mut Output<'_>) -> io::Result<()> {
    match output {
        Output::File(file) => lines(outcome, *file),
        Output::Sink(_) => rows(outcome, output),
    }
}

/// The events as cells.
fn rows(outcome: &Outcome, output: &mut Output<'_>) -> io::Result<()> {
    let columns = [
        ("at_seconds", Kind::Seconds),
        ("time", Kind::Time),
        ("kind", Kind::Text),
        ("workload", Kind::Text),
        ("pod", Kind::Text),
        ("node", Kind::Text),
        ("decision", Kind::Text),
        ("message", Kind::Text),
    ];
    let calendar = Calendar::new(&outcome.about.start);
    let record = &outcome.record;
    let workloads = workload_names(outcome);
    table(output, &columns, &record.events, |event, row| {
        row.at(event.at)
            .time(calendar.instant(event.at))
            .text(event.kind.as_str())
            .optional_text(event.workload.map(|workload| workloads.get(workload.index()).map_or("", String::as_str)))
            .optional_text(event.pod.and_then(|pod| record.pods.name(pod)))
            .optional_text(event.node.and_then(|node| record.nodes.get(node.index())).map(|node| node.name.as_str()))
            .optional_shown(event.command)
            .text(event.message);
    })
}

/// The events as JSON lines.
fn lines(outcome: &Outcome, output: &mut dyn Write) -> io::Result<()> {
    let calendar = Calendar::new(&outcome.about.start);
    let record = &outcome.record;
    let workloads = workload_names(outcome);
    // Much happens at one instant.
    let (mut instant, mut beginning) = (None, Vec::new());
    let mut line = Vec::new();
    for event in &record.events {
        if instant != Some(event.at) {
            instant = Some(event.at);
            beginning.clear();
            begin_line(&mut beginning, event.at, calendar)?;
        }
        line.clear();
        line.extend_from_slice(&beginning);
        line.extend_from_slice(b",\"kind\":\"");
        line.extend_from_slice(event.kind.as_str().as_bytes());
        line.push(b'"');
        let mut name = |key: &str, name: Option<&str>| {
            let Some(name) = name else { return Ok(()) };
            line.extend_from_slice(key.as_bytes());
            text(&mut line, name)
        };
        name(
            ",\"workload\":",
            event.workload.map(|workload| workloads.get(workload.index()).map_or("", String::as_str)),
        )?;
        name(",\"pod\":", event.pod.and_then(|pod| record.pods.name(pod)))?;
        name(",\"node\":", event.node.and_then(|node| record.nodes.get(node.index())).map(|node| node.name.as_str()))?;
        name(",\"decision\":", event.command.map(|command| command.to_string()).as_deref())?;
        name(",\"message\":", Some(event.message))?;
        line.extend_from_slice(b"}\n");
        output.write_all(&line)?;
    }
    Ok(())
}

/// A text as JSON. Few hold anything that has to be escaped, and to find that out for a whole text at once is quick.
fn text(line: &mut Vec<u8>, text: &str) -> io::Result<()> {
    let escaped = |byte: u8| byte < b' ' || byte == b'"' || byte == b'\\';
    if text.bytes().fold(false, |found, byte| found | escaped(byte)) {
        return Ok(serde_json::to_writer(line, text)?);
    }
    line.push(b'"');
    line.extend_from_slice(text.as_bytes());
    line.push(b'"');
    Ok(())
}

/// The members with which the line of every event at an instant begins.
fn begin_line(line: &mut Vec<u8>, at: SimTime, calendar: Calendar) -> io::Result<()> {
    line.extend_from_slice(b"{\"at_seconds\":");
    serde_json::to_writer(&mut *line, &at.as_secs_f64())?;
    if let Some(time) = calendar.time(at) {
        line.extend_from_slice(b",\"time\":");
        serde_json::to_writer(line, &time)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn event_text_equals_serde_json_output() {
        let every_byte: Vec<String> = (0..=0x7f_u8).map(|byte| format!("a{}b", char::from(byte))).collect();
        let others = ["", "web-00012", "caf\u{e9} \u{2026}", "\\", "a \"quoted\" word\n"].map(str::to_owned);
        for byte in every_byte.iter().chain(&others) {
            let mut line = Vec::new();
            text(&mut line, byte).unwrap();
            assert_eq!(String::from_utf8(line).unwrap(), serde_json::to_string(byte).unwrap());
        }
    }
}
