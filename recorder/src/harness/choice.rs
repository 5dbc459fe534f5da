//! Which harness a session is driven with.

use crate::status::{Failure, Outcome, Status};
use nix::unistd::{AccessFlags, access};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// What stands before the path of a script to name the scripted harness.
const SCRIPTED: &str = "scripted:";
/// The name that the script has beside the harness, inside.
const SCRIPT: &str = "script.json";
/// The program that is looked for where none is named.
const NAME: &str = "claude";

/// A harness.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Harness {
    /// A program that speaks the stream.
    Program(PathBuf),
    /// This program as the scripted harness, and its script.
    Scripted {
        /// This program.
        program: PathBuf,
        /// The script.
        script: PathBuf,
    },
}

impl Harness {
    /// The harness that `named` names: a path, or `scripted:FILE`; where nothing is named, `claude` in one of the
    /// absolute directories of `search` (a `PATH`).
    ///
    /// # Errors
    /// [`Status::Missing`] where there is none, or it may not be executed.
    pub fn find(named: Option<&OsStr>, search: Option<&OsStr>) -> Outcome<Self> {
        let Some(named) = named else {
            let directories = std::env::split_paths(search.unwrap_or_default()).filter(|d| d.is_absolute());
            let found = directories.map(|d| d.join(NAME)).find(|path| may_be_executed(path));
            return found.map(Self::Program).ok_or_else(|| {
                Failure::new(Status::Missing, format!("no harness: there is no `{NAME}` in PATH"))
                    .remedy("install the claude command line program, or name one with --harness")
            });
        };
        match named.to_str().and_then(|text| text.strip_prefix(SCRIPTED)) {
            Some(script) => {
                let script = PathBuf::from(script);
                if !script.is_file() {
                    let message = format!("the script {} is no file", script.display());
                    return Err(Failure::new(Status::Missing, message).remedy("name a script: scripted:FILE"));
                }
                let program = std::env::current_exe().map_err(|e| Failure::io("this program cannot be found", e))?;
                Ok(Self::Scripted { program, script })
            }
            None => {
                let path = PathBuf::from(named);
                if !path.is_file() {
                    let message = format!("the harness {} is no file", path.display());
                    return Err(Failure::new(Status::Missing, message)
                        .remedy("name the claude command line program with --harness"));
                }
                if !may_be_executed(&path) {
                    let message = format!("the harness {} may not be executed by this user", path.display());
                    let remedy = format!("chmod a+rx {}", path.display());
                    return Err(Failure::new(Status::Missing, message).remedy(remedy));
                }
                Ok(Self::Program(path))
            }
        }
    }

    /// The binary, on the host.
    #[must_use]
    pub fn program(&self) -> &Path {
        match self {
            Self::Program(program) | Self::Scripted { program, .. } => program,
        }
    }

    /// The files it is given, by the name each has beside it.
    #[must_use]
    pub fn beside(&self) -> Vec<(&'static str, &Path)> {
        match self {
            Self::Program(_) => Vec::new(),
            Self::Scripted { script, .. } => vec![(SCRIPT, script)],
        }
    }

    /// What stands before the harness's own options.
    #[must_use]
    pub fn leading(&self, directory: &str) -> Vec<OsString> {
        match self {
            Self::Program(_) => Vec::new(),
            Self::Scripted { .. } => vec!["scripted-harness".into(), format!("{directory}/{SCRIPT}").into()],
        }
    }

    /// Whether it drives a model, and so needs credentials and spends.
    #[must_use]
    pub fn spends(&self) -> bool {
        matches!(self, Self::Program(_))
    }
}

fn may_be_executed(path: &Path) -> bool {
    path.is_file() && access(path, AccessFlags::X_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_harness_is_named_or_found_and_may_be_executed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(NAME);
        let search = Some(dir.path().as_os_str());
        assert_eq!(Harness::find(None, search).unwrap_err().status, Status::Missing);
        assert_eq!(Harness::find(Some(path.as_os_str()), None).unwrap_err().status, Status::Missing);
        std::fs::write(&path, "").unwrap();
        assert_eq!(Harness::find(Some(path.as_os_str()), None).unwrap_err().status, Status::Missing);
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        assert_eq!(Harness::find(None, search).unwrap(), Harness::Program(path));
    }

    #[test]
    fn a_scripted_harness_is_this_program_with_its_script_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let script = dir.path().join("s.json");
        let named = format!("scripted:{}", script.display());
        assert_eq!(Harness::find(Some(named.as_ref()), None).unwrap_err().status, Status::Missing);
        std::fs::write(&script, "{}").unwrap();
        let harness = Harness::find(Some(named.as_ref()), None).unwrap();
        assert_eq!(harness.leading("/x"), ["scripted-harness", "/x/script.json"]);
        assert_eq!(harness.beside(), [("script.json", script.as_path())]);
        assert!(!harness.spends());
    }
}
