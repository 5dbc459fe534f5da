//! The host view: `/usr` and `/etc` of the host, read-only, with their siblings as the host has them.

use super::{Item, MANAGED, RESERVED, Shown, private, unconfined};
use crate::status::{Failure, Outcome};
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

/// The two trees of the host that are shown.
const SHOWN: [&str; 2] = ["/usr", "/etc"];
/// Their siblings in the root directory, shown as the host has them.
const SIBLINGS: [&str; 6] = ["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];
/// Files of `/etc` that hosts keep as links out of it, and that name resolution needs.
const LINKED_FILES: [&str; 3] = ["/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf"];
/// Where its programs are.
pub(super) const PROGRAMS: [&str; 6] = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// The items that every session on a host shares.
pub(super) fn items(root: &Path) -> Outcome<Vec<Item>> {
    let on_host = |path: &str| root.join(path.trim_start_matches('/'));
    let mut items = Vec::new();
    for path in SHOWN {
        items.push(Item { path: path.into(), shown: Shown::ReadOnly(on_host(path)), what: "of the host" });
    }
    for path in SIBLINGS {
        let source = on_host(path);
        let shown = match fs::symlink_metadata(&source) {
            Ok(found) if found.is_symlink() => {
                Shown::Link(fs::read_link(&source).map_err(|e| Failure::io(source.display(), e))?)
            }
            Ok(found) if found.is_dir() => Shown::ReadOnly(source),
            _ => continue,
        };
        items.push(Item { path: path.into(), shown, what: "of the host" });
    }
    items.extend(private());
    items.extend(hidden(root)?);
    for path in LINKED_FILES {
        items.extend(linked_file(root, path)?);
    }
    Ok(items)
}

/// The mask over the managed settings: over the directory itself where it is one, over the directory a link leads to
/// where the view shows that. A link that leads out of the view leads nowhere inside.
fn hidden(root: &Path) -> Outcome<Option<Item>> {
    let mask = |path: PathBuf| Item { path, shown: Shown::Hidden, what: "managed settings" };
    let on_host = root.join(MANAGED.trim_start_matches('/'));
    match fs::symlink_metadata(&on_host) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(unconfined(format!("{MANAGED}: {e}"))),
        Ok(found) if found.is_dir() => Ok(Some(mask(MANAGED.into()))),
        Ok(found) if found.is_symlink() => {
            let Some(target) = fs::canonicalize(&on_host).ok().filter(|target| target.is_dir()) else {
                return Ok(None);
            };
            let target = Path::new("/").join(target.strip_prefix(root).unwrap_or(&target));
            let inside = SHOWN.iter().chain(&SIBLINGS).any(|shown| target.starts_with(shown));
            Ok(inside.then(|| mask(target)))
        }
        Ok(_) => Ok(None),
    }
}

/// The file that a link of `/etc` reaches outside the shown trees, read-only at the place the link names, so that the
/// link holds inside. A link that reaches no regular file is left as it is: it dangles inside as it does outside.
fn linked_file(root: &Path, link: &str) -> Outcome<Option<Item>> {
    let on_host = root.join(link.trim_start_matches('/'));
    let Ok(target) = fs::read_link(&on_host) else { return Ok(None) };
    let place = normal(&Path::new(link).parent().unwrap_or(Path::new("/")).join(target));
    if SHOWN.iter().chain(&SIBLINGS).chain(&RESERVED).any(|shown| place.starts_with(shown)) {
        return Ok(None);
    }
    let Ok(source) = fs::canonicalize(root.join(place.strip_prefix("/").unwrap_or(&place))) else { return Ok(None) };
    if !fs::metadata(&source).is_ok_and(|found| found.is_file()) {
        return Ok(None);
    }
    Ok(Some(Item { path: place, shown: Shown::ReadOnly(source), what: "of the host, for name resolution" }))
}

