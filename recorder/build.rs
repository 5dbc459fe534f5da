//! Builds the guard, the library that the harness is started with, so that it is a part of the recorder.

use std::path::PathBuf;
use std::process::Command;

const SOURCE: &str = "preload/src/lib.rs";

fn main() -> Result<(), String> {
    println!("cargo:rerun-if-changed={SOURCE}");
    let variable = |name: &str| std::env::var_os(name).ok_or_else(|| format!("Cargo sets no {name}"));
    let out = PathBuf::from(variable("OUT_DIR")?).join("guard.so");
    let mut rustc = Command::new(variable("RUSTC")?);
    rustc.args(["--crate-name", "guard", "--crate-type", "cdylib", "--edition", "2024", SOURCE, "-o"]).arg(&out);
    rustc.arg("--target").arg(variable("TARGET")?);
    // Neither a C library nor start files: it has to load whatever the harness was linked with.
    for option in ["panic=abort", "opt-level=z", "strip=symbols", "link-arg=-nostdlib", "link-arg=-nostartfiles"] {
        rustc.args(["-C", option]);
    }
    // For targets that link statically unless told otherwise, and then make no such library.
    rustc.args(["-C", "target-feature=-crt-static"]);
    if let Some(linker) = std::env::var_os("RUSTC_LINKER") {
        let mut option = std::ffi::OsString::from("linker=");
        option.push(linker);
        rustc.arg("-C").arg(option);
    }
    let status = rustc.status().map_err(|e| format!("rustc: {e}"))?;
    if status.success() { Ok(()) } else { Err(format!("{SOURCE} does not build: {status}")) }
}
