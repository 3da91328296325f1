//! The containers of a pod: what they request and may use, their ports, probes and hooks.

use super::common::resource_map;
use super::fractions;
use crate::lints;
use nodecast_model::domain::pod::{HostPort, InitContainer, Probe};
use nodecast_model::domain::symbol::well_known;
use nodecast_model::domain::{Container, Resources, SimDuration, Symbol};
use nodecast_model::text::InputError;
use nodecast_model::text::error::{listed, nearest};
use nodecast_model::text::reader::{Fields, Reader, Shape};
use nodecast_model::text::tree::Node;

static CONTAINER: Shape = Shape {
    name: "a container",
    keys: &[
        "name",
        "image",
        "resources",
        "ports",
        "readinessProbe",
        "startupProbe",
        "livenessProbe",
        "restartPolicy",
        "lifecycle",
        "command",
        "args",
    ],
    without_effect: &[
        "env",
        "envFrom",
        "workingDir",
        "volumeMounts",
        "volumeDevices",
        "terminationMessagePath",
        "terminationMessagePolicy",
        "imagePullPolicy",
        "securityContext",
        "stdin",
        "stdinOnce",
        "tty",
        "resizePolicy",
    ],
    unsupported: &[("restartPolicyRules", "a container restarts by its `restartPolicy`, whatever its exit code")],
    strict: false,
};
pub(super) static CONTAINER_RESOURCES: Shape = Shape {
    name: "resources",
    keys: &["requests", "limits"],
    without_effect: &["claims"],
    unsupported: &[],
    strict: false,
};
static PORT: Shape = Shape {
    name: "a container's port",
    keys: &["containerPort", "hostPort", "hostIP", "protocol"],
    without_effect: &["name"],
    unsupported: &[],
    strict: false,
};
static PROBE: Shape = Shape {
    name: "a probe",
    keys: &[
        "initialDelaySeconds",
        "periodSeconds",
        "successThreshold",
        "failureThreshold",
        "terminationGracePeriodSeconds",
    ],
    without_effect: &["httpGet", "tcpSocket", "exec", "grpc", "timeoutSeconds"],
    unsupported: &[],
    strict: false,
};

/// App containers, and init containers with sidecars.
type Containers = (Vec<Container>, Vec<InitContainer>);

pub(super) fn all_containers<'s>(
    reader: &mut Reader<'s>,
    fields: Fields<'_, 's>,
    host_network: bool,
) -> Result<Containers, InputError> {
    let app = fields.optional("containers", |n, what| reader.list(n, what))?.unwrap_or_default();
    let init = fields.optional("initContainers", |n, what| reader.list(n, what))?.unwrap_or_default();
    let mut containers = Vec::with_capacity(app.len());
    for node in app {
        containers.push(container(reader, node, host_network)?.0);
    }
    let mut init_containers = Vec::with_capacity(init.len());
    for node in init {
        let (container, sidecar) = container(reader, node, host_network)?;
        init_containers.push(InitContainer { container, sidecar });
    }
    Ok((containers, init_containers))
}

/// Amounts under `key` of a container. Names without a domain are Kubernetes' own, and it refuses others.
///
/// Source: Kubernetes 1.36 `pkg/apis/core/validation/validation.go`, `validateContainerResourceName`.
fn container_resources<'s>(
    reader: &mut Reader<'s>,
    amounts: Fields<'_, 's>,
    key: &'static str,
) -> Result<Resources, InputError> {
    const OWN: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
    let Some(node) = amounts.get(key) else { return Ok(Resources::new()) };
    let matches = |name: &str| OWN.contains(&name) || name.starts_with("hugepages-") || name.contains('/');
    if let Some(entry) = reader.entries(node, key)?.iter().find(|entry| !matches(&entry.key)) {
        let shown: String = entry.key.chars().take(80).collect();
        let help = nearest(&shown, OWN).map_or_else(
            || format!("Kubernetes defines {}; other resources need a domain, such as `nvidia.com/gpu`", listed(OWN)),
            |near| format!("did you mean `{near}`?"),
        );
        let error = reader.error(entry.key_at, format!("a container can have no resource `{shown}`"));
        return Err(error.because("Kubernetes refuses it").help(help));
    }
    fractions::warn(reader, node, key)?;
    resource_map(reader, node, key)
}

/// A container, and whether it says `restartPolicy: Always`.
fn container<'s>(
    reader: &mut Reader<'s>,
    node: &Node<'s>,
    host_network: bool,
) -> Result<(Container, bool), InputError> {
    let fields = reader.fields(node, &CONTAINER)?;
    let mut container = Container {
        name: fields.optional("name", |n, what| reader.text(n, what))?.unwrap_or_default().to_owned(),
        image: fields.optional("image", |n, what| reader.text(n, what))?.unwrap_or_default().to_owned(),
        ..Container::default()
    };
    if let Some(node) = fields.get("resources") {
        let amounts = reader.fields(node, &CONTAINER_RESOURCES)?;
        container.requests = container_resources(reader, amounts, "requests")?;
        container.limits = container_resources(reader, amounts, "limits")?;
        reject_requests_above_limits(reader, amounts, &container)?;
    }
    for node in fields.optional("ports", |n, what| reader.list(n, what))?.unwrap_or_default() {
        container.host_ports.extend(host_port(reader, node, host_network)?);
    }
    container.readiness_probe = fields.get("readinessProbe").map(|n| probe(reader, n)).transpose()?;
    container.startup_probe = fields.get("startupProbe").map(|n| probe(reader, n)).transpose()?;
    container.liveness_probe = fields.get("livenessProbe").map(|n| probe(reader, n)).transpose()?;
    container.idles = idles(&[fields.get("command"), fields.get("args")]);
    let privileged = node.get("securityContext").and_then(|node| node.get("privileged"));
    container.privileged = privileged.and_then(Node::as_text) == Some("true");
    container.pre_stop = fields.get("lifecycle").map_or(SimDuration::ZERO, |n| pre_stop(reader, n));
    let sidecar = fields.optional("restartPolicy", |n, what| reader.text(n, what))? == Some("Always");
    Ok((container, sidecar))
}

