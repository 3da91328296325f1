//! Kinds of value that name something: of the region, of the manifests, of the world.

use super::kind::{Name, Text, kind};
use super::{Form, KEDA, Program};
use crate::catalog::Region;
use crate::cloud::faults::matches_pattern;
use crate::domain::versions::{ClusterAutoscalerVersion, UnknownVersion};
use crate::domain::workload::ObjectName;
use crate::domain::{KarpenterVersion, KubernetesVersion, VerticalPodAutoscalerVersion};
use crate::error::{ScenarioError, listed, nearest};
use crate::manifests::check_query;

kind! {
    /// A zone of the region.
    Zone: Name, |reading, node, _, name| {
        let region = reading.region();
        if region.zone_index(name).is_some() {
            return Ok(name);
        }
        let known = listed(region.zones.iter().map(|zone| zone.name.as_str()));
        Err(reading
            .error(node.at, format!("`{name}` is not a zone of {}", region.name))
            .because("unknown zone")
            .help(format!("its zones are {known}")))
    }
}

kind! {
    /// An instance type of the region.
    InstanceType: Name, |reading, node, _, name| {
        let region = reading.region();
        if region.instance_type(name).is_some() {
            return Ok(name);
        }
        Err(reading
            .error(node.at, format!("`{name}` is not an instance type of {}", region.name))
            .because("unknown instance type")
            .help("write for example `m5.large`"))
    }
}

kind! {
    /// Instance types of the region; the name may hold `*`.
    InstanceTypes: Name, |reading, node, _, name| {
        let region = reading.region();
        let known = || region.types.iter().map(|kind| kind.facts.name.as_str());
        if known().any(|item| matches_pattern(name.as_str(), item)) {
            return Ok(name);
        }
        let help = nearest(name.as_str(), known()).map_or_else(
            || "write for example `m5.large` or `m5.*`".to_owned(),
            |near| format!("did you mean `{near}`?"),
        );
        Err(reading
            .error(node.at, format!("`{name}` is not an instance type of {}", region.name))
            .because("unknown instance type")
            .help(help))
    }
}

kind! {
    /// Instance families of the region; the name may hold `*`.
    Families: Name, |reading, node, _, name| {
        let known = |region: &Region| {
            region.types.iter().any(|kind| matches_pattern(name.as_str(), kind.facts.family.as_str()))
        };
        if known(reading.region()) { Ok(name) } else { Err(reading.unknown_family(node.at, name.as_str())) }
    }
}

kind! {
    /// A Deployment or StatefulSet, which can be scaled and can serve requests.
    Serving: ObjectName, |reading, node, _, name| {
        reading.workloads.find(&reading.reader, node.at, name).map(|()| name)
    }
}

kind! {
    /// A Deployment, StatefulSet, or DaemonSet, whose pods use CPU and memory for as long as they run.
    Running: ObjectName, |reading, node, _, name| {
        reading.workloads.find_running(&reading.reader, node.at, name).map(|()| name)
    }
}

kind! {
    /// A workload of any kind.
    AnyWorkload: ObjectName, |reading, node, _, name| {
        reading.workloads.find_any(&reading.reader, node.at, name).map(|()| name)
    }
}

kind! {
    /// A NodePool or node group that there is under some policy.
    NodePoolName: Name, |reading, node, _, name| {
        let known = || reading.node_pools.iter().map(|node_pool| node_pool.as_str());
        if reading.node_pools.contains(&name) {
            return Ok(name);
        }
        let help = match nearest(name.as_str(), known()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("known are {}", listed(known())),
        };
        Err(reading
            .error(node.at, format!("no NodePool or node group is called `{name}`"))
            .because(ScenarioError::NOTHING)
            .help(help))
    }
}

kind! {
    /// The name of a series of Prometheus.
    SeriesName: Text => String, |reading, node, _, name| {
        let starts = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_' || c == ':');
        if starts && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == ':') {
            return Ok(name);
        }
        Err(reading
            .error(node.at, "the name of a series is made of letters, digits, `_` and `:`")
            .because("no such name")
            .help("write for example `http_requests_total`"))
    }
}

