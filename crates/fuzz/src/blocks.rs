//! Blocks of YAML: a line with what stands further in behind it, known by its key and by the key that it stands under. In a block's place another
//! of the same key is put, or one is added that stands under such a key elsewhere: what comes out is mostly still what its reader knows, of parts
//! that nobody wrote together.

use std::collections::BTreeMap;

use crate::random::Random;

/// Blocks of more lines are not kept.
const LINES_MAX: usize = 60;
/// The key of an item of a list.
const ITEM: &str = "-";

/// The blocks of some texts: by the key that they stand under, and by their own, each once.
#[derive(Default)]
pub struct Blocks {
    under: BTreeMap<String, BTreeMap<String, Vec<String>>>,
}

/// A line of a text, and what it is.
struct Line<'t> {
    text: &'t str,
    indent: usize,
    /// The key that it stands under, and its own; `None` where there is none.
    keys: Option<(String, String)>,
}

impl Blocks {
    /// Takes in the blocks of a text.
    pub fn add(&mut self, text: &str) {
        let lines = lines(text);
        for (from, line) in lines.iter().enumerate() {
            let Some((parent, key)) = &line.keys else { continue };
            let to = end(&lines, from);
            if to - from > LINES_MAX {
                continue;
            }
            let block: String =
                lines[from..to].iter().map(|this_line| this_line.text.get(line.indent..).unwrap_or("\n")).collect();
            self.under.entry(parent.clone()).or_default().entry(key.clone()).or_default().push(block);
        }
    }

    /// Keeps each block once.
    pub fn settle(&mut self) {
        for blocks in self.under.values_mut().flat_map(BTreeMap::values_mut) {
            blocks.sort_unstable();
            blocks.dedup();
        }
    }

    /// The text with another block of the same key in the place of one; `None` if none is known.
    pub fn other(&self, text: &str, random: &mut Random) -> Option<String> {
        let lines = lines(text);
        let known = |line: &Line<'_>| -> Option<&Vec<String>> {
            let (parent, key) = line.keys.as_ref()?;
            self.under.get(parent)?.get(key).filter(|blocks| blocks.len() > 1)
        };
        let places: Vec<(usize, &Vec<String>)> =
            lines.iter().enumerate().filter_map(|(place, line)| Some((place, known(line)?))).collect();
        let &(from, blocks) = places.get(random.below(places.len()))?;
        let to = end(&lines, from);
        Some(put(&lines, (from, to), &blocks[random.below(blocks.len())]))
    }

    /// The text with a block more that stands under the same key elsewhere; `None` if none is known.
    pub fn more(&self, text: &str, random: &mut Random) -> Option<String> {
        let lines = lines(text);
        let places: Vec<usize> = (0..lines.len()).filter(|index| lines[*index].keys.is_some()).collect();
        let &place = places.get(random.below(places.len()))?;
        let (parent, key) = lines[place].keys.as_ref()?;
        let of = self.under.get(parent)?;
        // Beside an item of a list another may stand, beside a key each but itself.
        let keys: Vec<&String> = of.keys().filter(|this_key| (key == ITEM) == (*this_key == ITEM)).collect();
        let keys: Vec<&String> = keys.into_iter().filter(|this_key| *this_key == ITEM || *this_key != key).collect();
        let blocks = of.get(*keys.get(random.below(keys.len()))?)?;
        Some(put(&lines, (place, place), blocks.get(random.below(blocks.len()))?))
    }
}

/// The lines with a block, as far in as the first of those in whose place it stands.
fn put(lines: &[Line<'_>], (from, to): (usize, usize), block: &str) -> String {
    let indent = " ".repeat(lines.get(from).map_or(0, |line| line.indent));
    let text: String = block.split_inclusive('\n').map(|line| format!("{indent}{line}")).collect();
    let break_after = if text.ends_with('\n') { "" } else { "\n" };
    let texts = |of: &[Line<'_>]| of.iter().map(|line| line.text).collect::<String>();
    [texts(&lines[..from]).as_str(), &text, break_after, &texts(&lines[to..])].concat()
}

/// Where the block that begins at a line ends.
fn end(lines: &[Line<'_>], from: usize) -> usize {
    let is_inside = |line: &&Line<'_>| !line.text.trim().is_empty() && line.indent > lines[from].indent;
    from + 1 + lines[from + 1..].iter().take_while(is_inside).count()
}

/// The lines of a text with their keys; none has one where it is not YAML in lines.
fn lines(text: &str) -> Vec<Line<'_>> {
    let in_lines = !text.trim_start().starts_with(['{', '[']);
    // The lines above that hold the next ones: how far in, and the key under which what they hold stands.
    let mut above: Vec<(usize, String)> = Vec::new();
    let mut found = Vec::new();
    for line in text.split_inclusive('\n') {
        let this_line = line.trim_start_matches(' ');
        let indent = line.len() - this_line.len();
        let key = key_of(this_line).filter(|_| in_lines);
        let Some(key) = key else {
            found.push(Line { text: line, indent, keys: None });
            continue;
        };
        above.retain(|(holds, _)| *holds < indent);
        let parent = above.last().map(|(_, key)| key.clone()).unwrap_or_default();
        let inner = if key == ITEM { format!("{parent}[]") } else { key.clone() };
        above.push((indent, inner));
        found.push(Line { text: line, indent, keys: Some((parent, key)) });
    }
    found
}

/// The key of a line: what stands before the first colon, or that it is an item.
fn key_of(line: &str) -> Option<String> {
    if line.starts_with("- ") {
        return Some(ITEM.to_owned());
    }
    let (key, _) = line.split_once(':')?;
    let is_plain = key.chars().all(|character| character.is_alphanumeric() || "_-./\"'".contains(character));
    (is_plain && !key.is_empty()).then(|| key.to_owned())
}

#[cfg(test)]
mod tests {
    use super::Blocks;
    use crate::random::Random;

    const ONE: &str = "ec2:\n  spot:\n    interruptions: none\nload:\n  - workload: a\n    rate: 1\n";
    const OTHER: &str = "ec2:\n  spot: off\n  failures:\n    abort: 2%\nload:\n  - workload: b\n";

    fn blocks() -> Blocks {
        let mut blocks = Blocks::default();
        [ONE, OTHER].into_iter().for_each(|text| blocks.add(text));
        blocks.settle();
        blocks
    }

    fn all(of: impl Fn(&mut Random) -> Option<String>) -> Vec<String> {
        (0..200).filter_map(|index| of(&mut Random::new(1, index))).collect()
    }

    #[test]
    fn block_replaces_block_with_same_key() {
        let found = all(|random| blocks().other(ONE, random));
        assert!(found.contains(&ONE.replace("spot:\n    interruptions: none", "spot: off")), "{found:?}");
        assert!(found.contains(&ONE.replace("  - workload: a\n    rate: 1\n", "  - workload: b\n")), "{found:?}");
    }

    #[test]
    fn a_block_is_added_where_such_stand() {
        let found = all(|random| blocks().more(ONE, random));
        assert!(found.contains(&ONE.replace("  spot", "  failures:\n    abort: 2%\n  spot")), "{found:?}");
        assert!(found.contains(&ONE.replace("  - w", "  - workload: b\n  - w")), "{found:?}");
    }

    #[test]
    fn what_is_not_in_lines_has_no_blocks() {
        assert!(all(|random| blocks().other("{\n  spot: off\n}\n", random)).is_empty());
    }
}
