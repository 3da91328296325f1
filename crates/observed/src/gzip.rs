//! Tables that a run may have compressed: `pods.csv` or `pods.csv.gz`.

use std::ffi::OsString;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;

/// The file at `path`, or the compressed one next to it; `None` if there is neither.
pub(crate) fn present(path: &Path) -> Option<PathBuf> {
    if path.exists() {
        return Some(path.to_owned());
    }
    let mut name = OsString::from(path);
    name.push(".gz");
    Some(PathBuf::from(name)).filter(|path| path.exists())
}

/// The content of a file, decompressed if its name ends in `.gz`, but no more bytes than `most`.
///
/// # Errors
/// If it cannot be read, or is no whole gzip file although its name says so.
pub(crate) fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = std::fs::File::open(path)?;
    let mut bytes = Vec::new();
    match path.extension().is_some_and(|extension| extension == "gz") {
        true => MultiGzDecoder::new(io::BufReader::new(file)).take(most).read_to_end(&mut bytes)?,
        false => file.take(most).read_to_end(&mut bytes)?,
    };
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::{present, read};

    #[test]
    fn compressed_table_is_found_and_read() -> std::io::Result<()> {
        let folder = tempfile::tempdir()?;
        let plain = folder.path().join("nodes.csv");
        assert_eq!(present(&plain), None);
        let packed = folder.path().join("nodes.csv.gz");
        let mut encoder = flate2::write::GzEncoder::new(std::fs::File::create(&packed)?, flate2::Compression::fast());
        encoder.write_all(b"node\na-1\n")?;
        encoder.finish()?;
        assert_eq!(present(&plain), Some(packed.clone()));
        assert_eq!(read(&packed, 100)?, b"node\na-1\n");
        assert_eq!(read(&packed, 4)?, b"node", "no more than is wanted");
        std::fs::write(&packed, &std::fs::read(&packed)?[..12])?;
        assert!(read(&packed, 100).is_err(), "a part of a file is no table");
        Ok(())
    }
}
