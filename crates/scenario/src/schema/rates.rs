//! Rates by formula.

use super::kind::{Amount, Placed, Positive, Share, kind};
use super::names::TimeZone;
use crate::domain::SimDuration;
use crate::file::load::shapes;
use nodecast_load::{Curve, CurveStep};

section! {
    /// In order of time.
    STEP: "a step of a rate", "`requests.steps[]`";
    impl CurveStep {
        /// From when on, **counted from the beginning of the load** (its own `at`), not of the run.
        "at" as from: SimDuration;
        /// The rate.
        rate["per second"]: Amount;
    }
}

section! {
    RAMP: "`ramp`", "`requests.ramp`";
    becomes Curve, shapes::ramp;
    struct Ramp {
        /// Rate at the beginning of the load.
        from["per second"]: Amount = 0.0;
        /// Rate at its end, and from there on.
        to["per second"]: Amount;
        /// How long the slope is.
        over: Positive;
        /// Length of the steps that it is cut into.
        every: Positive, or "a hundredth of `over`";
    }
}

section! {
    /// Crosses its mean upwards at the beginning of the load; never below 0.
    SINE: "`sine`", "`requests.sine`";
    becomes Curve, shapes::sine;
    struct Sine {
        /// Its mean.
        mean["per second"]: Amount;
        /// How far it rises above the mean.
        amplitude["per second"]: Amount;
        /// From crest to crest.
        period: Positive;
        /// Length of the steps that it is cut into.
        every: Positive, or "a hundredth of `period`";
    }
}

section! {
    /// A cosine over the day, by the calendar: `start` of the scenario says what day it is.
    DIURNAL: "`diurnal`", "`requests.diurnal`";
    becomes Curve, shapes::diurnal;
    struct Diurnal {
        /// Lowest rate, twelve hours from the highest.
        night["per second"]: Amount;
        /// Highest rate.
        peak["per second"]: Amount;
        /// Time of day of the highest rate.
        peak_at: SimDuration = SimDuration::from_secs(14 * 3_600);
        /// Saturdays and Sundays have this share of the rate.
        weekend: Share<1_000> = 1.0;
        /// Whose hours these are.
        time_zone["IANA time zone"]: TimeZone = jiff::tz::TimeZone::UTC;
        /// Length of the steps that it is cut into.
        every: Positive = SimDuration::from_secs(300);
    }
}

section! {
    BURST: "`burst`", "`requests.burst`";
    becomes Curve, shapes::burst;
    struct Burst {
        /// Rate between bursts.
        base["per second"]: Amount = 0.0;
        /// Rate in a burst.
        peak["per second"]: Amount;
        /// From burst to burst.
        every: Positive;
        /// How long a burst is.
        "for" as length: Placed<Positive>;
        /// When the first one comes, from the beginning of the load.
        first: SimDuration = SimDuration::ZERO;
    }
}

kind! {
    /// Rates, each from its time on.
    Steps: Vec<CurveStep> => Curve, |reading, node, _, steps| {
        if let Some(place) = steps.windows(2).position(|pair| pair[0].from >= pair[1].from) {
            let at = node.items().get(place + 1).and_then(|item| item.get("at")).map_or(node.at, |at| at.at);
            return Err(reading
                .error(at, "the steps of a rate come in order of time")
                .because("not after the step before")
                .help("`at` counts from the start of this load; sort the steps"));
        }
        Ok(Curve::from_steps(steps))
    }
}
