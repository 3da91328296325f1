//! What VerticalPodAutoscalers recommended, against what pods request and use.

use super::SUMMARY_FILE;
use crate::page::html::{Column, Html};
use crate::summary::{Sizes, Summary};

pub(in super::super) fn vertical(page: &mut Html, summary: &Summary) {
    if summary.vertical.is_empty() {
        return;
    }
    page.element("h3 id=\"vertical\"", "Requests and recommendations");
    let columns = [
        Column::Text("workload"),
        Column::Text("container"),
        Column::Text("resource"),
        Column::Figure("requested at first"),
        Column::Figure("at the end"),
        Column::Figure("used on average"),
        Column::Figure("recommended"),
        Column::Figure("lower bound"),
        Column::Figure("upper bound"),
    ];
    let mut rows = Vec::new();
    for own in &summary.vertical {
        for container in &own.containers {
            for (sizes, name, decimals) in [(container.cpu, "CPU, cores", 3), (container.memory, "memory, MiB", 0)] {
                if let Some(sizes) = sizes {
                    let names = [own.workload.clone(), container.container.clone(), name.to_owned()];
                    rows.push(names.into_iter().chain(cells(sizes, decimals)).collect());
                }
            }
        }
    }
    page.table(&columns, &rows, "recommendations.csv");
    let columns = [
        Column::Text("autoscaler"),
        Column::Text("workload"),
        Column::Text("mode"),
        Column::Text("what became of pods"),
    ];
    let deeds = summary.vertical.iter();
    let rows: Vec<Vec<String>> =
        deeds.map(|own| vec![own.autoscaler.clone(), own.workload.clone(), own.mode.clone(), own.deeds()]).collect();
    page.table(&columns, &rows, SUMMARY_FILE);
    page.element(
        "p class=\"note\"",
        "Requests and use are means over the pods that run. The upper bound of a young workload is so high that it says nothing.",
    );
}

fn cells(sizes: Sizes, decimals: usize) -> [String; 6] {
    let Sizes { request_first, request_last, used_mean, target, lower_bound, upper_bound, .. } = sizes;
    [request_first, request_last, used_mean, Some(target), Some(lower_bound), Some(upper_bound)].map(|amount| {
        amount.map_or_else(
            String::new,
            |amount| {
                if amount > 1e7 { "any".to_owned() } else { format!("{amount:.decimals$}") }
            },
        )
    })
}