/// Whether a command and its arguments do nothing but stay: `sleep` alone, `tail -f /dev/null`, `pause`, in a shell or not.
fn idles(parts: &[Option<&Node<'_>>]) -> bool {
    let items = parts.iter().flatten().flat_map(|node| node.items()).filter_map(Node::as_text);
    let words: Vec<&str> = items.flat_map(str::split_whitespace).collect();
    let shell = |word: &&str| matches!(word.rsplit('/').next(), Some("sh" | "bash" | "-c" | "exec"));
    let words: Vec<&str> = words.into_iter().skip_while(shell).collect();
    match words.as_slice() {
        [first] => first.trim_start_matches('/') == "pause",
        ["sleep" | "/bin/sleep", span] => span.chars().all(|letter| letter.is_ascii_alphanumeric()),
        words => words == ["tail", "-f", "/dev/null"],
    }
}

/// The API server refuses a request above its limit, so a simulation of it would answer a question nobody can ask.
fn reject_requests_above_limits(
    reader: &Reader<'_>,
    amounts: Fields<'_, '_>,
    container: &Container,
) -> Result<(), InputError> {
    for (name, request) in container.requests.iter() {
        let Some(limit) = container.limits.find(name).filter(|limit| request > *limit) else { continue };
        let at = amounts.get("requests").and_then(|n| n.get(name.0.as_str())).map_or(amounts.at, |n| n.at);
        return Err(reader
            .error(at, format!("the request of {name} is above its limit of {}", name.format(limit)))
            .because("above the limit")
            .help("Kubernetes rejects this pod; lower the request or raise the limit"));
    }
    Ok(())
}

/// The port that a container opens on its node, if it opens one. On the host's network every container port is one, as
/// the API server defaults it.
fn host_port<'s>(reader: &mut Reader<'s>, node: &Node<'s>, host_network: bool) -> Result<Option<HostPort>, InputError> {
    let fields = reader.fields(node, &PORT)?;
    let number = |key| fields.optional(key, |n, what| reader.integer(n, what, 0, 65_535));
    let inherited = if host_network { number("containerPort")? } else { None };
    let Some(port) = number("hostPort")?.filter(|port| *port > 0).or(inherited) else { return Ok(None) };
    let text = |key| fields.optional(key, |n, what| reader.symbol(n, what));
    Ok(Some(HostPort {
        port: u16::try_from(port).unwrap_or(u16::MAX),
        protocol: text("protocol")?.unwrap_or_else(|| Symbol::new("TCP")),
        ip: text("hostIP")?.unwrap_or(well_known::EMPTY),
    }))
}

/// A probe. 0 counts as not given where the API has a default other than 0.
///
/// Source: Kubernetes 1.36 `pkg/apis/core/v1/defaults.go`, `SetDefaults_Probe`.
fn probe<'s>(reader: &mut Reader<'s>, node: &Node<'s>) -> Result<Probe, InputError> {
    let fields = reader.fields(node, &PROBE)?;
    let threshold = |key, default| -> Result<u32, InputError> {
        let number = fields.optional(key, |n, what| reader.integer(n, what, 0, i64::from(i32::MAX)))?;
        Ok(number.and_then(|number| u32::try_from(number).ok()).filter(|number| *number > 0).unwrap_or(default))
    };
    let period = fields.optional("periodSeconds", |n, what| reader.integer(n, what, 0, 1_000_000_000))?;
    let period = period.filter(|seconds| *seconds > 0);
    Ok(Probe {
        initial_delay: fields
            .optional("initialDelaySeconds", |n, what| reader.seconds(n, what))?
            .unwrap_or(SimDuration::ZERO),
        period: SimDuration::from_secs(period.unwrap_or(10)),
        success_threshold: threshold("successThreshold", 1)?,
        failure_threshold: threshold("failureThreshold", 3)?,
        termination_grace: fields.optional("terminationGracePeriodSeconds", |n, what| reader.seconds(n, what))?,
    })
}

/// How long the hook before the end sleeps; of a hook that runs something else that is not known.
fn pre_stop<'s>(reader: &mut Reader<'s>, lifecycle: &Node<'s>) -> SimDuration {
    if let Some(hook) = lifecycle.get("postStart") {
        reader.left_out(&lints::POST_START, hook.at, "`postStart` is not simulated; assuming it takes no time", "");
    }
    let Some(hook) = lifecycle.get("preStop") else { return SimDuration::ZERO };
    let stated = hook.get("sleep").and_then(|sleep| sleep.get("seconds")).and_then(Node::as_text);
    // `sleep 5`, on its own or as the last word of a shell's command.
    let command = hook.get("exec").and_then(|exec| exec.get("command")).map_or(&[][..], Node::items);
    let words: Vec<&str> = command.iter().filter_map(Node::as_text).flat_map(str::split_whitespace).collect();
    let slept = words.iter().rposition(|word| word.ends_with("sleep")).and_then(|place| words.get(place + 1).copied());
    match stated.or(slept).and_then(|seconds| seconds.parse::<u32>().ok()) {
        Some(seconds) => SimDuration::from_secs(i64::from(seconds)),
        None => {
            reader.left_out(
                &lints::PRE_STOP,
                hook.at,
                "the duration of this hook is unknown; assuming it takes no time",
                "",
            );
            SimDuration::ZERO
        }
    }
}
