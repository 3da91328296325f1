//! The graph of rooms and folders: how long each is, and which imports which.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::{CRATES, ROOMS, SIM, room_of, rooms_named, sources};

/// Something and what it imports.
pub type Imports = BTreeMap<String, BTreeSet<String>>;

/// A room, or what stands in it: a folder with the file that names it, or a single file.
#[derive(Default, Debug)]
pub struct Part {
    /// Lines that are neither empty nor comment nor test.
    pub lines: usize,
    pub is_folder: bool,
    /// Other parts of the same kind: rooms by rooms, what stands in a room by what stands there too.
    pub imports: BTreeSet<String>,
}

pub type Parts = BTreeMap<String, Part>;

/// A source file without comments, empty lines and tests.
struct File {
    name: String,
    code: String,
}

impl File {
    /// What in `room` the file belongs to; nothing for the file that names the room.
    fn part(&self) -> Option<&str> {
        self.name.split_once('/')?.1.split(['/', '.']).next()
    }

    /// How deep in its room it stands: 0 for the files at the top, which reach each other by `super::`.
    fn depth(&self) -> usize {
        self.name.matches('/').count() - 1
    }
}

pub struct House {
    files: Vec<File>,
}

impl House {
    pub fn read() -> Self {
        let is_test = |name: &str| name.split(['/', '.']).any(|part| part == "tests");
        let files = sources().into_iter().filter(|(name, _)| !is_test(name));
        let files = files.map(|(name, text)| File { name, code: code_of(&text) });
        Self { files: files.filter(|file| !["lib.rs", "main.rs"].contains(&file.name.as_str())).collect() }
    }

    pub fn lines(&self) -> usize {
        self.files.iter().map(|file| file.code.lines().count()).sum()
    }

    pub fn rooms(&self) -> Parts {
        let mut rooms = Parts::new();
        for file in &self.files {
            let name = room_of(&file.name);
            let room = rooms.entry(name.to_owned()).or_default();
            room.lines += file.code.lines().count();
            room.is_folder = true;
            let rooms_here = [&SIM[..], &ROOMS].concat();
            room.imports.extend(rooms_named(&file.code, &rooms_here).into_iter().map(|(_, room)| room.to_owned()));
            let crates =
                CRATES.into_iter().filter(|name| file.code.contains(&format!("nodecast_{}", name.replace('-', "_"))));
            room.imports.extend(crates.map(str::to_owned));
            room.imports.remove(name);
        }
        rooms
    }

    /// What stands in a room.
    pub fn parts(&self, room: &str) -> Parts {
        let of_room = |file: &&File| room_of(&file.name) == room;
        let names: BTreeSet<&str> = self.files.iter().filter(of_room).filter_map(File::part).collect();
        let is_lobby = |name: &str| [format!("{room}.rs"), format!("{room}/lib.rs")].iter().any(|lobby| lobby == name);
        let lobby = self.files.iter().find(|file| is_lobby(&file.name));
        let handed_on = lobby.map(|file| handed_on(&file.code)).unwrap_or_default();
        let mut parts = Parts::new();
        for (file, name) in self.files.iter().filter(of_room).filter_map(|file| Some((file, file.part()?))) {
            let part = parts.entry(name.to_owned()).or_default();
            part.lines += file.code.lines().count();
            part.is_folder |= file.depth() > 0;
            let found = named_in_room(&file.code, room, file.depth());
            let found = found.into_iter().map(|word| handed_on.get(&word).cloned().unwrap_or(word));
            part.imports.extend(found.filter(|word| names.contains(word.as_str()) && word != name));
        }
        parts
    }

