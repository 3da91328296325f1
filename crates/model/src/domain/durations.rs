//! Spans of time as flags of Go programs state them.

use super::SimDuration;

/// A span as Go writes it: `10m`, `1h30m`, `1.5s`.
///
/// # Errors
/// The text is not one.
pub fn duration(text: &str) -> Result<SimDuration, String> {
    let wrong = || format!("`{text}` is not a span of time such as 30s, 10m or 1h30m");
    let (sign, mut rest) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
    if rest == "0" {
        return Ok(SimDuration::ZERO);
    }
    if rest.is_empty() {
        return Err(wrong());
    }
    let mut micros = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(wrong)?;
        let number: f64 = rest[..digits].parse().map_err(|_| wrong())?;
        rest = &rest[digits..];
        let letters = rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len());
        let unit = match &rest[..letters] {
            "h" => 3_600e6,
            "m" => 60e6,
            "s" => 1e6,
            "ms" => 1e3,
            "us" | "µs" => 1.0,
            "ns" => 1e-3,
            _ => return Err(wrong()),
        };
        micros += number * unit;
        rest = &rest[letters..];
    }
    Ok(SimDuration::from_secs_f64(f64::from(sign) * micros / 1e6))
}
