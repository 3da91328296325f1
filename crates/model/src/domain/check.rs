//! Whether what is kept for speed is worked out anew and compared, and what is said where the two differ.
//!
//! A kept value, or a quick way to an answer, is right only if it comes to what the whole work comes to. Builds with debug assertions,
//! the tests among them, do the whole work too and compare, of an experiment with several seeds in the first of them; other builds do where they are
//! asked to (`nodecast run --check`).
//! Who is asked is told by the settings of a run: there is no switch of the process, so that runs beside each other may differ.

/// Whether to compare.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Check {
    /// In builds with debug assertions.
    #[default]
    AsBuilt,
    /// In every build.
    Always,
    /// In no build: the seeds of an experiment after the first, in which what is kept comes about as in the first.
    Never,
}

/// What is kept is not what comes out anew, or what must always hold does not: a mistake in the program.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct Disagreement(pub String);

impl Check {
    /// Whether to compare.
    #[inline]
    pub const fn compares(self) -> bool {
        match self {
            Self::AsBuilt => cfg!(debug_assertions),
            Self::Always => true,
            Self::Never => false,
        }
    }

    /// Ends the run if a comparison that [was to be made](Self::compares) came out otherwise; `what` says what differs.
    ///
    /// # Panics
    /// With what differs where nobody asked for the comparison, which only builds with debug assertions make. Who asked for it catches a
    /// [`Disagreement`]: unwinding with one tells nobody else.
    #[track_caller]
    pub fn hold(self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.disagree(what);
        }
    }

    #[cold]
    #[track_caller]
    fn disagree(self, what: impl FnOnce() -> String) -> ! {
        match self {
            Self::AsBuilt | Self::Never => panic!("{}", what()),
            Self::Always => std::panic::resume_unwind(Box::new(Disagreement(what()))),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use super::{Check, Disagreement};

    #[test]
    fn disagreement_is_reported_and_agreement_costs_nothing() {
        Check::Always.hold(true, || unreachable!());
        let caught = catch_unwind(|| Check::Always.hold(false, || "one is not two".to_owned())).unwrap_err();
        assert_eq!(caught.downcast_ref::<Disagreement>().unwrap().to_string(), "one is not two");
        assert!(!Check::Never.compares() && Check::Always.compares());
        assert_eq!(Check::AsBuilt.compares(), cfg!(debug_assertions));
        let caught = catch_unwind(|| Check::AsBuilt.hold(false, || "one is not two".to_owned())).unwrap_err();
        assert_eq!(caught.downcast_ref::<String>().unwrap(), "one is not two");
    }
}
