//! Tables and paragraphs as a terminal shows them: what is wider than it is comes below, and whatever goes elsewhere keeps its
//! lines as they are.

use std::iter::{once, repeat_n};
use std::ops::Range;

use textwrap::core::display_width;
use textwrap::{Options, WordSeparator, WordSplitter, WrapAlgorithm};

/// How much further in a line goes on below.
const FURTHER: &str = "    ";
/// How much further in rows stand below what they have in common.
const BELOW: &str = "  ";

/// How a column stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Align {
    /// To the left.
    Left,
    /// To the right.
    Right,
}

/// How a table is laid out.
#[derive(Clone, Copy, Debug)]
pub struct Columns<'a> {
    /// How each column stands; the last says it of all beyond it, too.
    pub align: &'a [Align],
    /// Spaces between two columns.
    pub gap: usize,
    /// How many of the first columns say what a row is of.
    pub labels: usize,
}

impl Columns<'_> {
    /// Rows, the first of which is the heading, as lines without space at their ends.
    ///
    /// Where lines have no more than `width` characters and the columns have no room beside each other, those without room stand
    /// below the others, in blocks that begin with the labels again. Labels that leave hardly any room come apart: the first is a
    /// line above the rows that have it in common. A cell that has no room even so goes on below, within its column.
    pub fn lines(&self, rows: &[Vec<String>], width: Option<usize>) -> Vec<String> {
        let widths = widths(rows);
        let Some(width) = width.filter(|&width| self.sum(&widths) > width) else {
            return self.aligned(rows, 0..widths.len());
        };
        let labels = self.sum(&widths[..self.labels.min(widths.len())]);
        if self.labels > 1 && 3 * labels > 2 * width { self.titled(rows, width) } else { self.stacked(rows, width) }
    }

    /// How wide columns of these widths are beside each other.
    fn sum(&self, widths: &[usize]) -> usize {
        widths.iter().sum::<usize>() + self.gap * widths.len().saturating_sub(1)
    }

    fn align(&self, column: usize) -> Align {
        self.align.get(column).or(self.align.last()).copied().unwrap_or(Align::Left)
    }

    /// The labels and these columns, beside each other.
    fn aligned(&self, rows: &[Vec<String>], columns: Range<usize>) -> Vec<String> {
        let widths = widths(rows);
        let shown: Vec<usize> = (0..self.labels.min(columns.start)).chain(columns).collect();
        let line = |row: &Vec<String>| {
            let mut line = String::new();
            for (position, &column) in shown.iter().enumerate() {
                let Some(cell) = row.get(column) else { continue };
                line.extend(repeat_n(' ', if position > 0 { self.gap } else { 0 }));
                let pad = repeat_n(' ', widths[column].saturating_sub(cell.chars().count()));
                match self.align(column) {
                    Align::Right => line.extend(pad.chain(cell.chars())),
                    Align::Left => line.extend(cell.chars().chain(pad)),
                }
            }
            line.trim_end().to_owned()
        };
        rows.iter().map(line).collect()
    }

    /// Blocks of columns below each other. What has no room even beside the labels alone goes on below within its column.
    fn stacked(&self, rows: &[Vec<String>], width: usize) -> Vec<String> {
        let widths = self.limits(rows, width);
        let blocks = self.blocks(&widths, width);
        if blocks.is_empty() {
            return self.aligned(rows, 0..widths.len());
        }
        let mut lines = Vec::new();
        for block in blocks {
            if !lines.is_empty() {
                lines.push(String::new());
            }
            let shown = |column: usize| column < self.labels || block.contains(&column);
            let rows: Vec<Vec<String>> = rows.iter().flat_map(|row| wrapped(row, &widths, shown)).collect();
            lines.extend(self.aligned(&rows, block));
        }
        lines
    }

    /// How wide each column may be: as wide as it is, unless that leaves it no room beside the labels, and then as wide as that room or
    /// its longest word. A single label gives way where the longest word of another column has no room beside it.
    fn limits(&self, rows: &[Vec<String>], width: usize) -> Vec<usize> {
        let mut limits = widths(rows);
        let words = of_columns(rows, |cell| cell.split(' ').map(|word| word.chars().count()).max().unwrap_or(0));
        let labels = self.labels.min(limits.len());
        let longest = words[labels..].iter().copied().max().unwrap_or(0);
        if labels == 1 && limits[0] + self.gap + longest > width {
            limits[0] = limits[0].min(width.saturating_sub(self.gap + longest).max(words[0]));
        }
        let room = width.saturating_sub(self.sum(&limits[..labels]) + if labels > 0 { self.gap } else { 0 });
        for (limit, word) in limits.iter_mut().zip(&words).skip(labels) {
            *limit = (*limit).min(room.max(*word));
        }
        limits
    }

    /// Which columns of these widths lie beside each other after the labels; at least one in each block, however wide.
    fn blocks(&self, widths: &[usize], width: usize) -> Vec<Range<usize>> {
        let of_labels = self.sum(&widths[..self.labels.min(widths.len())]);
        let mut blocks: Vec<Range<usize>> = Vec::new();
        let mut taken = 0;
        for (column, this_width) in widths.iter().enumerate().skip(self.labels) {
            match blocks.last_mut() {
                Some(block) if taken + self.gap + this_width <= width => {
                    block.end = column + 1;
                    taken += self.gap + this_width;
                }
                _ => {
                    blocks.push(column..column + 1);
                    taken = of_labels + self.gap + this_width;
                }
            }
        }
        blocks
    }

    /// A table without its first column for all rows that have the same there, which stands above it.
    fn titled(&self, rows: &[Vec<String>], width: usize) -> Vec<String> {
        let Some((heading, rest)) = rows.split_first() else { return Vec::new() };
        let align: Vec<Align> = once(Align::Left).chain((2..heading.len()).map(|column| self.align(column))).collect();
        let without = Columns { align: &align, gap: self.gap, labels: self.labels - 1 };
        let mut lines = Vec::new();
        for chunk in rest.chunk_by(|one, other| one.first() == other.first()) {
            if !lines.is_empty() {
                lines.push(String::new());
            }
            lines.extend(chunk.iter().take(1).filter_map(|row| row.first().cloned()));
            let below: Vec<Vec<String>> =
                once(heading).chain(chunk).map(|row| row.iter().skip(1).cloned().collect()).collect();
            let below = without.lines(&below, Some(width.saturating_sub(BELOW.len())));
            lines.extend(below.iter().map(|line| format!("{BELOW}{line}").trim_end().to_owned()));
        }
        lines
    }
}

