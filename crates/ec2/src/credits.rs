//! CPU credits of burstable instances: earned at the baseline, spent on use, and what it costs or takes away when they are spent.
//!
//! Source: EC2 User Guide, burstable performance instances (key concepts, standard and unlimited mode, as of 2026): a credit is one vCPU for a
//! minute; what is earned in a day is the most that can be saved; T2 starts with thirty launch credits for each vCPU in standard mode; in unlimited mode
//! credits of the next day are spent ahead, and those beyond, or still owed when an instance ends, are charged by the vCPU-hour.

pub use nodecast_model::domain::node_group::CreditMode;
use nodecast_model::domain::{HourlyRate, SimDuration, SimTime};

/// Milli-CPU times microseconds: CPU time.
type CpuTime = i128;

const MINUTE: i128 = 60_000_000;
const DAY: i128 = 24 * 60 * MINUTE;
/// Launch credits of T2 in standard mode, for each vCPU.
const LAUNCH_CREDITS: i128 = 30;

/// Credits that a type earns in an hour; `None` for a type whose CPU does not work on credits.
pub fn earned_per_hour(instance_type: &str) -> Option<u32> {
    let (family, size) = instance_type.split_once('.')?;
    let by_size: &[(&str, u32)] = match family {
        "t2" => {
            &[("nano", 3), ("micro", 6), ("small", 12), ("medium", 24), ("large", 36), ("xlarge", 54), ("2xlarge", 81)]
        }
        "t3" | "t3a" | "t4g" => &[
            ("nano", 6),
            ("micro", 12),
            ("small", 24),
            ("medium", 24),
            ("large", 36),
            ("xlarge", 96),
            ("2xlarge", 192),
        ],
        _ => return None,
    };
    by_size.iter().find(|this_size| this_size.0 == size).map(|size| size.1)
}

/// What a vCPU-hour beyond what is earned costs under unlimited mode: Linux, all regions.
pub fn surplus_rate(family: &str) -> HourlyRate {
    HourlyRate::from_nanos(if family == "t4g" { 40_000_000 } else { 50_000_000 })
}

/// The credits of one instance.
#[derive(Clone, Debug)]
pub struct Credits {
    mode: CreditMode,
    /// The baseline, in milli-CPU.
    baseline: i64,
    /// Launch credits left: they are spent first and come on top of the most that can be saved.
    launch: CpuTime,
    saved: CpuTime,
    /// Spent ahead and not yet charged.
    surplus: CpuTime,
    charged: CpuTime,
    used: i64,
    at: SimTime,
}

impl Credits {
    /// Credits of an instance of `vcpus` vCPUs that runs from `from` on; `None` if its CPU does not work on credits.
    pub fn new(instance_type: &str, vcpus: u32, mode: CreditMode, from: SimTime) -> Option<Self> {
        let baseline = i64::from(earned_per_hour(instance_type)?) * 1_000 / 60;
        let has_launch_credits = instance_type.starts_with("t2.") && mode == CreditMode::Standard;
        let launch = if has_launch_credits { LAUNCH_CREDITS * i128::from(vcpus) * 1_000 * MINUTE } else { 0 };
        Some(Self { mode, baseline, launch, saved: 0, surplus: 0, charged: 0, used: 0, at: from })
    }

    /// The baseline, in milli-CPU: what may be used for ever.
    pub fn baseline(&self) -> i64 {
        self.baseline
    }

    /// Brings the account up to `now`.
    pub fn advance(&mut self, now: SimTime) {
        let span = i128::from(now.saturating_since(self.at).as_micros());
        self.at = self.at.max(now);
        let gained = i128::from(self.baseline - self.used) * span;
        let most = i128::from(self.baseline) * DAY;
        if gained >= 0 {
            let repaid = gained.min(self.surplus);
            self.surplus -= repaid;
            self.saved = (self.saved + gained - repaid).min(most);
            return;
        }
        let mut spent = -gained;
        for pot in [&mut self.launch, &mut self.saved] {
            let taken = spent.min(*pot);
            *pot -= taken;
            spent -= taken;
        }
        if self.mode == CreditMode::Unlimited {
            self.surplus += spent;
            let beyond = (self.surplus - most).max(0);
            self.surplus -= beyond;
            self.charged += beyond;
        }
    }

