//! From the state of a trigger's source to its metric and whether it is active.

use nodecast_model::domain::keda::{
    KafkaTrigger, OffsetResetPolicy, QueueOperation, RabbitMqMode, RabbitMqTrigger, Reads, TriggerSource,
};

/// What a trigger says.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TriggerValue {
    /// Its metric in thousandths, rounded.
    pub milli: i64,
    /// Whether it is active.
    pub active: bool,
}

/// What was read from a trigger's source.
#[derive(Clone, Copy, Debug)]
pub enum SourceReading<'a> {
    /// The result of a query.
    Query(QueryResult),
    /// Messages of a queue, by their state.
    Messages {
        /// Ready to be received.
        visible: i64,
        /// Received and not deleted yet.
        in_flight: i64,
        /// Not ready yet.
        delayed: i64,
    },
    /// The partitions of a Kafka group.
    Partitions(&'a [Partition]),
    /// RabbitMQ queues: one, or all that a pattern names.
    Queues(&'a [QueueFigures]),
    /// Pods, or their nodes where these are counted: neither succeeded nor failed.
    Count(i64),
    /// Whether the calendar is inside the window.
    Window(bool),
    /// What a scaler of the user's own says.
    Told {
        /// Its metric.
        value: f64,
        /// Whether it is active.
        active: bool,
    },
}

/// The result of a query.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum QueryResult {
    /// No element, or one without a value.
    Empty,
    /// One element.
    Value(f64),
    /// More than one.
    Several,
}

/// A partition of a topic.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Partition {
    /// The offset after its last message.
    pub latest: i64,
    /// The offset that the group has committed, if any.
    pub committed: Option<i64>,
    /// The offset committed at the poll before, if there was one.
    pub committed_before: Option<i64>,
}

/// The figures of a RabbitMQ queue.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct QueueFigures {
    /// Messages, those handed out included.
    pub messages: i64,
    /// Messages not handed out.
    pub ready: i64,
    /// Messages published in a second.
    pub publish_rate: f64,
    /// Messages delivered in a second.
    pub deliver_rate: f64,
}

/// Why a source gives no value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
pub enum ValueProblem {
    /// A query without a result, which the trigger does not take for zero.
    #[error("the query returned no value")]
    NoValue,
    /// A query with several results.
    #[error("the query returned more than one element")]
    SeveralValues,
    /// The reading belongs to another kind of trigger.
    #[error("the reading does not belong to this trigger")]
    WrongReading,
    /// CPU and memory are read from metrics-server.
    #[error("the trigger is read from metrics-server")]
    Resource,
}

/// The metric of a trigger and whether it is active. Activity is strict: a value at the activation threshold is not active.
///
/// # Errors
/// The source gave nothing usable.
///
/// Source: KEDA 2.20 `pkg/scalers`, each scaler's `GetMetricsAndActivity`.
pub fn trigger_value(source: &TriggerSource, reading: &SourceReading<'_>) -> Result<TriggerValue, ValueProblem> {
    let above = |value: f64| TriggerValue { milli: milli(value), active: value > source.activation };
    Ok(match (&source.reads, reading) {
        (Reads::Prometheus { ignore_null_values, .. }, SourceReading::Query(result)) => match *result {
            QueryResult::Several => return Err(ValueProblem::SeveralValues),
            QueryResult::Value(value) if value.is_finite() => above(value),
            _ if *ignore_null_values => above(0.0),
            _ => return Err(ValueProblem::NoValue),
        },
        (Reads::Cron(cron), SourceReading::Window(inside)) => {
            let replicas = if *inside { cron.desired_replicas } else { 0 };
            TriggerValue { milli: milli(replicas as f64), active: *inside }
        }
        (Reads::Queue(queue), SourceReading::Messages { visible, in_flight, delayed }) => {
            let in_flight = if queue.in_flight { *in_flight } else { 0 };
            let delayed = if queue.delayed { *delayed } else { 0 };
            above(visible.saturating_add(in_flight).saturating_add(delayed) as f64)
        }
        (Reads::Kafka(kafka), SourceReading::Partitions(partitions)) => {
            let (lag, with_persistent) = kafka_lag(kafka, partitions);
            TriggerValue { active: with_persistent > source.activation, ..above(lag) }
        }
        (Reads::RabbitMq(rabbit), SourceReading::Queues(queues)) => rabbit_value(rabbit, source.activation, queues),
        (Reads::KubernetesWorkload { .. }, SourceReading::Count(count)) => above(*count as f64),
        (Reads::Resource { .. }, _) => return Err(ValueProblem::Resource),
        (_, SourceReading::Told { value, active }) => TriggerValue { milli: milli(*value), active: *active },
        _ => return Err(ValueProblem::WrongReading),
    })
}

