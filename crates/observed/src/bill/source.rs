//! Files as streams of bytes: what they are by their first bytes, decompression, and a guard against rows without an end.

use std::cell::Cell;
use std::io::{self, BufRead, BufReader, Read};
use std::rc::Rc;

use flate2::bufread::MultiGzDecoder;
use nodecast_model::text::InputError;

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
pub(super) fn unreadable(file: &str, rows: Option<u64>, error: &io::Error) -> InputError {
    let after = rows.map_or_else(String::new, |rows| format!(" after row {rows}"));
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
    watch: Watch,
}

/// What a stream of rows shares with who takes rows from it.
#[derive(Clone, Default)]
pub(super) struct Watch(Rc<Watched>);

#[derive(Default)]
struct Watched {
    /// Bytes read since the last row was done.
    since_row: Cell<usize>,
    /// Rows that are done.
    rows: Cell<u64>,
    /// Whether the first line ends with carriage return and line feed; unknown before its end.
    two_byte_ends: Cell<Option<bool>>,
    /// The last byte before that.
    before: Cell<u8>,
}

impl Watch {
    /// A row is done, the header among them.
    pub(super) fn row_done(&self) {
        self.0.since_row.set(0);
        self.0.rows.set(self.0.rows.get() + 1);
    }

    /// Rows that are done.
    pub(super) fn rows(&self) -> u64 {
        self.0.rows.get()
    }

    /// Whether the row that is being read has grown too long.
    pub(super) fn is_over(&self) -> bool {
        self.0.since_row.get() > LONGEST_ROW
    }

    /// The line on which the row at `position` begins. The parser of rows stops between carriage return and line feed, and so believes
    /// the next row to be still on the line before.
    pub(super) fn line(&self, position: Option<&csv::Position>) -> u64 {
        let (line, byte) = position.map_or((1, 0), |position| (position.line(), position.byte()));
        let behind = byte > 0 && self.0.two_byte_ends.get() == Some(true);
        line + u64::from(behind)
    }

    fn look_at(&self, bytes: &[u8]) {
        let watched = &self.0;
        watched.since_row.set(watched.since_row.get() + bytes.len());
        if watched.two_byte_ends.get().is_none() {
            let end = bytes.iter().position(|&byte| byte == b'\n');
            let before = bytes[..end.unwrap_or(bytes.len())].last().copied().unwrap_or(watched.before.get());
            watched.before.set(before);
            watched.two_byte_ends.set(end.map(|_| before == b'\r'));
        }
    }
}

impl<R: Read> Guarded<R> {
    pub(super) fn new(inner: R) -> (Self, Watch) {
        let watch = Watch::default();
        (Self { inner, watch: watch.clone() }, watch)
    }
}

impl<R: Read> Read for Guarded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.watch.is_over() {
            return Err(io::Error::other("a row has no end"));
        }
        let read = self.inner.read(buffer)?;
        self.watch.look_at(&buffer[..read]);
        Ok(read)
    }
}
