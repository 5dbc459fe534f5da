//! The session log to an event of the contract.
//!
//! Paths are compared by their text alone and never looked up on a disk: what a session named is decided by what it
//! wrote, and a link that it made cannot move a path into the workspace or out of it.

use super::log::{Call, Returned, SessionLog};
use headwater_contract::digest::Digest;
use headwater_contract::transcript::{self, Answer, Event, Produced};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The trees a session met.
pub struct Trees<'a> {
    /// The workspace, as the session saw it.
    pub workspace: &'a Path,
    /// The content digest of the document at a path relative to the workspace, as the session met it: from the tree
    /// it started from, else from the workspace. None for a directory, for what is no regular file, and for nothing.
    pub digest: &'a dyn Fn(&str) -> Option<Digest>,
}

/// The event of one session.
///
/// The argument of a call is what the log holds: the path for a tool that takes one, else the JSON of the input. The
/// result of a call is the content digest of the document at its structured path. It is empty, which says that the
/// call witnesses no document, where
///
/// - the input carries no structured path, as for `Bash`: a command names documents and states none it returned;
/// - the path is outside the workspace, or `trees` has no digest for it (a directory, a file that is not there);
/// - the call failed, was denied, or has no result: it returned no document.
///
/// `calls` is always there, because whoever has the stream of the session has watched it.
#[must_use]
pub fn event(
    log: &SessionLog,
    probe: &str,
    session: &str,
    trees: &Trees<'_>,
    produced: Option<Vec<Produced>>,
    answer: Answer,
) -> Event {
    let call = |call: &Call| transcript::Call {
        tool: call.tool.clone(),
        argument: call.argument.clone(),
        result: result(call, trees).map(|digest| digest.to_string()).unwrap_or_default(),
    };
    Event {
        probe: probe.into(),
        session: session.into(),
        calls: Some(log.calls.iter().map(call).collect()),
        produced,
        answer,
    }
}

fn result(call: &Call, trees: &Trees<'_>) -> Option<Digest> {
    if call.failed() || call.returned == Returned::Nothing {
        return None;
    }
    let path = relative(trees.workspace, call.path()?)?;
    if path.is_empty() { None } else { (trees.digest)(&path) }
}

/// The paths that the session's own write calls name, in the order of the first call, each once: relative to the
/// workspace where they are inside it, else absolute. A call that failed or was denied wrote nothing and names none; a
/// call whose result never came may have written and names its path.
#[must_use]
pub fn written_paths(log: &SessionLog, workspace: &Path) -> Vec<String> {
    let mut paths = Vec::new();
    let mut seen = BTreeSet::new();
    for call in &log.calls {
        let writes = matches!(call.tool.as_str(), "Edit" | "Write" | "MultiEdit" | "NotebookEdit");
        let Some(path) = call.path().filter(|_| writes && !call.failed()) else { continue };
        let path = relative(workspace, path).unwrap_or_else(|| absolute(workspace, path));
        if !path.is_empty() && seen.insert(path.clone()) {
            paths.push(path);
        }
    }
    paths
}

/// The paths outside the workspace that the session named, less those below a path that the view binds.
///
/// Named are the structured paths of every call, and each absolute path among the words of a `Bash` command. The
/// words are made by a counter's rule and not by the grader's: quotes and backslashes are taken off, and blanks,
/// operators and `=` divide, in quotes too. So a command inside a command counts, and so does a pattern that begins
/// with `/`; what a variable or a relative path comes to does not. The number is stated in the transcript; the paths
/// are the session's words and are not.
#[must_use]
pub fn outside_paths(log: &SessionLog, workspace: &Path, bound: &[PathBuf]) -> BTreeSet<String> {
    let mut outside = BTreeSet::new();
    for call in &log.calls {
        let command = call.command().unwrap_or_default();
        for path in call.paths().map(str::to_owned).chain(absolute_words(&command)) {
            let path = absolute(workspace, &path);
            let is_bound = || bound.iter().any(|bound| Path::new(&path).starts_with(bound));
            if relative(workspace, &path).is_none() && !is_bound() {
                outside.insert(path);
            }
        }
    }
    outside
}

/// The absolute paths of a command, by the rule of [`outside_paths`].
fn absolute_words(command: &str) -> Vec<String> {
    let bare: String = command.chars().filter(|c| !"'\"\\".contains(*c)).collect();
    let words = bare.split(|c: char| c.is_whitespace() || "|&;<>()`=".contains(c));
    // Two slashes and a slash with a star begin a comment of a program, in the text of a here-document.
    let paths = words.filter(|word| word.starts_with('/') && !word.starts_with("//") && !word.starts_with("/*"));
    paths.map(str::to_owned).collect()
}