/// How wide each column has to be, in characters.
fn widths(rows: &[Vec<String>]) -> Vec<usize> {
    of_columns(rows, |cell| cell.chars().count())
}

/// The largest that each column has of some measure of its cells.
fn of_columns(rows: &[Vec<String>], measure: impl Fn(&String) -> usize) -> Vec<usize> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let most = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(&measure).max().unwrap_or(0);
    (0..columns).map(most).collect()
}

/// A row as the rows that it takes where no cell is wider than its limit, broken between words; cells that are not `shown` are empty.
fn wrapped(row: &[String], limits: &[usize], shown: impl Fn(usize) -> bool) -> Vec<Vec<String>> {
    let parts: Vec<Vec<String>> = row
        .iter()
        .zip(limits)
        .enumerate()
        .map(|(column, (cell, &limit))| match shown(column) {
            true if cell.chars().count() > limit => {
                textwrap::wrap(cell, between_words(limit)).into_iter().map(String::from).collect()
            }
            true => vec![cell.clone()],
            false => Vec::new(),
        })
        .collect();
    let height = parts.iter().map(Vec::len).max().unwrap_or(0).max(1);
    let line = |at: usize| parts.iter().map(|part| part.get(at).cloned().unwrap_or_default()).collect();
    (0..height).map(line).collect()
}

/// Lines of this width, broken between words alone.
fn between_words(width: usize) -> Options<'static> {
    Options::new(width)
        .break_words(false)
        .word_separator(WordSeparator::AsciiSpace)
        .word_splitter(WordSplitter::NoHyphenation)
        .wrap_algorithm(WrapAlgorithm::FirstFit)
}

/// A line without space at its end, as it is or, where lines have no more than `width` characters, in several: it goes on
/// below, further in. It is broken between words alone, so that a name or a path that is wider can still be copied.
pub fn folded(line: &str, width: Option<usize>) -> Vec<String> {
    match width {
        None => vec![line.trim_end().to_owned()],
        Some(width) => line.split('\n').flat_map(|line| folded_at(line.trim_end(), width)).collect(),
    }
}

fn folded_at(line: &str, width: usize) -> Vec<String> {
    if display_width(line) <= width {
        return vec![line.to_owned()];
    }
    let indent = line.len() - line.trim_start_matches(' ').len();
    folded_with(line, width, &format!("{}{FURTHER}", &line[..indent]))
}

/// A line in lines of at most `width` characters, broken between words, with `further` before all but the first.
pub(crate) fn folded_with(line: &str, width: usize, further: &str) -> Vec<String> {
    let text = line.trim_start_matches(' ');
    let indent = &line[..line.len() - text.len()];
    let options = between_words(width).initial_indent(indent).subsequent_indent(further);
    textwrap::wrap(text, options).into_iter().map(String::from).collect()
}

