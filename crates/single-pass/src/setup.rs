//! Karpenter's setup in a cluster: its release, its flags, and where they are stated.

use nodecast_karpenter::instance_types::ProviderSettings;
use nodecast_karpenter::machine::KarpenterSettings;
use nodecast_karpenter::packing::PackingOptions;
use nodecast_karpenter::release::Behaviour;
use nodecast_model::domain::{KarpenterVersion, KubernetesVersion};

/// Karpenter as a cluster runs it, with the control plane's release.
#[derive(Clone, PartialEq, Debug)]
pub struct KarpenterSetup {
    /// The release, and the settings that shape instance types.
    pub provider: ProviderSettings,
    /// Origin of the release, for people: `from the dump's Deployment kube-system/karpenter`.
    pub source: String,
    /// Flags and feature gates.
    pub flags: KarpenterSettings,
    /// Whether the feature gates are known. Where they are not, those count as on without which an object of the files means nothing.
    pub knows_gates: bool,
    /// The control plane's release.
    pub kubernetes: KubernetesVersion,
}

impl KarpenterSetup {
    /// [`source`](Self::source) where nothing states the release.
    pub const ASSUMED: &str = "assumed, no file states the release";

    /// A release with its default flags.
    pub fn of_release(release: KarpenterVersion, source: impl Into<String>) -> Self {
        Self {
            provider: ProviderSettings::for_version(release),
            source: source.into(),
            flags: KarpenterSettings::default(),
            knows_gates: false,
            kubernetes: KubernetesVersion::default(),
        }
    }

    /// The release.
    pub const fn release(&self) -> KarpenterVersion {
        self.provider.version
    }

    /// The packer's options, as far as the release has them.
    pub fn packing_options(&self) -> PackingOptions {
        let (behaviour, packing_options) = (Behaviour::for_release(self.release()), PackingOptions::default());
        PackingOptions {
            preferences: if behaviour.knows_preference_policy {
                self.flags.preferences
            } else {
                packing_options.preferences
            },
            min_values: if behaviour.knows_min_values_policy {
                self.flags.min_values
            } else {
                packing_options.min_values
            },
            ..packing_options
        }
    }
}

impl Default for KarpenterSetup {
    fn default() -> Self {
        Self::of_release(KarpenterVersion::default(), Self::ASSUMED)
    }
}
