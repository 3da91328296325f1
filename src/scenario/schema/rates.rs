//! Rates by formula.

use super::Value::{Amount, Duration, Share, Text};

section! {
    STEP: "a step of a rate", "`requests.steps[]`";
    "In order of time.";
    "";
    {
        "at" required: Duration, "From when on, **counted from the beginning of the load** (its own `at`), not of the run.";
        "rate" required: Amount("per second"), "The rate.";
    }
}

section! {
    RAMP: "`ramp`", "`requests.ramp`";
    "";
    "";
    {
        "from" default("0"): Amount("per second"), "Rate at the beginning of the load.";
        "to" required: Amount("per second"), "Rate at its end, and from there on.";
        "over" required: Duration, "How long the slope is.";
        "every" otherwise("a hundredth of `over`"): Duration, "Length of the steps that it is cut into.";
    }
}

section! {
    SINE: "`sine`", "`requests.sine`";
    "Crosses its mean upwards at the beginning of the load; never below 0.";
    "";
    {
        "mean" required: Amount("per second"), "Its mean.";
        "amplitude" required: Amount("per second"), "How far it rises above the mean.";
        "period" required: Duration, "From crest to crest.";
        "every" otherwise("a hundredth of `period`"): Duration, "Length of the steps that it is cut into.";
    }
}

section! {
    DIURNAL: "`diurnal`", "`requests.diurnal`";
    "A cosine over the day, by the calendar: `start` of the scenario says what day it is.";
    "";
    {
        "night" required: Amount("per second"), "Lowest rate, twelve hours from the highest.";
        "peak" required: Amount("per second"), "Highest rate.";
        "peak_at" default("14h"): Duration, "Time of day of the highest rate.";
        "weekend" default("100%"): Share(1_000), "Saturdays and Sundays have this share of the rate.";
        "time_zone" default("UTC"): Text("IANA time zone"), "Whose hours these are.";
        "every" default("5m"): Duration, "Length of the steps that it is cut into.";
    }
}

section! {
    BURST: "`burst`", "`requests.burst`";
    "";
    "";
    {
        "base" default("0"): Amount("per second"), "Rate between bursts.";
        "peak" required: Amount("per second"), "Rate in a burst.";
        "every" required: Duration, "From burst to burst.";
        "for" required: Duration, "How long a burst is.";
        "first" default("0s"): Duration, "When the first one comes, from the beginning of the load.";
    }
}