/// A metric as it reaches the autoscaler: written with three decimals, so rounded to the nearest thousandth of the binary
/// value (2.01 times 1000 would fall short of 2010); what is not finite or below zero is zero.
///
/// Source: KEDA 2.20 `pkg/scalers/scaler.go`, `quantityFromFloat64`.
fn milli(value: f64) -> i64 {
    if !value.is_finite() || value <= 0.0 {
        return 0;
    }
    let scaled = value * 1000.0;
    // Beyond this every binary number is whole, and rounding changes nothing.
    if scaled >= 4.5e15 {
        return scaled as i64;
    }
    let digits = format!("{value:.3}").replace('.', "");
    digits.parse().unwrap_or(scaled as i64)
}

/// The lag of all partitions as it counts for the metric and as it counts for activity.
///
/// Source: KEDA 2.20 `pkg/scalers/kafka_scaler.go`, `getLagForPartition`, `getTotalLag`.
fn kafka_lag(kafka: &KafkaTrigger, partitions: &[Partition]) -> (f64, f64) {
    let (mut lag, mut with_persistent, mut with_lag) = (0_i64, 0_i64, 0_i64);
    for partition in partitions {
        let (item, persistent) = partition_lag(kafka, partition);
        lag = lag.saturating_add(item);
        with_persistent = with_persistent.saturating_add(persistent);
        with_lag += i64::from(item > 0);
    }
    let limited = !kafka.allow_idle_consumers || kafka.limit_to_partitions_with_lag || kafka.ensure_even_distribution;
    if limited && kafka.lag_threshold > 0 {
        let count = partitions.len() as i64;
        if kafka.ensure_even_distribution {
            lag = even_consumers(lag, count, kafka.lag_threshold).saturating_mul(kafka.lag_threshold);
        }
        let bound = if kafka.limit_to_partitions_with_lag { with_lag } else { count };
        if lag / kafka.lag_threshold > bound {
            lag = bound.saturating_mul(kafka.lag_threshold);
        }
    }
    (lag as f64, with_persistent as f64)
}

/// The lag of a partition as it counts for the metric and as it counts for activity.
fn partition_lag(kafka: &KafkaTrigger, partition: &Partition) -> (i64, i64) {
    let Some(committed) = partition.committed else {
        let lag = match kafka.offset_reset_policy {
            _ if kafka.scale_to_zero_on_invalid_offset => 0,
            // One, so that a consumer starts and commits an offset.
            OffsetResetPolicy::Latest => 1,
            OffsetResetPolicy::Earliest => partition.latest,
        };
        return (lag, lag);
    };
    let lag = partition.latest.saturating_sub(committed);
    let stuck = kafka.exclude_persistent_lag && partition.committed_before == Some(committed);
    (if stuck { 0 } else { lag }, lag)
}

/// The fewest consumers that divide the partitions evenly and bring the lag of each to its threshold or below.
fn even_consumers(lag: i64, partitions: i64, threshold: i64) -> i64 {
    let enough = |consumers: &i64| partitions % consumers == 0 && consumers.saturating_mul(threshold) >= lag;
    (1..=partitions).find(enough).unwrap_or(partitions)
}