/// `path` without `.` and `..`, by its text alone.
fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::from("/");
    for part in path.components() {
        match part {
            Component::Normal(name) => out.push(name),
            Component::ParentDir => {
                out.pop();
            }
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    out
}

#[cfg(test)]
pub(super) mod testing {
    use super::*;
    use std::os::unix::fs::symlink;
    use tempfile::TempDir;

    /// A host with the directories and links given: `a/` is a directory, `a -> b` a link, `a` a file.
    pub fn host(entries: &[&str]) -> TempDir {
        let root = tempfile::tempdir().unwrap();
        for entry in ["usr/bin/", "etc/", "bin -> usr/bin", "lib64/"].iter().chain(entries) {
            let (name, target) = entry.split_once(" -> ").map_or((*entry, None), |(name, to)| (name, Some(to)));
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            match target {
                Some(target) => symlink(target, path).unwrap(),
                None if name.ends_with('/') => fs::create_dir_all(path).unwrap(),
                None => fs::write(path, "text").unwrap(),
            }
        }
        root
    }

    pub fn lines(root: &Path, items: &[Item]) -> Vec<String> {
        let root = root.canonicalize().unwrap();
        items
            .iter()
            .map(|item| {
                let source = match &item.shown {
                    Shown::ReadOnly(source) | Shown::ReadWrite(source) => source.strip_prefix(&root).unwrap_or(source),
                    _ => Path::new(""),
                };
                format!("{item} {}", source.display()).trim_end().to_owned()
            })
            .collect()
    }

    pub const BARE: [&str; 7] = [
        "/usr (of the host, read-only) usr",
        "/etc (of the host, read-only) etc",
        "/bin (link to usr/bin)",
        "/lib64 (of the host, read-only) lib64",
        "/proc (processes of the session, private)",
        "/dev (devices of the session, private)",
        "/tmp (temporary files of the session, private)",
    ];
}

#[cfg(test)]
mod tests {
    use super::testing::{BARE, host, lines};
    use super::*;

    fn shared_lines(entries: &[&str]) -> Vec<String> {
        let root = host(entries);
        lines(root.path(), &items(&root.path().canonicalize().unwrap()).unwrap())
    }

    #[test]
    fn the_trees_of_the_host_are_shown_as_the_host_has_them() {
        assert_eq!(shared_lines(&[]), BARE);
        assert_eq!(shared_lines(&["home/user/", "root/", "run/docker.sock", "lib32", "lib.usr-is-merged/"]), BARE);
    }

    #[test]
    fn managed_settings_are_hidden_where_the_host_has_them_and_nowhere_else() {
        let hidden = |path: &str| vec![format!("{path} (managed settings, hidden)")];
        for (entries, expected) in [
            (&["etc/claude-code/managed-settings.json"][..], hidden("/etc/claude-code")),
            (&["etc/claude-code -> ../usr/managed", "usr/managed/managed-settings.json"], hidden("/usr/managed")),
            (&["etc/claude-code -> ../opt/managed", "opt/managed/managed-settings.json"], vec![]),
            (&["etc/claude-code -> ../nowhere"], vec![]),
            (&["etc/claude-code -> claude-code"], vec![]),
            (&["etc/claude-code"], vec![]),
        ] {
            assert_eq!(shared_lines(entries)[BARE.len()..], expected, "{entries:?}");
        }
    }

    #[test]
    fn a_link_of_etc_that_name_resolution_needs_holds_inside() {
        let place = "of the host, for name resolution, read-only";
        for (entries, expected) in [
            (
                &["etc/resolv.conf -> ../run/systemd/resolve/stub.conf", "run/systemd/resolve/stub.conf"][..],
                vec![format!("/run/systemd/resolve/stub.conf ({place}) run/systemd/resolve/stub.conf")],
            ),
            // A link to a link: the first is followed inside, the second is followed here.
            (
                &["etc/resolv.conf -> ../run/a.conf", "run/a.conf -> b/c.conf", "run/b/c.conf"],
                vec![format!("/run/a.conf ({place}) run/b/c.conf")],
            ),
            (&["etc/resolv.conf -> ../run/nowhere.conf"], vec![]),
            (&["etc/resolv.conf -> ../run/directory", "run/directory/file"], vec![]),
            (&["etc/resolv.conf -> ../usr/x.conf", "usr/x.conf"], vec![]),
            (&["etc/resolv.conf -> ../proc/x", "proc/x"], vec![]),
            (&["etc/resolv.conf -> resolv.conf"], vec![]),
            (&["etc/resolv.conf"], vec![]),
        ] {
            assert_eq!(shared_lines(entries)[BARE.len()..], expected, "{entries:?}");
        }
    }
}