/// `path` relative to `workspace`, with `.`, `..` and empty components resolved by their text; empty for the workspace
/// itself; none where it is outside. A relative path is one from the workspace. A path that begins with `~` is one of
/// the home directory, as the tools of the harness read it, and is outside.
#[must_use]
pub fn relative(workspace: &Path, path: &str) -> Option<String> {
    let (base, path) = (normal(&workspace.to_string_lossy()), absolute(workspace, path));
    let below = path.strip_prefix(&base)?;
    match below.strip_prefix('/') {
        Some(below) => Some(below.into()),
        None if below.is_empty() || base == "/" => Some(below.into()),
        None => None,
    }
}

/// `path` as an absolute path of text, or as it is where it begins at a home directory.
fn absolute(workspace: &Path, path: &str) -> String {
    if path == "~" || path.starts_with("~/") {
        return path.into();
    }
    if path.starts_with('/') {
        return normal(path);
    }
    normal(&format!("{}/{path}", workspace.to_string_lossy()))
}

/// An absolute path with `.`, `..` and empty components resolved by their text. `..` at the root is the root.
pub(super) fn normal(path: &str) -> String {
    let mut components = Vec::new();
    for component in path.split('/') {
        match component {
            "" | "." => {}
            ".." => {
                components.pop();
            }
            name => components.push(name),
        }
    }
    format!("/{}", components.join("/"))
}

#[cfg(test)]
mod tests {
    use super::super::stream;
    use super::*;
    use proptest::prelude::*;

    const WORKSPACE: &str = "/ws";

    fn log(calls: &[(&str, serde_json::Value, Option<bool>)]) -> SessionLog {
        let mut text = String::new();
        for (id, (tool, input, error)) in calls.iter().enumerate() {
            let id = id.to_string();
            let block = serde_json::json!({"type": "tool_use", "id": id, "name": tool, "input": input});
            text += &format!("{}\n", serde_json::json!({"type": "assistant", "message": {"content": [block]}}));
            if let Some(error) = error {
                let block = serde_json::json!({"type": "tool_result", "tool_use_id": id, "is_error": error});
                text += &format!("{}\n", serde_json::json!({"type": "user", "message": {"content": [block]}}));
            }
        }
        let read = stream::read(text.as_bytes()).unwrap();
        assert_eq!(read.could_hide_a_call(), None);
        read
    }

    fn harness_log(name: &str) -> SessionLog {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/harness-logs").join(name);
        stream::read(std::fs::read(path).unwrap().as_slice()).unwrap()
    }

    fn path(path: &str) -> serde_json::Value {
        serde_json::json!({"file_path": path})
    }

    fn results(log: &SessionLog) -> Vec<String> {
        let document = |path: &str| (path == "docs/a.md").then(|| Digest::of(b"a"));
        let trees = Trees { workspace: Path::new(WORKSPACE), digest: &document };
        let calls = event(log, "WM-PROBE-1", "s-1", &trees, None, Answer::NotObserved).calls.unwrap();
        calls.into_iter().map(|call| call.result).collect()
    }

    #[test]
    fn the_result_of_a_call_is_the_digest_of_the_document_at_its_path() {
        let digest = Digest::of(b"a").to_string();
        let read = log(&[
            ("Read", path("/ws/docs/a.md"), Some(false)),
            ("Read", path("docs/a.md"), Some(false)),
            ("Edit", path("/ws/x/../docs//./a.md"), Some(false)),
            ("Grep", serde_json::json!({"pattern": "x", "path": "docs/a.md"}), Some(false)),
        ]);
        assert_eq!(results(&read), vec![digest; 4]);
    }

    #[test]
    fn a_call_that_witnesses_no_document_has_an_empty_result() {
        let read = log(&[
            ("Read", path("/ws/docs/a.md"), Some(true)),
            ("Read", path("/ws/docs/a.md"), None),
            ("Read", path("/ws/docs"), Some(false)),
            ("Glob", serde_json::json!({"pattern": "x", "path": "/ws"}), Some(false)),
            ("Glob", serde_json::json!({"pattern": "docs/a.md"}), Some(false)),
            ("Read", path("/other/ws/docs/a.md"), Some(false)),
            ("Read", path("/wsx/docs/a.md"), Some(false)),
            ("Read", path("/ws/../docs/a.md"), Some(false)),
            ("Bash", serde_json::json!({"command": "cat docs/a.md"}), Some(false)),
            ("Skill", serde_json::json!({"path": "docs/a.md"}), Some(false)),
        ]);
        assert_eq!(results(&read), vec![String::new(); 10]);
    }

    #[test]
    fn a_session_that_was_watched_and_called_nothing_has_an_empty_list_of_calls() {
        let none = |_: &str| None;
        let trees = Trees { workspace: Path::new(WORKSPACE), digest: &none };
        let event = event(&harness_log("01_plain_answer.jsonl"), "P", "s", &trees, None, Answer::None);
        let expected =
            Event { probe: "P".into(), session: "s".into(), calls: Some(vec![]), produced: None, answer: Answer::None };
        assert_eq!(event, expected);
    }