/// Source: KEDA 2.20 `pkg/scalers/rabbitmq_scaler.go`, `GetMetricsAndActivity`, `getComposedQueue`.
fn rabbit_value(rabbit: &RabbitMqTrigger, activation: f64, queues: &[QueueFigures]) -> TriggerValue {
    let figures = composed(rabbit, queues);
    let messages = if rabbit.exclude_unacknowledged { figures.ready } else { figures.messages } as f64;
    let (published, delivered) = (figures.publish_rate, figures.deliver_rate);
    let nothing_delivered = libm::fabs(delivered) <= 0.0;
    let (value, active) = match rabbit.mode {
        RabbitMqMode::QueueLength => (messages, messages > activation),
        RabbitMqMode::MessageRate => (published, published > activation || messages > activation),
        RabbitMqMode::DeliverGetRate => (delivered, delivered > activation),
        RabbitMqMode::PublishedToDeliveredRatio => {
            let starved = published > 0.0 && nothing_delivered;
            let ratio = match () {
                () if starved => activation,
                () if published > 0.0 && delivered > 0.0 => published / delivered,
                () => 0.0,
            };
            (ratio, ratio > activation || starved)
        }
        RabbitMqMode::ExpectedQueueConsumptionTime => {
            let seconds =
                if nothing_delivered { activation } else { (published - delivered) / delivered + messages / delivered };
            (seconds, seconds > activation || nothing_delivered)
        }
    };
    TriggerValue { milli: milli(value), active }
}

