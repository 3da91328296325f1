//! Lints of several runs: comparisons, sweeps, recommendations, backtests.

nodecast_model::lints! {
    IDLE_CHANGE = 500, AboutInput, None, "`--set` or an axis of a sweep changes nothing in any policy that runs.";
    UNEVEN_POLICIES = 501, ChangesAnswer, Unknown, "The compared policies are not alike: one launches no nodes, answers no requests, or keeps other node groups.";
    UNEVEN_LENGTHS = 502, ChangesAnswer, Unknown, "The compared runs have different durations.";
    UNEVEN_WARM_UP = 503, ChangesAnswer, Unknown, "The compared scenarios have different warm-ups.";
    UNEVEN_PRICE_ERRORS = 504, ChangesAnswer, Unknown, "Spot price errors are drawn on one side of a comparison only.";
    LEVER_NOT_TRIED = 505, MayChangeAnswer, None, "A recommendation did not try a change.";
    RECOMMENDED_LACKS_MORE = 506, ChangesAnswer, Unknown, "The recommended setting has more missing replicas than the baseline, and no objective limits them.";
    PRICE_ERRORS_DRAWN = 507, Harmless, None, "Each run draws Spot price errors.";
    BACKTEST_PRICES = 508, ChangesAnswer, Unknown, "A backtest lacks prices or a bill, so cost is evaluated only in part.";
    BACKTEST_NODES = 509, ChangesAnswer, Unknown, "The recording lacks nodes, or has only their number.";
    BACKTEST_PODS = 510, ChangesAnswer, Unknown, "The recording lacks pods.";
    BACKTEST_SPOT_PRICES = 511, MayChangeAnswer, Unknown, "The recording lacks the Spot prices of some pools. They are modelled.";
    BACKTEST_NOT_REPEATED = 512, MayChangeAnswer, Unknown, "The recording has something that the simulation does not replay.";
    BACKTEST_CAPACITY_TYPE = 513, MayChangeAnswer, Unknown, "The recording lacks the capacity type of nodes. On-Demand is assumed.";
    BACKTEST_REASONS = 514, ChangesAnswer, Unknown, "The recording lacks the reasons why nodes were removed.";
    BACKTEST_EVICTIONS = 515, ChangesAnswer, Unknown, "The recording lacks evictions.";
    BACKTEST_BILL = 516, MayChangeAnswer, Unknown, "The recorded bill lacks something, or has something that the simulation does not bill.";
    RECOMMENDED_SPOT = 517, MayChangeAnswer, None, "The recommended setting lets Spot nodes run StatefulSets or pods that must not be disrupted.";
}
