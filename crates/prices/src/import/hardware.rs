//! What a type is made of, from `aws ec2 describe-instance-types`.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Fact;
use super::records::{Reason, text};

/// The cells of instance-types.csv that an entry fills. Branch interfaces are not part of the answer and stay empty.
pub(super) fn hardware(record: &Value) -> Result<Fact, Reason> {
    let instance_type = text(record, "InstanceType")?;
    let mut cells = BTreeMap::from([("instance_type", instance_type.to_owned())]);
    let architectures = record.pointer("/ProcessorInfo/SupportedArchitectures").and_then(Value::as_array);
    let architectures: Vec<&str> = architectures.into_iter().flatten().filter_map(Value::as_str).collect();
    let arch = match architectures.iter().find(|arch| **arch != "i386").or(architectures.first()) {
        Some(&("x86_64" | "x86_64_mac")) => "amd64",
        Some(&("arm64" | "arm64_mac")) => "arm64",
        Some(other) => other,
        None => return Err("without an architecture".into()),
    };
    cells.insert("arch", arch.to_owned());
    for (column, pointer) in [("cpu_manufacturer", "/ProcessorInfo/Manufacturer"), ("hypervisor", "/Hypervisor")] {
        if let Some(text) = record.pointer(pointer).and_then(Value::as_str) {
            cells.insert(column, text.to_lowercase());
        }
    }
    flags(record, &mut cells);
    volumes(record, &mut cells);
    numbers(record, &mut cells);
    devices(record, &mut cells);
    Ok(Fact::Hardware { instance_type: instance_type.to_owned(), cells })
}

fn flags(record: &Value, cells: &mut BTreeMap<&'static str, String>) {
    let is = |pointer: &str| record.pointer(pointer).and_then(Value::as_bool).unwrap_or(false);
    let classes = record.get("SupportedUsageClasses").and_then(Value::as_array);
    let nvme = record.pointer("/InstanceStorageInfo/NvmeSupport").and_then(Value::as_str);
    for (column, set) in [
        ("bare_metal", is("/BareMetal")),
        ("burstable", is("/BurstablePerformanceSupported")),
        ("current_generation", is("/CurrentGeneration")),
        ("encryption_in_transit", is("/NetworkInfo/EncryptionInTransitSupported")),
        ("local_nvme", matches!(nvme, Some("required" | "supported"))),
        ("spot", classes.is_some_and(|classes| classes.iter().any(|class| class == "spot"))),
    ] {
        if set {
            cells.insert(column, "1".to_owned());
        }
    }
}

/// How many volumes it takes: beside network interfaces where the answer says that they share the places.
fn volumes(record: &Value, cells: &mut BTreeMap<&'static str, String>) {
    let most = record.pointer("/EbsInfo/MaximumEbsAttachments").and_then(Value::as_f64).unwrap_or(0.0);
    insert_number(cells, "ebs_volumes", most);
    let alone = record.pointer("/EbsInfo/AttachmentLimitType").and_then(Value::as_str) == Some("dedicated");
    if alone && most > 0.0 {
        cells.insert("ebs_volumes_alone", "1".to_owned());
    }
}

fn numbers(record: &Value, cells: &mut BTreeMap<&'static str, String>) {
    let number = |pointer: &str| record.pointer(pointer).and_then(Value::as_f64).unwrap_or(0.0);
    let cards = record.pointer("/NetworkInfo/NetworkCards").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let of_card = |card: &Value, key: &str| card.get(key).and_then(Value::as_f64).unwrap_or(0.0);
    let gbps = |key: &str| cards.iter().map(|card| of_card(card, key)).sum::<f64>();
    let default = record.pointer("/NetworkInfo/DefaultNetworkCardIndex").and_then(Value::as_u64).unwrap_or(0);
    let is_default = |card: &&Value| card.get("NetworkCardIndex").and_then(Value::as_u64).unwrap_or(0) == default;
    let interfaces = match cards.iter().find(is_default) {
        Some(card) => of_card(card, "MaximumNetworkInterfaces"),
        None => number("/NetworkInfo/MaximumNetworkInterfaces"),
    };
    let disks = record.pointer("/InstanceStorageInfo/Disks").and_then(Value::as_array);
    let disks: f64 = disks.into_iter().flatten().map(|disk| of_card(disk, "Count")).sum();
    for (column, value) in [
        ("vcpus", number("/VCpuInfo/DefaultVCpus")),
        ("memory_mib", number("/MemoryInfo/SizeInMiB")),
        ("clock_mhz", number("/ProcessorInfo/SustainedClockSpeedInGhz") * 1_000.0),
        ("network_baseline_mbps", gbps("BaselineBandwidthInGbps") * 1_000.0),
        ("network_peak_mbps", gbps("PeakBandwidthInGbps") * 1_000.0),
        ("ebs_baseline_mbps", number("/EbsInfo/EbsOptimizedInfo/BaselineBandwidthInMbps")),
        ("ebs_max_mbps", number("/EbsInfo/EbsOptimizedInfo/MaximumBandwidthInMbps")),
        ("enis", interfaces),
        ("ipv4_per_eni", number("/NetworkInfo/Ipv4AddressesPerInterface")),
        ("efas", number("/NetworkInfo/EfaInfo/MaximumEfaInterfaces")),
        ("local_storage_gb", number("/InstanceStorageInfo/TotalSizeInGB")),
        ("local_disk_count", disks),
    ] {
        insert_number(cells, column, value);
    }
}

/// Zero and less than that is nothing.
fn insert_number(cells: &mut BTreeMap<&'static str, String>, column: &'static str, value: f64) {
    let whole = libm::round(value);
    if whole > 0.0 {
        cells.insert(column, format!("{whole:.0}"));
    }
}

fn devices(record: &Value, cells: &mut BTreeMap<&'static str, String>) {
    let first = |pointer: &str| record.pointer(pointer).and_then(Value::as_array).and_then(|all| all.first());
    let count = |device: &Value, pointer: &str| device.pointer(pointer).and_then(Value::as_f64).unwrap_or(0.0);
    let name = |device: &Value, key: &str| device.get(key).and_then(Value::as_str).unwrap_or("unknown").to_owned();
    if let Some(gpu) = first("/GpuInfo/Gpus") {
        cells.insert("gpu_manufacturer", name(gpu, "Manufacturer").to_lowercase());
        cells.insert("gpu_name", name(gpu, "Name").to_lowercase().replace(' ', "-"));
        insert_number(cells, "gpu_count", count(gpu, "/Count"));
        insert_number(cells, "gpu_memory_mib_each", count(gpu, "/MemoryInfo/SizeInMiB"));
    }
    // Inferentia is listed both as a Neuron device and as an inference accelerator: the former says more.
    for (kind, pointer) in [
        ("neuron", "/NeuronInfo/NeuronDevices"),
        ("inference", "/InferenceAcceleratorInfo/Accelerators"),
        ("fpga", "/FpgaInfo/Fpgas"),
        ("media", "/MediaAcceleratorInfo/Accelerators"),
    ] {
        let Some(device) = first(pointer) else { continue };
        let devices = count(device, "/Count");
        cells.insert("accelerator_kind", kind.to_owned());
        cells.insert("accelerator_name", name(device, "Name"));
        insert_number(cells, "accelerator_count", devices);
        insert_number(cells, "accelerator_cores", devices * count(device, "/CoreInfo/Count"));
        return;
    }
}
