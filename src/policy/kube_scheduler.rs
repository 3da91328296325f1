//! kube-scheduler's filters and scores: which node a pod goes to.
