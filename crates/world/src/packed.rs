//! Facts written close together: numbers in as many bytes as they need, in blocks that never move.
//!
//! A run of weeks makes millions of facts that nobody looks at before it is over. As structures they would take ten times the room.
//! What must not live here: what the numbers mean.

use std::num::NonZeroU64;

/// Bytes of a block; an entry that is longer has a block to itself.
const BLOCK: usize = 1 << 16;

/// Where an entry begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Place(NonZeroU64);

impl Place {
    /// Entries begin within the first [`BLOCK`] bytes of their block.
    const fn new(block: usize, offset: usize) -> Self {
        Self::numbered(((block as u64) << 16) | offset as u64)
    }

    const fn block(self) -> usize {
        (self.number() >> 16) as usize
    }

    const fn offset(self) -> usize {
        (self.number() & 0xffff) as usize
    }

    /// The place as a number, to be kept among others; there are as many as bytes.
    pub(super) const fn number(self) -> u64 {
        self.0.get() - 1
    }

    /// The place that a number stands for.
    pub(super) const fn numbered(number: u64) -> Self {
        // One more, so that a place that may be missing takes no more room.
        Self(NonZeroU64::MIN.saturating_add(number))
    }
}

/// Entries of bytes, each in one piece.
#[derive(Clone, Debug, Default)]
pub(super) struct Blocks(Vec<Vec<u8>>);

impl Blocks {
    /// Appends an entry.
    pub(super) fn push(&mut self, entry: &[u8]) -> Place {
        let fits = self.0.last().is_some_and(|last| last.len() < BLOCK && last.len() + entry.len() <= BLOCK);
        if !fits {
            self.0.push(Vec::with_capacity(BLOCK.max(entry.len())));
        }
        let block = self.0.len() - 1;
        let item = &mut self.0[block];
        let place = Place::new(block, item.len());
        item.extend_from_slice(entry);
        place
    }

    /// What stands from a place on.
    pub(super) fn at(&self, place: Place) -> Reader<'_> {
        let block = self.0.get(place.block()).map_or(&[][..], Vec::as_slice);
        Reader::from_bytes(block.get(place.offset()..).unwrap_or(&[]))
    }
}

/// How many texts are remembered, so that the same one is not kept again: a power of two.
const REMEMBERED: usize = 1 << 10;

/// Texts, of which those that come again soon are kept once.
#[derive(Clone, Debug, Default)]
pub(super) struct Texts {
    blocks: Vec<String>,
    /// By the hash of the text: its place, and how long it is.
    recent: Vec<Option<(Place, usize)>>,
}

impl Texts {
    /// Keeps a text.
    pub(super) fn keep(&mut self, text: &str) -> Place {
        self.recent.resize(REMEMBERED, None);
        let slot = hash(text) as usize % REMEMBERED;
        if let Some((place, length)) = self.recent[slot]
            && self.at(place, length) == text
        {
            return place;
        }
        let fits = self.blocks.last().is_some_and(|last| last.len() < BLOCK && last.len() + text.len() <= BLOCK);
        if !fits {
            self.blocks.push(String::with_capacity(BLOCK.max(text.len())));
        }
        let block = self.blocks.len() - 1;
        let this_block = &mut self.blocks[block];
        let place = Place::new(block, this_block.len());
        this_block.push_str(text);
        self.recent[slot] = Some((place, text.len()));
        place
    }

    /// The text of so many bytes at a place.
    pub(super) fn at(&self, place: Place, length: usize) -> &str {
        let block = self.blocks.get(place.block()).map_or("", String::as_str);
        block.get(place.offset()..place.offset() + length).unwrap_or_default()
    }
}

/// A hash that is the same on every machine (FNV-1a over words of eight bytes).
fn hash(text: &str) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for word in text.as_bytes().chunks(8) {
        let mut bytes = [0; 8];
        bytes[..word.len()].copy_from_slice(word);
        hash = (hash ^ u64::from_le_bytes(bytes)).wrapping_mul(0x0100_0000_01b3).rotate_left(23);
    }
    hash ^ (hash >> 32)
}

/// Appends a number, seven bits to a byte, the lowest first.
pub(super) fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// The same with a sign: what is near zero is short, on either side.
pub(super) fn put_signed(out: &mut Vec<u8>, number: i64) {
    put(out, ((number << 1) ^ (number >> 63)) as u64);
}

/// The same for wide numbers.
pub(super) fn put_wide(out: &mut Vec<u8>, number: i128) {
    let mut number = ((number << 1) ^ (number >> 127)) as u128;
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Reads what was put, in the same order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'b>(&'b [u8]);

impl<'b> Reader<'b> {
    /// From the beginning of these bytes.
    pub(super) const fn from_bytes(bytes: &'b [u8]) -> Self {
        Self(bytes)
    }

