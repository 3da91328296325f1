//! Lints of keys that a manifest holds, whatever its kind.

crate::lints! {
    KEY_WITHOUT_EFFECT = 1, Harmless, None, "`--set` or an edit changes a key of a manifest that affects neither capacity, cost, nor waits.";
    KEY_NOT_SIMULATED = 2, MayChangeAnswer, Unknown, "A manifest sets a key whose effect is not simulated.";
    UNKNOWN_KEY = 3, AboutInput, Unknown, "A manifest has a key that its kind does not define. It is ignored.";
}