    #[test]
    fn an_event_holds_the_calls_in_stream_order() {
        let read = harness_log("26_recommended_clean.jsonl");
        let none = |_: &str| None;
        let trees = Trees { workspace: Path::new(WORKSPACE), digest: &none };
        let calls = event(&read, "P", "s", &trees, None, Answer::None).calls.unwrap();
        let calls: Vec<_> = calls.iter().map(|call| (call.tool.as_str(), call.argument.as_str())).collect();
        assert_eq!(calls.iter().map(|(tool, _)| *tool).collect::<Vec<_>>(), ["Bash", "Grep", "Read"]);
        assert_eq!(calls[2].1, "/ws/docs/a.md");
    }

    #[test]
    fn every_write_call_names_its_path_once_and_a_failed_one_names_none() {
        let read = log(&[
            ("Write", path("/ws/b.md"), Some(false)),
            ("Edit", path("b.md"), Some(false)),
            ("MultiEdit", path("./a.md"), Some(false)),
            ("NotebookEdit", serde_json::json!({"notebook_path": "/ws/n.ipynb"}), None),
            ("Write", path("/ws/failed.md"), Some(true)),
            ("Write", path("/tmp/../tmp/x"), Some(false)),
            ("Read", path("/ws/read.md"), Some(false)),
            ("Bash", serde_json::json!({"command": "echo > /ws/c.md"}), Some(false)),
        ]);
        assert_eq!(written_paths(&read, Path::new(WORKSPACE)), ["b.md", "a.md", "n.ipynb", "/tmp/x"]);
        let read = harness_log("03_edits.jsonl");
        assert_eq!(
            written_paths(&read, Path::new(WORKSPACE)),
            ["docs/a.md", "src/m.py", "new/deep/file.txt", "README.md", "n.ipynb", "/tmp/outside.txt"]
        );
    }

    #[test]
    fn a_path_outside_the_workspace_is_counted_unless_the_view_binds_it() {
        let read = log(&[
            ("Read", path("/home/u/notes.md"), Some(true)),
            ("Read", path("/ws/../home/u/notes.md"), Some(false)),
            ("Read", path("~/notes.md"), Some(false)),
            ("Read", path("/ws/a.md"), Some(false)),
            ("Grep", serde_json::json!({"pattern": "x", "path": "/etc"}), Some(false)),
            ("mcp__s__t", serde_json::json!({"path": "/srv"}), Some(false)),
            (
                "Bash",
                serde_json::json!({"command": "cd /ws && cat /etc/passwd '/root/x' --f=/var/y >/ws/z; ls ../.."}),
                None,
            ),
            ("Bash", serde_json::json!({"command": "bash -c \"cat /opt/a /usr/b /etcx\" # //c /* d */"}), None),
            ("Bash", serde_json::json!({"command": "sed s/a/b/ x/y http://host/path $HOME/z \"$D\"/w"}), None),
        ]);
        let bound = [PathBuf::from("/etc"), PathBuf::from("/usr")];
        let outside: Vec<_> = outside_paths(&read, Path::new(WORKSPACE), &bound).into_iter().collect();
        assert_eq!(outside, ["/etcx", "/home/u/notes.md", "/opt/a", "/root/x", "/srv", "/var/y", "~/notes.md"]);
    }

    #[test]
    fn a_path_is_inside_by_its_text_alone() {
        let inside = |path: &str| relative(Path::new("/ws"), path);
        for (path, expected) in [
            ("/ws/a", Some("a")),
            ("a//b/./c", Some("a/b/c")),
            ("/ws/", Some("")),
            ("", Some("")),
            (".", Some("")),
            ("a/..", Some("")),
            ("../ws/a", Some("a")),
            ("/../ws/a", Some("a")),
            ("..", None),
            ("/wsx", None),
            ("/", None),
            ("~", None),
            ("~/a", None),
            ("~a", Some("~a")),
            ("/ws/\u{fffd}\n", Some("\u{fffd}\n")),
        ] {
            assert_eq!(inside(path).as_deref(), expected, "{path}");
        }
        assert_eq!(relative(Path::new("/"), "/a/b").unwrap(), "a/b");
        assert_eq!(relative(Path::new("/ws/./x/../"), "/ws/a").unwrap(), "a");
    }

    proptest! {
        #[test]
        fn a_relative_path_never_leaves_the_workspace(path in "[a./~]{0,20}") {
            if let Some(relative) = relative(Path::new(WORKSPACE), &path) {
                prop_assert!(relative.is_empty() || relative.split('/').all(|c| !matches!(c, "" | "." | "..")));
                prop_assert_eq!(super::relative(Path::new(WORKSPACE), &format!("/ws/{relative}")), Some(relative));
            }
        }

        #[test]
        fn what_is_counted_is_absolute_and_outside_whatever_the_command(command in "[ws/.~'\"\\\\=;é ]{0,40}") {
            let read = log(&[("Bash", serde_json::json!({"command": command}), None)]);
            for path in outside_paths(&read, Path::new(WORKSPACE), &[]) {
                prop_assert!(path.starts_with('/') && path != "/ws" && !path.starts_with("/ws/"), "{}", path);
            }
        }
    }
}
