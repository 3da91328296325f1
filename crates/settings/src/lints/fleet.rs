//! Lints of fleet files.

nodecast_model::lints! {
    COMMITMENT_ENDED = 600, MayChangeAnswer, CostHigh, "A commitment of a fleet ends before the run starts. It is ignored.";
    COMMITMENT_WITHOUT_USAGE = 601, MayChangeAnswer, CostHigh, "A commitment of a fleet covers nothing: its owner shares nothing and has no cluster.";
    OWNER_WITHOUT_GROUP = 602, MayChangeAnswer, Unknown, "A commitment is shared by group, and its owner is in no group.";
    PLAN_PRICE = 603, AboutInput, CostHigh, "The price of a type under a Savings Plan is above its On-Demand price.";
    UNKNOWN_FAMILY = 604, AboutInput, None, "A Savings Plan has a discount for a family that no cluster's region has.";
    USAGE_OUTSIDE_RUN = 605, AboutInput, None, "Rows of the usage outside the clusters lie outside the run. They are ignored.";
}
