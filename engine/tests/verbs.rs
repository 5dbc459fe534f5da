//! The verbs of the corpus as a shell sees them: output, error and exit status.

#![allow(clippy::unwrap_used, reason = "a test fails by its panic")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const TAXONOMY: &str = "\
facets: {title: {role: scent, required: true}}
identifier_schemes: {n: {pattern: '{namespace}-{number}', namespace: WM, allocation: sequential}}
kinds: {note: {identifier: {scheme: n}}}
shelves: {notes: {path: docs/*.md, homogeneous: true, kind: note}}
";

fn corpus() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir_all(dir.path().join(".headwater")).unwrap();
    fs::create_dir_all(dir.path().join("docs/deep")).unwrap();
    fs::write(dir.path().join(".headwater/taxonomy.yml"), TAXONOMY).unwrap();
    fs::write(dir.path().join("docs/a.md"), "---\nid: WM-0001\ntitle: A\n---\n\n[b](b.md)\n").unwrap();
    dir
}

fn headwater(at: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_headwater")).current_dir(at).args(arguments).output().unwrap()
}

fn seen(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_lock_is_written_then_held_and_a_check_reports_from_any_directory_of_the_corpus() {
    let corpus = corpus();
    let deep = corpus.path().join("docs/deep");
    let (status, out, _) = seen(&headwater(&deep, &["lock", "--check"]));
    assert_eq!((status, out.as_str()), (Some(1), ".headwater/taxonomy.lock is not there\n"));
    assert_eq!(seen(&headwater(&deep, &["lock"])).0, Some(0));
    assert_eq!(seen(&headwater(&deep, &["lock", "--check"])).0, Some(0));
    let finding = "docs/a.md:6: error[link.target.missing]: `b.md` leads to `docs/b.md`, and nothing stands there\n";
    assert_eq!(seen(&headwater(&deep, &["check"])), (Some(0), finding.to_owned(), String::new()));
    assert_eq!(seen(&headwater(&deep, &["check", "--strict"])).0, Some(1));
    fs::write(corpus.path().join("docs/b.md"), "---\nid: WM-0002\ntitle: B\n---\n").unwrap();
    let clean = "{\"findings\":[]}\n";
    let json = headwater(&deep, &["check", "--strict", "--format", "json"]);
    assert_eq!(seen(&json), (Some(0), clean.to_owned(), String::new()));
}

#[test]
fn what_cannot_be_read_is_status_3_with_message_and_remedy_and_a_wrong_command_line_is_2() {
    let empty = tempfile::tempdir().unwrap();
    for verb in [&["check"][..], &["lock"], &["lock", "--check"]] {
        let (status, out, err) = seen(&headwater(empty.path(), verb));
        assert_eq!((status, out.as_str()), (Some(3), ""), "{verb:?}");
        assert!(err.starts_with("headwater: neither ") && err.contains("\n  remedy: name the root"), "{err}");
    }
    assert_eq!(seen(&headwater(empty.path(), &["check", "--root", "nowhere"])).0, Some(3));
    for wrong in [&["chek"][..], &["check", "--format", "xml"], &["lock", "extra"], &[]] {
        assert_eq!(seen(&headwater(empty.path(), wrong)).0, Some(2), "{wrong:?}");
    }
}

#[test]
fn rules_completions_manual_and_version_need_no_corpus() {
    let empty = tempfile::tempdir().unwrap();
    for (arguments, part) in [
        (&["check", "--rules"][..], "placement.unclassified"),
        (&["completions", "bash"], "complete -F"),
        (&["man"], ".TH headwater 1"),
        (&["man", "check"], ".TH headwater-check 1"),
        (&["--version"], "headwater "),
        (&["check", "--help"], "Examples:"),
    ] {
        let (status, out, err) = seen(&headwater(empty.path(), arguments));
        assert_eq!((status, err.as_str()), (Some(0), ""), "{arguments:?}");
        assert!(out.contains(part), "{arguments:?}");
    }
}

#[test]
fn a_reader_that_leaves_is_no_failure_and_a_full_disk_is_one() {
    let empty = tempfile::tempdir().unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_headwater"))
        .args(["completions", "bash"])
        .current_dir(empty.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_headwater"));
    let output = command.args(["check", "--rules"]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("headwater: standard output: "));
}

#[test]
fn the_locale_and_the_time_zone_change_no_byte() {
    let corpus = corpus();
    fs::write(corpus.path().join("docs/É.md"), "---\nid: x\n---\n[a](z.md)\n").unwrap();
    let with = |locale: &str, zone: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_headwater"));
        command.args(["check"]).current_dir(corpus.path()).env("LC_ALL", locale).env("TZ", zone);
        command.output().unwrap().stdout
    };
    let here = with("C", "UTC");
    assert!(here.len() > 100);
    assert_eq!(here, with("tr_TR.UTF-8", "Asia/Kathmandu"));
}