    /// Whether nothing is left.
    pub(super) const fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// The next byte; 0 behind the end.
    pub(super) fn byte(&mut self) -> u8 {
        let Some((&byte, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        byte
    }

    /// The next number.
    pub(super) fn number(&mut self) -> u64 {
        match self.0.split_first() {
            Some((&byte, rest)) if byte < 0x80 => {
                self.0 = rest;
                u64::from(byte)
            }
            _ => self.short_number().unwrap_or_else(|| self.long_number()),
        }
    }

    /// The next number, where it ends within the next eight bytes, as nearly all do: read at once, since a report goes over all of them a dozen
    /// times and a loop over bytes takes three times as many instructions.
    fn short_number(&mut self) -> Option<u64> {
        const ENDS: u64 = 0x8080_8080_8080_8080;
        let word = u64::from_le_bytes(*self.0.first_chunk()?);
        let ends = !word & ENDS;
        if ends == 0 {
            return None;
        }
        // A byte without its highest bit is the last one; the bits below that one are those of the number.
        let word = word & (ends ^ ends.wrapping_sub(1)) & !ENDS;
        // Seven bits of eight, then of two bytes together, then of four.
        let word = (word & 0x007f_007f_007f_007f) | ((word & 0x7f00_7f00_7f00_7f00) >> 1);
        let word = (word & 0x0000_3fff_0000_3fff) | ((word & 0x3fff_0000_3fff_0000) >> 2);
        let word = (word & 0x0fff_ffff) | ((word & 0x0fff_ffff_0000_0000) >> 4);
        self.0 = self.0.get(ends.trailing_zeros() as usize / 8 + 1..)?;
        Some(word)
    }

    fn long_number(&mut self) -> u64 {
        let (mut number, mut shift) = (0, 0);
        loop {
            let byte = self.byte();
            number |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 || shift >= 64 {
                return number;
            }
        }
    }

    /// The next number with a sign.
    pub(super) fn signed(&mut self) -> i64 {
        let number = self.number();
        (number >> 1) as i64 ^ -((number & 1) as i64)
    }

    /// The next wide number.
    pub(super) fn wide(&mut self) -> i128 {
        let (mut number, mut shift) = (0_u128, 0);
        loop {
            let byte = self.byte();
            number |= u128::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 || shift >= 128 {
                return (number >> 1) as i128 ^ -((number & 1) as i128);
            }
        }
    }

    /// Passes over the next bytes.
    pub(super) fn skip(&mut self, length: usize) {
        self.0 = self.0.get(length..).unwrap_or_default();
    }

    /// The next bytes as text.
    pub(super) fn text(&mut self, length: usize) -> &'b str {
        let (text, rest) = self.0.split_at(length.min(self.0.len()));
        self.0 = rest;
        std::str::from_utf8(text).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{BLOCK, Blocks, Place, Texts, put, put_signed, put_wide};

    proptest! {
        #[test]
        fn what_is_put_is_read(own in any::<u64>(), small in 0_u64..300, signed in any::<i64>(), wide in any::<i128>()) {
            let mut bytes = Vec::new();
            put(&mut bytes, own);
            put_signed(&mut bytes, signed);
            put(&mut bytes, small);
            put_wide(&mut bytes, wide);
            let mut blocks = Blocks::default();
            blocks.push(&[1, 2, 3]);
            let place = blocks.push(&bytes);
            let mut reader = blocks.at(Place::numbered(place.number()));
            prop_assert_eq!(reader.number(), own);
            prop_assert_eq!(reader.signed(), signed);
            prop_assert_eq!(reader.number(), small);
            prop_assert_eq!(reader.wide(), wide);
            prop_assert!(reader.is_empty());
        }
    }

    #[test]
    fn the_ends_of_the_numbers_are_read() {
        let mut bytes = Vec::new();
        for number in [i64::MIN, -1, 0, 1, i64::MAX] {
            put_signed(&mut bytes, number);
        }
        for number in [i128::MIN, -1, 0, 1, i128::MAX] {
            put_wide(&mut bytes, number);
        }
        let mut blocks = Blocks::default();
        let place = blocks.push(&bytes);
        let mut reader = blocks.at(place);
        assert_eq!([(); 5].map(|()| reader.signed()), [i64::MIN, -1, 0, 1, i64::MAX]);
        assert_eq!([(); 5].map(|()| reader.wide()), [i128::MIN, -1, 0, 1, i128::MAX]);
    }

    #[test]
    fn entries_of_any_length_span_blocks() {
        let mut blocks = Blocks::default();
        let entries: Vec<Vec<u8>> =
            (0..40_u8).map(|index| vec![index; usize::from(index) * usize::from(index) * 60]).collect();
        assert!(entries.iter().any(|entry| entry.len() > BLOCK));
        let places: Vec<Place> = entries.iter().map(|entry| blocks.push(entry)).collect();
        for (place, entry) in places.iter().zip(&entries) {
            let mut reader = blocks.at(Place::numbered(place.number()));
            assert!(entry.iter().all(|byte| reader.byte() == *byte));
        }
    }

    #[test]
    fn recently_repeated_text_is_stored_once() {
        let mut texts = Texts::default();
        let names: Vec<String> = (0..20_000).map(|index| format!("caf\u{e9} number {}", index % 7_000)).collect();
        let places: Vec<Place> = names.iter().map(|name| texts.keep(name)).collect();
        for (place, name) in places.iter().zip(&names) {
            assert_eq!(texts.at(*place, name.len()), name);
        }
        let again: Vec<Place> = ["all", "all", "well", "all"].iter().map(|text| texts.keep(text)).collect();
        assert!(again[0] == again[1] && again[0] == again[3] && again[0] != again[2]);
        assert!(texts.blocks.len() > 2);
    }
}
