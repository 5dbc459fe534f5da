//! The grades of a fixed set of transcripts, byte for byte: text and JSON, as the binary prints them.
//!
//! The set is `golden/*.md`, read over `golden/corpus`; beside each transcript stand its grades. A byte of a grade that
//! changes asks for another `GRADER_VERSION`, and another version for a byte that changes.
//! `HEADWATER_GOLDEN=write cargo test -p headwater --test golden` writes the grades that this code gives, where the
//! version allows it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by its panic")]

use headwater::probe::grade::GRADER_VERSION;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Grades by file name.
type Grades = BTreeMap<String, String>;

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

fn headwater(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_headwater")).current_dir(golden()).args(arguments).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && error.is_empty(), "{arguments:?}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

fn files(extensions: &[&str]) -> BTreeSet<String> {
    let names = fs::read_dir(golden()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    names.filter(|name| extensions.iter().any(|e| name.ends_with(e))).collect()
}

/// The grades that this code gives. The lock is not committed, since no byte of a grade comes from it.
fn given() -> Grades {
    let corpus = tempfile::tempdir().unwrap();
    copy(&golden().join("corpus"), corpus.path());
    let root = corpus.path().to_str().unwrap();
    headwater(&["lock", "--root", root]);
    let mut grades = Grades::new();
    for transcript in files(&[".md"]) {
        let stem = transcript.strip_suffix(".md").unwrap();
        for (format, extension) in [("text", "txt"), ("json", "json")] {
            let grade = headwater(&["probe", "grade", &transcript, "--root", root, "--format", format]);
            grades.insert(format!("{stem}.{extension}"), grade);
        }
    }
    grades
}

fn committed() -> Grades {
    let read = |name: String| (name.clone(), fs::read_to_string(golden().join(name)).unwrap());
    files(&[".txt", ".json"]).into_iter().map(read).collect()
}

/// The grader that a grade names.
fn grader(grade: &str) -> &str {
    let behind = |mark: &str| grade.split_once(mark).map(|(_, rest)| rest);
    let text = behind("\nGrader ").and_then(|rest| rest.split_once(". Tier"));
    let json = behind("\"grader_version\": \"").and_then(|rest| rest.split_once('"'));
    text.or(json).unwrap().0
}

fn without_grader(grade: &str) -> String {
    grade.replacen(grader(grade), "", 1)
}

/// What there is to do.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    /// The grades are the committed ones.
    Nothing,
    /// They are not, and the version allows it.
    Write,
    /// They are not, and the version does not allow it: why.
    Refuse(String),
}

fn step(committed: &Grades, given: &Grades, version: &str) -> Step {
    let old = |name: &String| committed.get(name);
    let changed: Vec<_> = given
        .iter()
        .filter(|(name, grade)| old(name).is_some_and(|old| without_grader(old) != without_grader(grade)))
        .map(|(name, _)| name.as_str())
        .collect();
    let moved = committed.values().any(|grade| grader(grade) != version);
    match (moved, changed.is_empty()) {
        (false, false) => Step::Refuse(format!("{} changed: move GRADER_VERSION from {version}", changed.join(", "))),
        (true, true) => {
            Step::Refuse(format!("no byte of a grade changed: leave GRADER_VERSION as it was, not {version}"))
        }
        (true, false) => Step::Write,
        (false, true) if committed.keys().eq(given.keys()) => Step::Nothing,
        (false, true) => Step::Write,
    }
}

#[test]
fn the_grades_are_the_committed_ones() {
    let (committed, given) = (committed(), given());
    let write = std::env::var("HEADWATER_GOLDEN").is_ok_and(|v| v == "write");
    match step(&committed, &given, GRADER_VERSION) {
        Step::Nothing => {}
        Step::Refuse(why) => panic!("{why}"),
        Step::Write if write => {
            committed.keys().for_each(|name| fs::remove_file(golden().join(name)).unwrap());
            given.iter().for_each(|(name, grade)| fs::write(golden().join(name), grade).unwrap());
        }
        Step::Write => panic!("grades are new or gone; HEADWATER_GOLDEN=write writes them"),
    }
}

#[test]
fn the_set_is_of_transcripts_that_meet_every_witness_every_miss_and_every_refusal() {
    assert!(files(&[".md"]).len() >= 12);
    let mut met = BTreeSet::new();
    for grade in given().iter().filter(|(name, _)| name.ends_with(".json")).map(|(_, grade)| grade) {
        let grade: serde_json::Value = serde_json::from_str(grade).unwrap();
        for verdict in grade["verdicts"].as_array().unwrap() {
            let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
            let [witness, miss, reason] =
                [&verdict["witness"]["kind"], &verdict["miss"]["kind"], &verdict["reason"]["id"]].map(text);
            met.insert(format!("{}: {witness}{miss}{reason}", text(&verdict["verdict"])));
        }
    }
    let all = [
        "not_satisfied: all_reported",
        "not_satisfied: call",
        "not_satisfied: no_answer",
        "not_satisfied: no_call",
        "not_satisfied: no_citation",
        "not_satisfied: not_expected",
        "not_satisfied: nothing_produced",
        "not_satisfied: outside_the_set",
        "refused: answer_not_looked_at",
        "refused: calls_not_watched",
        "refused: no_call_at_all",
        "refused: no_closed_set",
        "refused: no_form",
        "refused: no_identifier",
        "refused: no_oracle",
        "refused: no_target",
        "refused: not_checked",
        "refused: not_run",
        "refused: produced_not_looked_at",
        "satisfied: answer",
        "satisfied: call",
        "satisfied: cites",
        "satisfied: free",
        "satisfied: no_call",
    ];
    assert_eq!(met.iter().map(String::as_str).collect::<Vec<_>>(), all);
}

#[test]
fn a_change_needs_a_move_of_the_version_and_a_move_needs_a_change() {
    let text = |version: &str, body: &str| format!("# Grade of a.md\n\nGrader {version}. Tier x, arm y\n{body}");
    let json = |version: &str, body: &str| format!("{{\n  \"grader_version\": \"{version}\",\n  {body}}}\n");
    let set = |version: &str, body: &str| {
        Grades::from([("a.txt".to_owned(), text(version, body)), ("a.json".to_owned(), json(version, body))])
    };
    let old = set("0.1.0", "50.0%");
    let refused =
        |step: Step, part: &str| assert!(matches!(&step, Step::Refuse(why) if why.contains(part)), "{step:?}");
    assert_eq!(step(&old, &old, "0.1.0"), Step::Nothing);
    refused(step(&old, &set("0.1.0", "51.0%"), "0.1.0"), "a.json, a.txt changed: move");
    refused(step(&old, &set("0.2.0", "50.0%"), "0.2.0"), "no byte of a grade changed");
    assert_eq!(step(&old, &set("0.2.0", "51.0%"), "0.2.0"), Step::Write);
    let mut more = old.clone();
    more.insert("b.txt".into(), text("0.1.0", ""));
    assert_eq!(step(&old, &more, "0.1.0"), Step::Write);
    assert_eq!(step(&more, &old, "0.1.0"), Step::Write);
    assert_eq!(step(&Grades::new(), &old, "0.1.0"), Step::Write);
}
