//! Bytes handed over in sealed memory, so that they touch no disk and nobody can change them.

use crate::status::{Failure, Outcome};
use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd};

/// A file in memory that holds `bytes`, open for reading at its start, that nobody can write, grow or shrink.
///
/// # Errors
/// [`crate::status::Status::Internal`] where the kernel gives none.
pub fn sealed(name: &str, bytes: &[u8]) -> Outcome<OwnedFd> {
    let failed = |e: &dyn std::fmt::Display| Failure::io(format_args!("memory for {name}"), e);
    let flags = MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING;
    let mut writer = File::from(memfd_create(name, flags).map_err(|e| failed(&e.desc()))?);
    writer.write_all(bytes).map_err(|e| failed(&e))?;
    let seals = SealFlag::F_SEAL_WRITE | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_SEAL;
    fcntl(&writer, FcntlArg::F_ADD_SEALS(seals)).map_err(|e| failed(&e.desc()))?;
    // Opened anew: the reader has an offset of its own and no right to write.
    let reader = File::open(format!("/proc/self/fd/{}", writer.as_raw_fd())).map_err(|e| failed(&e))?;
    Ok(reader.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::OpenOptions;
    use std::io::Read;

    #[test]
    fn sealed_memory_is_read_from_its_start_and_never_written() {
        let fd = sealed("test", b"-a\0b").unwrap();
        let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
        let mut text = Vec::new();
        let mut file = File::from(fd);
        file.read_to_end(&mut text).unwrap();
        assert_eq!(text, b"-a\0b");
        assert!(file.write_all(b"x").is_err());
        assert!(OpenOptions::new().write(true).open(path).unwrap().write_all(b"x").is_err());
        assert!(file.set_len(0).is_err());
    }
}