    /// So much CPU is used from `now` on, in milli-CPU.
    pub fn set_used(&mut self, used: i64, now: SimTime) {
        self.advance(now);
        self.used = used;
    }

    /// When the credits will be spent at the present use, if that takes something away.
    pub fn spent_at(&self) -> Option<SimTime> {
        let excess = self.used - self.baseline;
        if self.mode == CreditMode::Unlimited || excess <= 0 {
            return None;
        }
        let left = self.launch + self.saved;
        let micros = (left + i128::from(excess) - 1).div_euclid(i128::from(excess));
        Some(self.at + SimDuration::from_micros(i64::try_from(micros).unwrap_or(i64::MAX / 4)))
    }

    /// CPU time that is charged if the instance ends now, in millionths of a vCPU-hour: what is still owed included.
    pub fn surplus_micro_hours(&self) -> i64 {
        i64::try_from((self.charged + self.surplus) / (60 * MINUTE / 1_000)).unwrap_or(i64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::{CreditMode, Credits, earned_per_hour};
    use nodecast_model::domain::{SimDuration, SimTime};

    fn at(hours: i64) -> SimTime {
        SimTime::ZERO + SimDuration::from_secs(3_600 * hours)
    }

    #[test]
    fn earned_credits_repay_surplus_and_rest_is_charged() {
        // t3.medium earns 24 credits an hour: a baseline of 400 milli-CPU.
        let mut credits = Credits::new("t3.medium", 2, CreditMode::Unlimited, at(0)).unwrap();
        assert_eq!(credits.baseline(), 400);
        credits.set_used(2_000, at(0));
        credits.set_used(0, at(3));
        assert_eq!(credits.surplus_micro_hours(), 4_800_000, "three hours of 1.6 vCPUs beyond the baseline");
        credits.set_used(2_000, at(15));
        assert_eq!(credits.surplus_micro_hours(), 0, "twelve hours at 0.4 pay it back");
        // From here 1.6 an hour: the day's 9.6 vCPU-hours are owed after six hours, what comes then is charged for good.
        credits.set_used(0, at(25));
        credits.advance(at(25 + 240));
        assert_eq!(credits.surplus_micro_hours(), 16_000_000 - 9_600_000, "what was charged stays charged");
        assert_eq!(credits.spent_at(), None);
    }

    #[test]
    fn standard_instances_say_when_their_credits_are_spent() {
        // t2.small: one vCPU, 12 credits an hour, 30 launch credits.
        let mut credits = Credits::new("t2.small", 1, CreditMode::Standard, at(0)).unwrap();
        credits.set_used(1_000, at(0));
        let launch_only = credits.spent_at().unwrap() - at(0);
        assert_eq!(
            launch_only,
            SimDuration::from_micros(30 * 60_000_000 * 10 / 8),
            "30 minutes at 0.8 beyond the baseline"
        );
        credits.set_used(0, at(0));
        credits.set_used(1_000, at(100));
        // A day's 288 credits and the 30 of the launch; not a hundred hours' worth.
        assert_eq!(credits.spent_at().unwrap() - at(100), SimDuration::from_micros(318 * 60_000_000 * 10 / 8));
        credits.set_used(200, at(100));
        assert_eq!(credits.spent_at(), None, "at the baseline they last");
    }

    #[test]
    fn burstable_types_earn_documented_credits() {
        let all = ["t2.nano", "t3.small", "t4g.2xlarge", "m5.large", "t3.metal"].map(earned_per_hour);
        assert_eq!(all, [Some(3), Some(24), Some(192), None, None]);
        assert_eq!(CreditMode::default_of("t2"), CreditMode::Standard);
        assert_eq!(CreditMode::default_of("t4g"), CreditMode::Unlimited);
    }
}
