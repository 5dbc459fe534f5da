//! The `/etc` of the closure view: a few files in memory that say what programs ask for, and nothing of the host but,
//! where a session shares its network, whom to ask for names and whom to believe.

use super::closure::Closure;
use super::{CONFIGURATION, Item, Shown};
use nix::unistd::{getegid, geteuid};
use std::borrow::Cow;
use std::fs;
use std::path::Path;

/// Where programs look for the certificates of authorities.
pub(super) const CERTIFICATES: &str = "/etc/ssl/certs/ca-certificates.crt";
/// The files that are made.
pub(super) const MADE: [&str; 7] = [
    "/etc/passwd",
    "/etc/group",
    "/etc/hosts",
    "/etc/nsswitch.conf",
    "/etc/localtime",
    "/etc/resolv.conf",
    "/etc/host.conf",
];
/// Where hosts keep those certificates, and where one path of a closure does.
const ON_HOSTS: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/ssl/certs/ca-bundle.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
];
const IN_A_PATH: [&str; 2] = ["etc/ssl/certs/ca-bundle.crt", "etc/ssl/certs/ca-certificates.crt"];

/// Universal time, as a file of the time zone format (RFC 9636, version 1): a header that counts one type of local time
/// and four characters, an offset of zero, and the name. The session's `TZ` says the same.
const UTC: &[u8] =
    b"TZif\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\x04\0\0\0\0\0\0UTC\0";

/// The items.
pub(super) fn items(closure: &Closure, host_network: bool) -> Vec<Item> {
    let made = |path: &str, text: Vec<u8>| Item {
        path: path.into(),
        shown: Shown::Given(Cow::Owned(text)),
        what: "made for the session",
    };
    let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
    let mut items = vec![
        made("/etc/passwd", passwd(uid, gid).into_bytes()),
        made("/etc/group", group(gid).into_bytes()),
        made("/etc/hosts", b"127.0.0.1 localhost headwater\n::1 localhost\n".to_vec()),
        made("/etc/nsswitch.conf", b"passwd: files\ngroup: files\nhosts: files dns\n".to_vec()),
        made("/etc/host.conf", b"multi on\n".to_vec()),
        made("/etc/localtime", UTC.to_vec()),
    ];
    if host_network && let Ok(text) = fs::read_to_string("/etc/resolv.conf") {
        items.push(made("/etc/resolv.conf", resolvers(&text).into_bytes()));
    }
    items.extend(certificates(closure));
    items
}

fn passwd(uid: u32, gid: u32) -> String {
    let mut text = "root:x:0:0:root:/:/bin/sh\n".to_owned();
    text.push_str(&format!("session:x:{uid}:{gid}:session:{CONFIGURATION}:/bin/sh\n"));
    if uid != 65534 {
        text.push_str("nobody:x:65534:65534:nobody:/:/bin/sh\n");
    }
    text
}

fn group(gid: u32) -> String {
    let others = if gid == 65534 { "" } else { "nogroup:x:65534:\n" };
    format!("root:x:0:\nsession:x:{gid}:\n{others}")
}

/// Whom the host asks for names: of its file the lines that say so, without its comments and its own domains.
fn resolvers(text: &str) -> String {
    let kept = text
        .lines()
        .map(str::trim)
        .filter(|line| matches!(line.split_whitespace().next(), Some("nameserver" | "options")));
    kept.flat_map(|line| [line, "\n"]).collect()
}

/// The certificates: those of the closure, by a link, else those of the host; none where a path of the closure is at
/// that place.
fn certificates(closure: &Closure) -> Option<Item> {
    let place = Path::new(CERTIFICATES);
    if closure.occupies(place) {
        return None;
    }
    let candidates = closure.paths().iter().flat_map(|path| IN_A_PATH.map(|name| path.join(name)));
    let of_closure = candidates.into_iter().find(|path| closure.reaches(path));
    if let Some(found) = of_closure {
        return Some(Item { path: place.into(), shown: Shown::Link(found), what: "certificates of the closure" });
    }
    let of_host = ON_HOSTS.iter().find_map(|path| fs::canonicalize(path).ok().filter(|path| path.is_file()));
    of_host.map(|found| Item { path: place.into(), shown: Shown::ReadOnly(found), what: "certificates of the host" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_has_a_name_whoever_it_runs_as() {
        assert_eq!(passwd(1000, 100).lines().count(), 3);
        for (text, fields) in [(passwd(65534, 65534), 7), (group(65534), 4)] {
            assert_eq!(text.lines().filter(|line| line.contains(":65534:")).count(), 1, "{text}");
            assert!(text.lines().all(|line| line.split(':').count() == fields), "{text}");
        }
    }

    #[test]
    fn of_the_host_s_resolvers_only_their_addresses_and_options_are_told() {
        let text =
            "# a note\n  nameserver 192.0.2.1\nsearch corp.example\ndomain x\nnameserver 2001:db8::1\noptions edns0\n";
        assert_eq!(resolvers(text), "nameserver 192.0.2.1\nnameserver 2001:db8::1\noptions edns0\n");
    }

    #[test]
    fn every_file_that_is_made_is_kept_from_a_closure() {
        let made = items(&Closure::default(), true);
        for item in made.iter().filter(|item| item.path != Path::new(CERTIFICATES)) {
            assert!(MADE.iter().any(|path| Path::new(path) == item.path), "{item}");
        }
    }

    #[test]
    fn the_certificates_are_the_closure_s_where_it_has_some() {
        let store = tempfile::tempdir().unwrap();
        let path = store.path().join("cacert");
        fs::create_dir_all(path.join("etc/ssl/certs")).unwrap();
        let bundle = path.join("etc/ssl/certs/ca-bundle.crt");
        fs::write(&bundle, "text").unwrap();
        assert_eq!(certificates(&Closure::of_tree(&path)).unwrap().shown, Shown::Link(bundle));
        assert_eq!(certificates(&Closure::of_tree(Path::new("/etc/ssl/certs"))), None);
    }

    #[test]
    fn local_time_is_universal_time() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("localtime");
        fs::write(&file, UTC).unwrap();
        let date = std::process::Command::new("date").arg("+%Z %z").env("TZ", &file).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&date.stdout), "UTC +0000\n");
    }
}
