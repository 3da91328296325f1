//! The algebra of requirements: what two of them allow together.

use nodecast_model::domain::Symbol;
use nodecast_model::domain::requirements::{Operator, Requirement};
use serde_json::json;

use super::world::World;

pub const ROWS: &[u16] = &[26, 27, 28, 29];

/// Reads `In a b`, `Gt 3`, `Exists`.
fn requirement(text: &str) -> Requirement {
    let mut words = text.split(' ');
    let operator = match words.next().unwrap() {
        "In" => Operator::In,
        "NotIn" => Operator::NotIn,
        "Exists" => Operator::Exists,
        "DoesNotExist" => Operator::DoesNotExist,
        "Gt" => Operator::Gt,
        "Gte" => Operator::Gte,
        "Lt" => Operator::Lt,
        "Lte" => Operator::Lte,
        other => panic!("{other}"),
    };
    Requirement::new(Symbol::new("key"), operator, words.map(Symbol::new))
}

#[test]
fn requirement_intersection_allows_what_both_allow() {
    const ALL: [&str; 16] = [
        "In 1",
        "In 1 9",
        "In a b",
        "In b c",
        "NotIn 1",
        "NotIn a b",
        "NotIn 9 c",
        "Exists",
        "DoesNotExist",
        "Gt 1",
        "Gt 8",
        "Gte 9",
        "Lt 9",
        "Lt 2",
        "Lte 1",
        "Lte 9",
    ];
    let values = ["0", "1", "2", "8", "9", "10", "a", "b", "c", "-1"].map(Symbol::new);
    for (one, other) in ALL.iter().flat_map(|one| ALL.iter().map(move |other| (one, other))) {
        let (left, right) = (requirement(one), requirement(other));
        let both = left.intersection(&right);
        for value in values {
            assert_eq!(both.has(value), left.has(value) && right.has(value), "{one} and {other}: {value}");
        }
        // Bounds without a value between them count as an intersection only if they do not contradict each other.
        let nothing = both.operator() == Operator::DoesNotExist;
        assert_eq!(left.has_intersection(&right), !nothing, "{one} and {other}");
        assert_eq!(both, right.intersection(&left), "{one} and {other}");
    }
}

#[test]
fn the_table_of_operators() {
    for (one, other, together) in [
        ("In a b", "In b c", "In b"),
        ("In a b", "In c", "DoesNotExist"),
        ("In a b", "NotIn b", "In a"),
        ("In a", "NotIn a", "DoesNotExist"),
        ("NotIn a", "NotIn b", "NotIn a b"),
        ("Exists", "In a", "In a"),
        ("Exists", "NotIn a", "NotIn a"),
        ("Exists", "DoesNotExist", "DoesNotExist"),
        ("DoesNotExist", "NotIn a", "DoesNotExist"),
        ("Gt 1", "In 1 2 a", "In 2"),
        ("Gte 1", "In 1 2 a", "In 1 2"),
        ("Lt 2", "In 1 2 a", "In 1"),
        ("Lte 2", "Lte 3", "Lte 2"),
        ("Gt 1", "Gte 1", "Gt 1"),
        ("Gte 5", "Lte 4", "DoesNotExist"),
        ("Gt 4", "Lt 5", "DoesNotExist"),
        ("Gt 9223372036854775807", "Exists", "DoesNotExist"),
    ] {
        assert_eq!(requirement(one).intersection(&requirement(other)), requirement(together), "{one} and {other}");
    }
    let (five, four) = (requirement("Gte 5"), requirement("Lte 4"));
    assert!(!five.has_intersection(&four) && five.intersection(&four).any().is_none());
    assert_eq!(requirement("Gt 9223372036854775807").operator(), Operator::DoesNotExist);
}

#[test]
fn old_names_of_labels_mean_the_new_ones() {
    for (old, new, value) in [
        ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone", "zone-2"),
        ("beta.kubernetes.io/arch", "kubernetes.io/arch", "arm64"),
        ("beta.kubernetes.io/os", "kubernetes.io/os", "linux"),
        ("beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type", "arm64-8"),
    ] {
        let mut world = World::new();
        world.pod("p", json!({"nodeSelector": {old: value}}));
        let answer = world.ask();
        assert_eq!(answer.unplaced(), 0, "{old}");
        assert_eq!(answer.requires(0, new), format!("{new} In [{value}]"));
    }
}
