//! Files as streams of bytes: what they are by their first bytes, decompression, and a guard against rows without an end.

use std::cell::Cell;
use std::io::{self, BufRead, BufReader, Read};
use std::rc::Rc;

use flate2::bufread::MultiGzDecoder;
use nodecast_decisions::text::InputError;

use super::place::of_file;

/// Bytes of the longest row that is read: a quote that nothing closes would make one of a whole file.
const LONGEST_ROW: usize = 16 << 20;
/// Bytes read at a time.
const BUFFER: usize = 1 << 16;

/// What a file is by its first bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Container {
    Text,
    Gzip,
    Parquet,
}

/// What a file that begins with `head` is.
///
/// # Errors
/// If it is of a kind that is not read.
pub(super) fn container(file: &str, head: &[u8]) -> Result<Container, InputError> {
    let refused = |what: &str, way_out: &str| Err(of_file(file, what).help(way_out));
    match head {
        [] => refused("the file is empty", "was the export finished? a bill has a header and a line for each charge"),
        [0x1f, 0x8b, ..] => Ok(Container::Gzip),
        [b'P', b'A', b'R', b'1', ..] => Ok(Container::Parquet),
        [b'P', b'K', 3, 4, ..] => refused("a ZIP archive is not read", "unpack it and name the CSV file in it"),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => refused("a zstd file is not read", "unpack it with `zstd -d`"),
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => {
            refused("the text is UTF-16", "save it as UTF-8: spreadsheets call it \"CSV UTF-8\"")
        }
        _ => Ok(Container::Text),
    }
}

/// A text, decompressed where it has to be, without a byte order mark.
pub(super) fn text_of<'r>(file: &str, mut bytes: impl BufRead + 'r) -> Result<Box<dyn BufRead + 'r>, InputError> {
    let head = peeked(file, &mut bytes)?;
    let mut text: Box<dyn BufRead + 'r> = match container(file, head)? {
        Container::Gzip => Box::new(BufReader::with_capacity(BUFFER, MultiGzDecoder::new(bytes))),
        _ => Box::new(bytes),
    };
    let head = peeked(file, &mut text)?;
    if head.starts_with(&[0xef, 0xbb, 0xbf]) {
        text.consume(3);
        peeked(file, &mut text)?;
    } else if container(file, head)? != Container::Text {
        return Err(of_file(file, "the file is compressed twice, or a Parquet file within a gzip file")
            .help("unpack it once with `gunzip`"));
    }
    Ok(text)
}

/// The next bytes of a stream, which stay there.
pub(super) fn peeked<'b>(file: &str, bytes: &'b mut dyn BufRead) -> Result<&'b [u8], InputError> {
    bytes.fill_buf().map_err(|error| unreadable(file, None, &error))
}

/// The error about a stream that broke off.
pub(super) fn unreadable(file: &str, line: Option<u64>, error: &io::Error) -> InputError {
    let after = line.map_or_else(String::new, |line| format!(" after line {line}"));
    match error.kind() {
        io::ErrorKind::UnexpectedEof => of_file(file, &format!("the file is cut off{after}"))
            .help("the compressed file ends before its end: copy it again from the bucket"),
        io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => {
            of_file(file, &format!("the compressed file is damaged{after}: {error}"))
                .help("copy it again from the bucket, and compare its size")
        }
        _ => of_file(file, &format!("cannot be read{after}: {error}")),
    }
}

/// A stream that breaks off where too many bytes come before the next row is done.
pub(super) struct Guarded<R> {
    inner: R,
    since_row: RowCount,
}

/// Bytes read since the last row was done, shared between a stream and who takes rows from it.
#[derive(Clone, Default)]
pub(super) struct RowCount(Rc<Cell<usize>>);

impl RowCount {
    /// A row is done.
    pub(super) fn row_done(&self) {
        self.0.set(0);
    }

    /// Whether the row that is being read has grown too long.
    pub(super) fn is_over(&self) -> bool {
        self.0.get() > LONGEST_ROW
    }
}

impl<R: Read> Guarded<R> {
    pub(super) fn new(inner: R) -> (Self, RowCount) {
        let since_row = RowCount::default();
        (Self { inner, since_row: since_row.clone() }, since_row)
    }
}

impl<R: Read> Read for Guarded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.since_row.is_over() {
            return Err(io::Error::other("a row has no end"));
        }
        let read = self.inner.read(buffer)?;
        self.since_row.0.set(self.since_row.0.get() + read);
        Ok(read)
    }
}
