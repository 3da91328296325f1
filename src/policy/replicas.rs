//! Replica counts: the arithmetic of the HorizontalPodAutoscaler and of KEDA.
