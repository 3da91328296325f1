//! Amounts of bytes that are not whole, most often memory with the suffix of CPU.

use super::lints;
use nodecast_model::text::InputError;
use nodecast_model::text::reader::Reader;
use nodecast_model::text::tree::Node;

/// Nanounits of a byte.
const BYTE: i128 = 1_000_000_000;
/// Below so many bytes nothing runs: whoever writes a fraction of them has mistaken the suffix.
const TOO_SMALL: i128 = 1 << 20;

/// Warns of memory and ephemeral storage under `key` that are no whole bytes, as `512m`, which is half a byte. A cluster stores `1.1Gi`
/// so too, as `1181116006400m`: that is rounded up, and changes nothing.
///
/// Source: Kubernetes 1.36 `pkg/api/pod/warnings.go`, `warningsForPodSpecAndMeta`, which has the API server warn of a "fractional byte
/// value".
///
/// # Errors
/// If an amount is no quantity.
pub(super) fn warn<'s>(reader: &mut Reader<'s>, amounts: &Node<'s>, key: &str) -> Result<(), InputError> {
    for name in ["memory", "ephemeral-storage"] {
        let Some(node) = amounts.get(name) else { continue };
        let nanos = reader.quantity(node, name)?.nanos();
        if nanos <= 0 || nanos % BYTE == 0 {
            continue;
        }
        let shown: String = node.as_text().unwrap_or_default().chars().take(40).collect();
        let (lint, help) = match shown.strip_suffix('m') {
            _ if nanos >= TOO_SMALL * BYTE => (&lints::ROUNDED_BYTES, "write whole bytes".to_owned()),
            Some(number) => (&lints::FRACTIONAL_BYTES, format!("did you mean `{number}M` or `{number}Mi`?")),
            None => (&lints::FRACTIONAL_BYTES, "write for example `512Mi`".to_owned()),
        };
        let bytes = (nanos + BYTE - 1) / BYTE;
        let unit = if bytes == 1 { "byte" } else { "bytes" };
        let message = format!("fractional byte value `{shown}` of `{name}` under `{key}`: it counts as {bytes} {unit}");
        reader.warn(lint, node.at, message, "not a whole number of bytes", &help);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::read_manifests;
    use nodecast_model::text::Source;
    use nodecast_model::text::error::Effect;

    #[test]
    fn fractional_byte_values_are_warned_about() {
        let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers:\n  - name: a\n    \
                   resources: {requests: {cpu: 500m, memory: 512m}, limits: {memory: 1181116006400m, ephemeral-storage: 2.5}}\n";
        let read = read_manifests(&Source::new("pod.yaml", pod)).unwrap();
        let told: Vec<(&str, Effect)> =
            read.warnings.iter().map(|warning| (warning.message(), warning.effect())).collect();
        assert_eq!(
            told,
            [
                (
                    "fractional byte value `512m` of `memory` under `requests`: it counts as 1 byte",
                    Effect::ChangesAnswer
                ),
                (
                    "fractional byte value `1181116006400m` of `memory` under `limits`: it counts as 1181116007 bytes",
                    Effect::Harmless
                ),
                (
                    "fractional byte value `2.5` of `ephemeral-storage` under `limits`: it counts as 3 bytes",
                    Effect::ChangesAnswer
                ),
            ]
        );
    }
}