fn composed(rabbit: &RabbitMqTrigger, queues: &[QueueFigures]) -> QueueFigures {
    let Some(operation) = rabbit.operation else { return queues.first().copied().unwrap_or_default() };
    let merged = |merge: fn(f64, f64) -> f64, merge_counts: fn(i64, i64) -> i64| {
        queues.iter().fold(QueueFigures::default(), |all, one| QueueFigures {
            messages: merge_counts(all.messages, one.messages),
            ready: merge_counts(all.ready, one.ready),
            publish_rate: merge(all.publish_rate, one.publish_rate),
            deliver_rate: merge(all.deliver_rate, one.deliver_rate),
        })
    };
    let sum = || merged(|a, b| a + b, i64::saturating_add);
    match operation {
        QueueOperation::Sum => sum(),
        QueueOperation::Max => merged(libm::fmax, i64::max),
        QueueOperation::Avg => {
            let (sum, count) = (sum(), queues.len().max(1));
            QueueFigures {
                messages: sum.messages / count as i64,
                ready: sum.ready / count as i64,
                publish_rate: sum.publish_rate / count as f64,
                deliver_rate: sum.deliver_rate / count as f64,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Partition, QueryResult, QueueFigures, SourceReading, TriggerValue, ValueProblem, trigger_value};
    use nodecast_model::domain::Symbol;
    use nodecast_model::domain::keda::{
        KafkaTrigger, OffsetResetPolicy, QueueOperation, RabbitMqMode, RabbitMqTrigger, Reads, TriggerSource,
    };

    fn source(activation: f64, reads: Reads) -> TriggerSource {
        TriggerSource { kind: Symbol::new("test"), metric: String::new(), target: None, activation, reads }
    }

    fn kafka(change: impl Fn(&mut KafkaTrigger), partitions: &[(i64, Option<i64>)]) -> TriggerValue {
        let mut trigger = KafkaTrigger::default();
        change(&mut trigger);
        let partitions: Vec<Partition> = partitions
            .iter()
            .map(|&(latest, committed)| Partition { latest, committed, committed_before: Some(5) })
            .collect();
        let value = trigger_value(&source(0.0, Reads::Kafka(trigger)), &SourceReading::Partitions(&partitions));
        value.unwrap_or_else(|problem| panic!("{problem}"))
    }

    fn value(units: i64, active: bool) -> TriggerValue {
        TriggerValue { milli: units * 1_000, active }
    }

    #[test]
    fn missing_kafka_offset_follows_reset_policy() {
        let none = [(70, None)];
        assert_eq!(kafka(|_| (), &none), value(1, true));
        assert_eq!(kafka(|k| k.scale_to_zero_on_invalid_offset = true, &none), value(0, false));
        let earliest = |k: &mut KafkaTrigger| {
            k.offset_reset_policy = OffsetResetPolicy::Earliest;
            k.allow_idle_consumers = true;
        };
        assert_eq!(kafka(earliest, &none), value(70, true));
    }

    #[test]
    fn a_stuck_partition_activates_but_does_not_count() {
        let stuck = [(100, Some(5)), (8, Some(6))];
        assert_eq!(kafka(|k| k.exclude_persistent_lag = true, &stuck), value(2, true));
    }

    #[test]
    fn kafka_lag_is_capped_by_partitions_and_shares() {
        let lags = [(500, Some(0)), (12, Some(12)), (3, Some(3)), (9, Some(9))];
        assert_eq!(kafka(|_| (), &lags), value(40, true));
        assert_eq!(kafka(|k| k.limit_to_partitions_with_lag = true, &lags), value(10, true));
        // A lag of 31 needs four consumers, and the next number that divides six partitions is six.
        let six = [(31, Some(0)), (0, Some(0)), (0, Some(0)), (0, Some(0)), (0, Some(0)), (0, Some(0))];
        assert_eq!(kafka(|k| k.ensure_even_distribution = true, &six), value(60, true));
    }

    fn rabbit(mode: RabbitMqMode, operation: Option<QueueOperation>, queues: &[QueueFigures]) -> TriggerValue {
        let trigger = RabbitMqTrigger { queue: "work".to_owned(), mode, exclude_unacknowledged: true, operation };
        let value = trigger_value(&source(2.0, Reads::RabbitMq(trigger)), &SourceReading::Queues(queues));
        value.unwrap_or_else(|problem| panic!("{problem}"))
    }

    #[test]
    fn rabbitmq_modes_look_at_different_figures() {
        let busy = QueueFigures { messages: 40, ready: 30, publish_rate: 8.0, deliver_rate: 4.0 };
        let starved = QueueFigures { deliver_rate: 0.0, ..busy };
        assert_eq!(rabbit(RabbitMqMode::QueueLength, None, &[busy]), value(30, true));
        assert_eq!(
            rabbit(RabbitMqMode::MessageRate, None, &[QueueFigures { publish_rate: 1.0, ..busy }]),
            value(1, true)
        );
        assert_eq!(rabbit(RabbitMqMode::PublishedToDeliveredRatio, None, &[busy]), value(2, false));
        assert_eq!(rabbit(RabbitMqMode::PublishedToDeliveredRatio, None, &[starved]), value(2, true));
        let eta = rabbit(RabbitMqMode::ExpectedQueueConsumptionTime, None, &[busy]);
        assert_eq!(eta, TriggerValue { milli: 8_500, active: true });
        assert_eq!(rabbit(RabbitMqMode::ExpectedQueueConsumptionTime, None, &[starved]), value(2, true));
        let idle = QueueFigures::default();
        assert_eq!(rabbit(RabbitMqMode::QueueLength, Some(QueueOperation::Avg), &[busy, idle]), value(15, true));
        assert_eq!(rabbit(RabbitMqMode::QueueLength, Some(QueueOperation::Max), &[busy, idle]), value(30, true));
        assert_eq!(rabbit(RabbitMqMode::QueueLength, Some(QueueOperation::Sum), &[]), value(0, false));
    }

    #[test]
    fn a_value_is_rounded_to_thousandths() {
        let query = source(0.0, Reads::Prometheus { query: "up".to_owned(), ignore_null_values: true });
        for (value, expected) in
            [(2.01, 2_010_i128), (5.678_9, 5_679), (0.000_4, 0), (-3.0, 0), (f64::INFINITY, 0), (1e17, i128::MAX)]
        {
            let found =
                trigger_value(&query, &SourceReading::Query(QueryResult::Value(value))).map(|found| found.milli);
            assert_eq!(found, Ok(i64::try_from(expected).unwrap_or(i64::MAX)), "{value}");
        }
    }

    #[test]
    fn a_reading_of_another_kind_is_refused() {
        let trigger = source(0.0, Reads::Kafka(KafkaTrigger::default()));
        assert_eq!(trigger_value(&trigger, &SourceReading::Count(3)), Err(ValueProblem::WrongReading));
    }
}
