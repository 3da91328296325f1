//! Lints of scenario files, and of manifests that do not fit them.

nodecast_model::lints! {
    UNUSED_ALLOW = 100, AboutInput, None, "`allow` lists a lint that did not apply.";
    EDIT_NOT_MADE = 101, MayChangeAnswer, Unknown, "A value set with `--set` exists in some manifests and not in another, which stays as it is.";
    WARM_UP_TOO_LONG = 102, AboutInput, None, "`warm_up` is as long as the run or longer. The metrics cover the whole run.";
    LATE_STEP = 103, AboutInput, None, "A step of the timeline, a load, or a fault starts after the end of the run.";
    RUN_TIME_UNKNOWN = 104, MayChangeAnswer, Unknown, "The run time of a Job's pods is unknown. 1 minute is assumed.";
    CLUSTER_CONFIG_DIFFERS = 105, AboutInput, Unknown, "A ClusterConfig and the scenario set different regions or releases. The scenario's apply.";
    AUTOSCALER_WITHOUT_TARGET = 106, ChangesAnswer, Unknown, "The target of an autoscaler does not exist.";
    SHARED_TARGET = 107, ChangesAnswer, Unknown, "Two autoscalers have the same target. Neither scales it.";
    NO_FARGATE_PROFILE = 108, ChangesAnswer, Unknown, "`fargate` has no profile, so no pod runs on Fargate.";
    UNREAD_COLUMN = 109, AboutInput, None, "A pod trace has a column that is not read.";
    MISSING_ROWS = 110, AboutInput, CostLowWaitsShort, "A load table lacks rows. The load is zero there.";
    MOVED_RECORD = 111, AboutInput, Unknown, "A recorded load is from another time than its load entry. It is moved to the start of the load.";
    EMPTY_RECORD = 112, AboutInput, CostLowWaitsShort, "No data of a load record falls within the run.";
    SHORT_RECORD = 113, AboutInput, CostLowWaitsShort, "A load record ends long before its load. The load is zero afterwards.";
    TIER_WITHOUT_EFFECT = 114, MayChangeAnswer, None, "`control_plane_tier` has no effect, because `controller_time` is `none` or states each limit.";
}
