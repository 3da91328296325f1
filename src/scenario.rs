//! Scenario files and Kubernetes manifests: read with source positions, resolved, validated.
