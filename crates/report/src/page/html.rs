//! HTML pages: escaping and elements.

use nodecast_model::text::cells::printable;

use crate::format::counted;
use crate::table::Table;

/// A page under construction.
#[derive(Debug, Default)]
pub struct Html {
    page: String,
}

/// `plain` with the characters that mean something in HTML replaced; safe as content and within quoted attributes.
pub fn text(plain: &str) -> String {
    let mut escaped = String::with_capacity(plain.len());
    for character in printable(plain).chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

/// `words` with a capital at the beginning, but for `p50` and the like.
pub fn sentence(words: &str) -> String {
    let mut rest = words.chars();
    match (rest.next(), words.chars().nth(1)) {
        (Some(first), second) if !second.is_some_and(|second| second.is_ascii_digit()) => {
            first.to_uppercase().chain(rest).collect()
        }
        _ => words.to_owned(),
    }
}

/// Units that stay with the number before them.
const UNITS: [&str; 13] = ["s", "ms", "h", "%", "kB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "USD", "CNY"];

/// `words` with a space that does not break between each number and its unit, and within a duration like `1d 04h`. For text and
/// for markup; not for what a reader may copy into a shell.
pub fn unbroken(words: &str) -> String {
    let mut joined = String::with_capacity(words.len() + 16);
    let mut before = "";
    for (position, word) in words.split(' ').enumerate() {
        if position > 0 {
            joined.push(if belong_together(before, word) { '\u{a0}' } else { ' ' });
        }
        joined.push_str(word);
        before = word;
    }
    joined
}

fn belong_together(before: &str, after: &str) -> bool {
    let inner = |character: char| character.is_ascii_alphanumeric() || character == '%';
    let last = before.rsplit(|character| !inner(character)).next().unwrap_or_default();
    let first = after.split(|character| !inner(character)).next().unwrap_or_default();
    let is_part = |part: &str| {
        part.strip_suffix(['d', 'h', 'm', 's'])
            .is_some_and(|n| !n.is_empty() && n.bytes().all(|byte| byte.is_ascii_digit()))
    };
    (last.ends_with(|character: char| character.is_ascii_digit()) && UNITS.contains(&first))
        || (is_part(last) && is_part(first))
}

/// `plain` escaped, with parts between two backticks as code, and elsewhere numbers that keep their units.
pub fn prose(plain: &str) -> String {
    let mut markup = String::with_capacity(plain.len());
    let mut rest = plain;
    while let Some((before, (code, behind))) =
        rest.split_once('`').and_then(|(before, after)| Some((before, after.split_once('`')?)))
    {
        markup += &format!("{}<code>{}</code>", text(&unbroken(before)), text(code));
        rest = behind;
    }
    markup + &text(&unbroken(rest))
}

impl Html {
    /// An empty page.
    pub const fn new() -> Self {
        Self { page: String::new() }
    }

    /// Adds markup as it is.
    pub fn raw(&mut self, markup: &str) {
        self.page.push_str(markup);
    }

    /// Adds an element with escaped [`prose`]. `tag` may carry attributes: `p class="note"`.
    pub fn element(&mut self, tag: &str, content: &str) {
        self.whole(tag, &prose(content));
    }

    /// Adds an element with escaped content that keeps every space as it is: a command, a hash.
    pub fn verbatim(&mut self, tag: &str, content: &str) {
        self.whole(tag, &text(content));
    }

    fn whole(&mut self, tag: &str, markup: &str) {
        let name = tag.split(' ').next().unwrap_or(tag);
        self.page.push_str(&format!("<{tag}>{markup}</{name}>\n"));
    }

    /// Begins a part that is folded: a question, and in short what the answer is, as markup.
    pub fn fold(&mut self, id: &str, question: &str, answer: &str) {
        self.raw(&format!(
            "<details class=\"fold\" id=\"{id}\">\n<summary><h2>{}</h2> <span class=\"short\">{}</span></summary>\n",
            text(question),
            unbroken(answer)
        ));
    }

    /// Ends it.
    pub fn end_fold(&mut self) {
        self.raw("</details>\n");
    }

    /// Adds a table; `whole` is the file that has all rows. Without rows nothing is added.
    pub fn add_table(&mut self, table: impl Into<Table>, whole: &str) {
        table.into().html(self, whole);
    }

    /// Adds a list of escaped items. Without items nothing is added.
    pub fn list<T: AsRef<str>>(&mut self, items: impl IntoIterator<Item = T>) {
        let mut items = items.into_iter().peekable();
        if items.peek().is_none() {
            return;
        }
        self.raw("<ul>\n");
        for item in items {
            self.element("li", item.as_ref());
        }
        self.raw("</ul>\n");
    }

    /// Adds warnings below a heading with their number. Without warnings nothing is added.
    pub fn warnings<T: AsRef<str>>(&mut self, lines: impl IntoIterator<Item = T>) {
        let lines: Vec<T> = lines.into_iter().collect();
        if lines.is_empty() {
            return;
        }
        self.raw("<div class=\"warnings\">\n");
        self.element("h2", &counted(lines.len() as u64, "warning", "warnings"));
        self.list(lines);
        self.raw("</div>\n");
    }

    /// Bytes so far.
    pub fn bytes(&self) -> usize {
        self.page.len()
    }

    /// The page.
    pub fn finish(self) -> String {
        self.page
    }
}

#[cfg(test)]
mod tests {
    use super::{Html, prose, sentence, text, unbroken};

    #[test]
    fn nothing_in_a_text_can_become_markup() {
        assert_eq!(text("<a href='x'>\"&\u{0}\n"), "&lt;a href=&#39;x&#39;&gt;&quot;&amp;\u{fffd}\n");
        let mut page = Html::new();
        page.element("p class=\"note\"", "1 < 2");
        assert_eq!(page.finish(), "<p class=\"note\">1 &lt; 2</p>\n");
    }

    #[test]
    fn backticks_in_prose_become_code() {
        let cases = [
            ("set `a: <b>` or `c d`, 3 s", "set <code>a: &lt;b&gt;</code> or <code>c d</code>, 3\u{a0}s"),
            ("one ` alone", "one ` alone"),
            ("`all`", "<code>all</code>"),
        ];
        for (plain, markup) in cases {
            assert_eq!(prose(plain), markup);
        }
    }

    #[test]
    fn headings_are_capitalised_except_percentiles() {
        assert_eq!(["to Ready", "p50", "CPU requested", ""].map(sentence), ["To Ready", "p50", "CPU requested", ""]);
    }

    #[test]
    fn numbers_do_not_break_from_units() {
        let cases = [
            ("p50 0 s, p95 38.9 s", "p50 0~s, p95 38.9~s"),
            ("44.2% of CPU for 1m05s (2d04h) and 1d 04h", "44.2% of CPU for 1m05s (2d04h) and 1d~04h"),
            ("<b data-value=\"59\">59.0 s</b> in 730 h", "<b data-value=\"59\">59.0~s</b> in 730~h"),
            ("5 launched, 4 services, m5.large spot", "5 launched, 4 services, m5.large spot"),
        ];
        for (words, joined) in cases {
            assert_eq!(unbroken(words).replace('\u{a0}', "~"), joined);
        }
    }
}