    /// The graph as text.
    pub fn text(&self) -> String {
        let (rooms, all) = (self.rooms(), self.lines());
        let mut text = format!("{all} lines of code, without empty lines, comments and tests\n");
        let names = || CRATES.into_iter().filter(|name| *name != "sim").chain(SIM).chain(ROOMS);
        for name in names() {
            let room = &rooms[name];
            let imports: Vec<&str> = names().chain(["sim"]).filter(|other| room.imports.contains(*other)).collect();
            let _ = writeln!(text, "{}", line(name, room.lines, all, &imports));
            let parts = self.parts(name);
            for (part, this_part) in parts.iter().filter(|(_, part)| part.is_folder) {
                let imports: Vec<&str> = this_part.imports.iter().map(String::as_str).collect();
                let _ = writeln!(text, "    {}", line(part, this_part.lines, all, &imports));
            }
            let files: Vec<usize> = parts.values().filter(|part| !part.is_folder).map(|part| part.lines).collect();
            if !files.is_empty() {
                let _ =
                    writeln!(text, "    {}", line(&format!("({} files)", files.len()), files.iter().sum(), all, &[]));
            }
        }
        text
    }
}

fn line(name: &str, lines: usize, all: usize, imports: &[&str]) -> String {
    let share = 100.0 * lines as f64 / all as f64;
    let arrow = if imports.is_empty() { "" } else { " -> " };
    format!("{name:20} {lines:6} {share:5.1} %{arrow}{}", imports.join(" "))
}

/// The lines of a file that are neither empty nor comment nor in its module of tests.
fn code_of(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let lines = text.lines().map(|line| line.split("//").next().unwrap_or_default().trim_end());
    lines.filter(|line| !line.is_empty()).map(|line| format!("{line}\n")).collect()
}

/// Names that a room's own file hands on from the parts where they stand: `pub use part::Name`.
fn handed_on(code: &str) -> BTreeMap<String, String> {
    let mut names = BTreeMap::new();
    for (at, _) in code.match_indices("use ") {
        let statement = code[at + 4..].split(';').next().unwrap_or_default();
        if let Some((part, rest)) = statement.split_once("::") {
            let words = rest.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
            names.extend(words.map(|word| (word.to_owned(), part.to_owned())));
        }
    }
    names
}

/// The first words of the paths into `room` that a file at this depth of it names.
pub fn named_in_room(code: &str, room: &str, depth: usize) -> Vec<String> {
    let down = if CRATES.contains(&room) { "crate::".to_owned() } else { format!("crate::{room}::") };
    let up = "super::".repeat(depth + 1);
    let mut named = Vec::new();
    for (at, _) in code.match_indices(&up) {
        let is_whole = !code[..at].ends_with("super::") && !code[at + up.len()..].starts_with("super::");
        if is_whole {
            named.extend(first_words(&code[at + up.len()..]));
        }
    }
    for (at, _) in code.match_indices(&down) {
        named.extend(first_words(&code[at + down.len()..]));
    }
    named
}

/// The first word of a path, or those of a braced list of paths.
fn first_words(path: &str) -> Vec<String> {
    let word =
        |text: &str| -> String { text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect() };
    let Some(list) = path.strip_prefix('{') else { return vec![word(path)] };
    let (mut deep, mut items) = (0_usize, vec![String::new()]);
    for letter in list.chars() {
        match letter {
            '}' if deep == 0 => break,
            '{' => deep += 1,
            '}' => deep -= 1,
            ',' if deep == 0 => items.push(String::new()),
            letter if deep == 0 => items.last_mut().unwrap().push(letter),
            _ => {}
        }
    }
    items.iter().map(|item| word(item)).filter(|item| !item.is_empty()).collect()
}

/// A way along `imports` that comes back to where it began, if there is one; the shortest through its first member.
pub fn circle(imports: &Imports) -> Option<Vec<String>> {
    imports.keys().find_map(|start| way_back(imports, start))
}

fn way_back(imports: &Imports, start: &str) -> Option<Vec<String>> {
    let mut ways = std::collections::VecDeque::from([vec![start.to_owned()]]);
    let mut seen = BTreeSet::new();
    while let Some(way) = ways.pop_front() {
        for next in imports.get(way.last()?).into_iter().flatten() {
            let longer = [way.as_slice(), std::slice::from_ref(next)].concat();
            if next == start {
                return Some(longer);
            }
            if seen.insert(next.clone()) {
                ways.push_back(longer);
            }
        }
    }
    None
}
