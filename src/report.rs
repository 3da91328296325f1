//! What a run emits: summary, tables, plots, pages.