/// Lines as text, each [`folded`].
pub fn printed(lines: &[String], width: Option<usize>) -> String {
    lines.iter().flat_map(|line| folded(line, width)).map(|line| line + "\n").collect()
}

/// A text of whole lines, each [`folded`] where a width is known.
pub fn fitted(text: String, width: Option<usize>) -> String {
    if width.is_none() {
        return text;
    }
    text.lines().flat_map(|line| folded(line, width)).map(|line| line + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::{Align, Columns, fitted, folded, printed};

    fn rows<const N: usize, const M: usize>(rows: [[&str; N]; M]) -> Vec<Vec<String>> {
        rows.map(|row| row.map(str::to_owned).to_vec()).to_vec()
    }

    const TWO: Columns<'_> = Columns { align: &[Align::Left, Align::Right], gap: 2, labels: 1 };

    #[test]
    fn columns_stand_below_each_other_without_trailing_space() {
        let rows = rows([["type", "price"], ["m5.large", "$1"]]);
        assert_eq!(TWO.lines(&rows, None), ["type      price", "m5.large     $1"]);
        let other = Columns { align: &[Align::Right, Align::Left], ..TWO };
        assert_eq!(other.lines(&rows, None), ["    type  price", "m5.large  $1"]);
    }

    #[test]
    fn short_table_row_keeps_its_cells() {
        // zone 4, id 2, price 7, date 4 characters: with two spaces between, 23.
        let mut rows = rows([["zone", "id", "price", "date"], ["a", "1", "$1", "2026"]]);
        rows.push(["b", "2", "not any"].map(str::to_owned).to_vec());
        let columns = Columns { align: &[Align::Left, Align::Left, Align::Right], ..TWO };
        assert_eq!(columns.lines(&rows, Some(23)).len(), 3);
        let lines =
            ["zone  id    price", "a     1        $1", "b     2   not any", "", "zone  date", "a     2026", "b"];
        assert_eq!(columns.lines(&rows, Some(22)), lines);
    }

    #[test]
    fn wide_labels_move_above_their_rows() {
        let columns = Columns { labels: 2, ..TWO };
        let rows = rows([
            ["scenario", "figure", "was", "is"],
            ["a/long/name.yaml", "cost", "$1.00", "$2.00"],
            ["a/long/name.yaml", "waits", "1 s", "2 s"],
            ["another/name.yaml", "cost", "$3.00", "$3.50"],
        ]);
        // 17, 6, 5 and 5 characters with two spaces between are 39; the labels alone are 25.
        assert_eq!(columns.lines(&rows, Some(39)).len(), 4);
        assert_eq!(columns.lines(&rows, Some(38)).len(), 9, "two thirds of 38 are more than 25: two blocks");
        let lines = [
            "a/long/name.yaml",
            "  figure    was     is",
            "  cost    $1.00  $2.00",
            "  waits     1 s    2 s",
            "",
            "another/name.yaml",
            "  figure    was     is",
            "  cost    $3.00  $3.50",
        ];
        assert_eq!(columns.lines(&rows, Some(30)), lines);
    }

    #[test]
    fn wide_cell_wraps_within_its_column() {
        let headed = rows([["after", "pods wait for a node", "cost"], ["30s", "55.8 s", "$4"]]);
        // The labels leave 9 of 16 characters, the first heading has 20.
        let lines = [
            "after  pods wait",
            "           for a",
            "            node",
            "30s       55.8 s",
            "",
            "after  cost",
            "30s      $4",
        ];
        assert_eq!(TWO.lines(&headed, Some(16)), lines);
        let labelled = rows([["figure", "now"], ["pods wait for a node", "$1,234.00"]]);
        let lines = ["figure        now", "pods    $1,234.00", "wait", "for a", "node"];
        assert_eq!(TWO.lines(&labelled, Some(17)), lines);
    }

    #[test]
    fn line_folds_between_words_with_indent() {
        let line = "  warning: us-east-1a has no a/very/long/path/that/has/no/room of it";
        assert_eq!(folded(line, None), [line]);
        assert_eq!(folded(line, Some(200)), [line]);
        let lines = ["  warning: us-east-1a", "      has no", "      a/very/long/path/that/has/no/room", "      of it"];
        assert_eq!(folded(line, Some(22)), lines);
        assert_eq!(folded("one;\n  two of them", Some(10)), ["one;", "  two of", "      them"]);
    }

    #[test]
    fn what_goes_into_a_pipe_keeps_its_bytes() {
        let text = "one \n\n  two of them\n";
        assert_eq!(fitted(text.to_owned(), None), text);
        assert_eq!(fitted(text.to_owned(), Some(80)), "one\n\n  two of them\n");
        assert_eq!(printed(&["one ".to_owned(), String::new()], None), "one\n\n");
    }
}
