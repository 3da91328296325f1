//! EKS on Fargate.

use super::Form;
use super::kind::{Amount, Bytes, Memory, Name, Positive, Text, Whole, kind, words};
use crate::definition::FargateSettings;
use crate::domain::HourlyRate;
use crate::file::fargate;
use crate::manifests::{check_profile_label, check_profile_name, check_profile_namespace};
use crate::tree::Entry;
use nodecast_model::fargate::{Profile, Selector};

section! {
    /// A pod that a profile takes when it is created runs on a machine of its own, is billed by its size and is nobody else's business.
    /// A policy may have other profiles: those that it states take the place of the scenario's, wherever these stand. What a policy leaves
    /// out is as the scenario states it.
    FARGATE: "`fargate`", "`fargate`: EKS on Fargate";
    example "fargate:
  profiles:
    - name: jobs
      selectors:
        - { namespace: jobs }
        - { namespace: \"team-*\", labels: { runs-on: fargate } }
  vcpu_quota: 200
  launch_burst: 20
  launches_per_second: 20
  start_time: 45s
  pull_rate: 20M
  spread: round-robin
  sidecar_cpu: 100m
  sidecar_memory: 128Mi
  vcpu_hour: 0.04048
  gb_hour: 0.004445
";
    struct FargateKeys {
        /// Its profiles. Of several that fit a pod the first by name takes it, or the one that its label
        /// `eks.amazonaws.com/fargate-profile` names. Those of the scenario hold beside the `fargateProfiles` of its eksctl ClusterConfigs,
        /// those of a policy beside the ones that its own bring; `profiles: []` of a policy leaves it none.
        profiles: Vec<ProfileKeys>, or "none but those of eksctl ClusterConfigs";
        /// vCPUs that all pods on Fargate may have together (assumed).
        vcpu_quota: Whole<1, 10_000_000>, over FargateSettings::VCPU_QUOTA;
        /// Pods that are launched at once after a pause; 100 where the account runs ECS tasks on Fargate too.
        launch_burst: Whole<1, 1_000_000>, over FargateSettings::LAUNCHES;
        /// Pods that are launched a second in the long run.
        launches_per_second: Whole<1, 1_000_000>, over FargateSettings::LAUNCHES;
        /// From a pod's launch to its node having registered, in the median (assumed).
        start_time: Positive, over FargateSettings::START_TIME;
        /// How fast images are pulled, unpacking included; no image is there before (assumed).
        pull_rate: Bytes, or "20 MB a second";
        /// How pods come to their zones (assumed).
        spread: ZoneSpread, over false;
        /// CPUs that are requested beside those of every pod: agents that DaemonSets bring to nodes have to be sidecars here. They count for
        /// the size that is billed.
        sidecar_cpu["CPUs"]: Amount, over 0.0;
        /// Memory that is requested beside that of every pod.
        sidecar_memory["bytes"]: Memory, over 0;
        /// Price of a vCPU for an hour.
        vcpu_hour: HourlyRate, or "the region's price";
        /// Price of a GB of memory for an hour.
        gb_hour: HourlyRate, or "the region's price";
    }
}

section! {
    PROFILE: "a profile", "`fargate.profiles[]`";
    becomes Profile, fargate::profile;
    struct ProfileKeys {
        /// Its name: letters, digits, `-`, `_` and `.`, at most 100 of them.
        name["name"]: ProfileName;
        /// Its selectors, five at most, one of which has to fit.
        selectors: Vec<SelectorKeys>;
    }
}

section! {
    SELECTOR: "a selector", "`fargate.profiles[].selectors[]`";
    becomes Selector, |_, _, own: Self| Ok(Selector { namespace: own.namespace, labels: own.labels });
    struct SelectorKeys {
        /// The namespace; `*` stands for any characters and `?` for one.
        namespace["namespace"]: NamespacePattern;
        /// Labels that the pod must have, all of them, with the same patterns.
        labels["label"]: LabelPatterns = Vec::new(), or "the whole namespace";
    }
}

kind! {
    /// The name of a profile.
    ProfileName: Name, |reading, node, _, name| {
        check_profile_name(&reading.reader, node, name.as_str())?;
        Ok(name)
    }
}

kind! {
    /// A namespace, or a pattern of several.
    NamespacePattern: Text => String, |reading, node, _, namespace| {
        check_profile_namespace(&reading.reader, node, &namespace)?;
        Ok(namespace)
    }
}

kind! {
    /// Patterns of labels.
    LabelPatterns: Vec<(String, String)> = Form::Free("", Box::new(Text::form())), |reading, node, what| {
        let entries = reading.reader.entries(node, what)?;
        let pattern = |section: &Entry<'_>, value: String| {
            check_profile_label(&reading.reader, section, &value)?;
            Ok((section.key.to_string(), value))
        };
        entries.iter().map(|entry| pattern(entry, reading.reader.text(&entry.value, "label")?.to_owned())).collect()
    }
}

words! {
    /// Whether pods go round the zones.
    ZoneSpread: bool, "random" => false, "round-robin" => true
}
