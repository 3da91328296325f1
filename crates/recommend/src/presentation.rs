//! Tables and pages of recommendations and right-sizing.

pub mod recommendation;
pub mod recommendation_page;
pub mod rightsizing;
pub mod rightsizing_page;
mod savings;

use nodecast_points::presentation::{aligned_within, known, known_difference, signed_percent};
