use super::{
    Billed, LaunchRate, PROFILE_LABEL, Profile, Selector, Unsupported, chosen, matches_pattern, size, unsupported,
};
use crate::domain::pod::InitContainer;
use crate::domain::{Container, Labels, PodSpec, ResourceName, Resources, SimDuration, SimTime, Symbol, well_known};

const MIB: i64 = 1 << 20;

fn container(cpu_milli: i64, memory_mib: i64) -> Container {
    Container { requests: Resources::cpu_memory(cpu_milli, memory_mib * MIB), ..Container::default() }
}

fn pod(cpu_milli: i64, memory_mib: i64) -> PodSpec {
    PodSpec { containers: vec![container(cpu_milli, memory_mib)], ..PodSpec::default() }
}

fn billed(spec: &PodSpec) -> String {
    size(spec, &Resources::new()).map_or_else(|why| format!("{why:?}"), |size| size.to_string())
}

#[test]
fn fargate_sizes_include_256_mb_overhead() {
    for (cpu, memory, expected) in [
        (0, 0, "0.25vCPU 0.5GB"),
        (250, 256, "0.25vCPU 0.5GB"),
        (250, 257, "0.25vCPU 1GB"),
        (250, 1_024, "0.25vCPU 2GB"),
        (250, 2_048, "0.5vCPU 3GB"),
        (1_000, 2_560, "1vCPU 3GB"),
        (1_000, 8_192, "2vCPU 9GB"),
        (4_000, 30 * 1_024, "8vCPU 32GB"),
        (16_000, 119 * 1_024, "16vCPU 120GB"),
        (16_000, 120 * 1_024, "TooLarge"),
        (16_001, 1_024, "TooLarge"),
    ] {
        assert_eq!(billed(&pod(cpu, memory)), expected, "{cpu}m, {memory}Mi");
    }
}

#[test]
fn fargate_init_uses_maximum_and_sidecar_is_added() {
    let mut spec = pod(500, 512);
    spec.init_containers.push(InitContainer { container: container(2_000, 256), sidecar: false });
    assert_eq!(billed(&spec), "2vCPU 4GB");
    spec.init_containers[0].sidecar = true;
    assert_eq!(billed(&spec), "4vCPU 8GB", "2.5 vCPU together");
}

#[test]
fn storage_beyond_20_gib_is_billed_as_provisioned() {
    let with = |gib: i64| {
        let mut spec = pod(250, 256);
        spec.containers[0].requests.set(ResourceName::EPHEMERAL_STORAGE, gib << 30);
        size(&spec, &Resources::new()).map(|size| size.extra_storage_gib)
    };
    assert_eq!((with(20), with(100), with(175)), (Ok(0), Ok(95), Ok(182)), "100 GiB are provisioned as 115");
    assert_eq!(with(176), Err(Unsupported::TooLarge));
}

fn profile(name: &str, namespace: &str, labels: &[(&str, &str)]) -> Profile {
    let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    Profile { name: Symbol::new(name), selectors: vec![Selector { namespace: namespace.to_owned(), labels }] }
}

#[test]
fn first_fargate_profile_by_name_wins() {
    let profiles =
        [profile("prod-workload", "prod", &[]), profile("beta-workload", "prod", &[]), profile("other", "x", &[])];
    let name = |labels: &Labels| chosen(&profiles, "prod", labels).map(|item| item.name.as_str());
    assert_eq!(name(&Labels::new()), Some("beta-workload"));
    let asking = |profile: &str| Labels::new().with(Symbol::new(PROFILE_LABEL), Symbol::new(profile));
    assert_eq!(name(&asking("prod-workload")), Some("prod-workload"));
    assert_eq!(name(&asking("other")), Some("beta-workload"), "that one does not fit");
}

#[test]
fn patterns_of_namespaces_stand_for_whole_names() {
    let fits: Vec<&str> =
        ["prod", "prod-eu", "preprod"].into_iter().filter(|text| matches_pattern("prod*", text)).collect();
    assert_eq!(fits, ["prod", "prod-eu"]);
    assert!(matches_pattern("team-?-*", "team-a-jobs") && !matches_pattern("team-?", "team-ab"));
    assert!(matches_pattern("*", "") && matches_pattern("a*b*c", "axxbyyc") && !matches_pattern("a*b", "abx"));
}

#[test]
fn fargate_selector_requires_all_labels() {
    let profiles = [profile("web", "shop", &[("app", "a"), ("tier", "front*")])];
    let labels = |tier: &str| {
        Labels::new().with(Symbol::new("app"), Symbol::new("a")).with(Symbol::new("tier"), Symbol::new(tier))
    };
    assert!(chosen(&profiles, "shop", &labels("frontend")).is_some());
    assert!(chosen(&profiles, "shop", &labels("back")).is_none());
    assert!(chosen(&profiles, "shop", &Labels::new()).is_none(), "the default scheduler has it");
    assert!(chosen(&profiles, "other", &labels("frontend")).is_none());
}

#[test]
fn what_fargate_does_not_run_is_named() {
    let plain = pod(250, 256);
    assert_eq!(unsupported(&plain, false), None);
    assert_eq!(unsupported(&plain, true), Some(Unsupported::Volume));
    let with = |change: &dyn Fn(&mut PodSpec)| {
        let mut plain = plain.clone();
        change(&mut plain);
        unsupported(&plain, false)
    };
    assert_eq!(with(&|pod| pod.host_network = true), Some(Unsupported::HostNetwork));
    assert_eq!(with(&|pod| pod.containers[0].privileged = true), Some(Unsupported::Privileged));
    let gpu = |pod_spec: &mut PodSpec| pod_spec.containers[0].requests.set(ResourceName::NVIDIA_GPU, 1);
    assert_eq!(with(&gpu), Some(Unsupported::Device));
    let select = |key: Symbol, value: &'static str| {
        move |pod_spec: &mut PodSpec| pod_spec.node_selector.set(key, Symbol::new(value))
    };
    assert_eq!(with(&select(well_known::ARCH, "arm64")), Some(Unsupported::Architecture));
    assert_eq!(with(&select(well_known::ARCH, "amd64")), None);
    assert_eq!(with(&select(well_known::OS, "windows")), Some(Unsupported::Windows));
    assert_eq!(with(&select(well_known::CAPACITY_TYPE, "spot")), Some(Unsupported::Spot));
}

#[test]
fn fargate_launch_rate_delays_pods_beyond_burst() {
    let mut rate = LaunchRate::new(20, 20);
    let tokens: Vec<i64> = (0..100).map(|_| (rate.take(SimTime::ZERO) - SimTime::ZERO).as_micros() / 1_000).collect();
    assert!(tokens[..20].iter().all(|at| *at == 0));
    assert_eq!((tokens[20], tokens[39], tokens[99]), (50, 1_000, 4_000));
    let later = SimTime::ZERO + SimDuration::from_secs(100);
    assert_eq!(rate.take(later), later, "it is full again");
}

#[test]
fn the_annotation_is_as_the_guide_prints_it() {
    assert_eq!(Billed { cpu_milli: 250, memory_mib: 512, extra_storage_gib: 0 }.to_string(), "0.25vCPU 0.5GB");
}

#[test]
fn added_overhead_counts_for_fargate_size() {
    let spec = pod(900, 1_800);
    let beside = Resources::cpu_memory(200, 128 << 20);
    let shown = |beside: &Resources| size(&spec, beside).unwrap().to_string();
    assert_eq!((shown(&Resources::new()), shown(&beside)), ("1vCPU 3GB".to_owned(), "2vCPU 4GB".to_owned()));
}