kind! {
    /// A query of the metrics adapter.
    AdapterQuery: Text => String, |reading, node, _, text| {
        if check_query(&reading.reader, node)?.series_names().is_empty() {
            return Err(reading
                .error(node.at, "the query selects no series")
                .because("a number for every pod and object")
                .help(format!("select one of the series under {}", listed(["istio", "series"]))));
        }
        Ok(text)
    }
}

kind! {
    /// A time zone of the IANA database.
    TimeZone: Text => jiff::tz::TimeZone, |reading, node, what, name| {
        jiff::tz::TimeZone::get(&name).map_err(|_| {
            reading
                .error(node.at, format!("`{what}` is not a time zone"))
                .because("unknown")
                .help("write a name of the IANA database, for example `Europe/Paris`")
        })
    };
    show |zone| zone.iana_name().unwrap_or_default().to_owned()
}

// A calendar time; without an offset it is UTC.
kind! {
    impl jiff::Timestamp: jiff::Timestamp = Form::Instant, |reading, node, what| {
        let text = reading.reader.text(node, what)?;
        let civil = || {
            let time = text.parse::<jiff::civil::DateTime>().ok()?;
            jiff::tz::TimeZone::UTC.to_timestamp(time).ok()
        };
        text.parse().ok().or_else(civil).ok_or_else(|| {
            reading
                .error(node.at, format!("`{what}` is not a calendar time"))
                .because("not a time")
                .help("write for example `2026-11-27T00:00:00Z`")
        })
    };
    show |time| time.to_string()
}

/// Releases that can be reproduced.
macro_rules! releases {
    ($($version:ty: $program:expr),*) => {
        $(kind! {
            impl $version: $version = Form::Release($program), |reading, node, what| {
                reading.reader.text(node, what)?.parse().map_err(|error: UnknownVersion| {
                    reading
                        .error(node.at, format!("unknown {} version `{}`", error.program, error.given))
                        .because("not reproduced")
                        .help(nearest_release(&error, what))
                })
            };
            show |release| quoted(&release.to_string())
        })*
    };
}

releases! {
    KarpenterVersion: Program::Karpenter,
    KubernetesVersion: Program::Kubernetes,
    ClusterAutoscalerVersion: Program::ClusterAutoscaler,
    VerticalPodAutoscalerVersion: Program::VerticalPodAutoscaler
}

/// A minor release without quotes would be a number to other readers of YAML: 1.20 is 1.2.
fn quoted(release: &str) -> String {
    if release.starts_with('v') { release.to_owned() } else { format!("\"{release}\"") }
}

/// The way out of a release that is not known: which one comes nearest, and where it is written.
fn nearest_release(error: &UnknownVersion, key: &str) -> String {
    let Some(nearest) = &error.nearest else { return format!("known are {}", error.known) };
    let nearest = quoted(nearest);
    let place = match key {
        "karpenter" | "kubernetes" | "cluster-autoscaler" | "vertical-pod-autoscaler" => {
            format!("`versions: {{ {key}: {nearest} }}`")
        }
        _ => nearest,
    };
    format!("write {place}, the nearest that is reproduced; known are {}", error.known)
}

kind! {
    /// The release of KEDA that is reproduced.
    KedaRelease: () = Form::Release(Program::Keda), |reading, node, what| {
        let text = reading.reader.text(node, what)?;
        let bare = text.strip_prefix('v').unwrap_or(text);
        if bare == KEDA || bare.strip_prefix(KEDA).is_some_and(|patch| patch.starts_with('.')) {
            return Ok(());
        }
        let shown: String = text.chars().take(40).collect();
        Err(reading
            .error(node.at, format!("unknown KEDA version `{shown}`"))
            .because("not reproduced")
            .help(format!("known is {KEDA}")))
    };
    show |()| quoted(KEDA)
}
