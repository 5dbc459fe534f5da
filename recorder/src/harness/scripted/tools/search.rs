//! Glob and Grep.

use std::fs;
use std::path::{Path, PathBuf};

use regex::{Regex, RegexBuilder};
use serde_json::{Value, json};

use super::{Bench, Fault, Outcome, Performed, files, required};

/// How many files a search goes through at most.
const MOST_FILES: usize = 100_000;

pub(super) fn glob(bench: &mut Bench, input: &Value) -> Performed {
    let pattern = matcher(required("Glob", input, "pattern")?)?;
    let base = bench.path(input["path"].as_str().unwrap_or_default());
    let found: Vec<String> = files_below(&base)
        .iter()
        .filter(|path| path.strip_prefix(&base).is_ok_and(|rest| pattern.is_match(&rest.to_string_lossy())))
        .map(|path| bench.shown(path))
        .collect();
    let content = if found.is_empty() { "No files found".into() } else { found.join("\n") };
    let result = json!({
        "filenames": found, "durationMs": 0, "numFiles": found.len(), "truncated": false,
        "totalMatches": found.len(), "countIsComplete": true,
    });
    Ok(Outcome::text(content, result))
}

pub(super) fn grep(bench: &mut Bench, input: &Value) -> Performed {
    let pattern = RegexBuilder::new(required("Grep", input, "pattern")?)
        .case_insensitive(input["-i"].as_bool().unwrap_or(false))
        .build()
        .map_err(|error| Fault::Failed(format!("regex parse error: {error}")))?;
    let names = input["glob"].as_str().map(matcher).transpose()?;
    let base = bench.path(input["path"].as_str().unwrap_or_default());
    if !base.exists() {
        return Err(Fault::Invalid(format!("Path does not exist: {}", base.display())));
    }
    let candidates = if base.is_file() { vec![base] } else { files_below(&base) };
    let mut matches: Vec<(String, Vec<(usize, String)>)> = Vec::new();
    for path in candidates {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if names.as_ref().is_some_and(|names| !names.is_match(&name)) {
            continue;
        }
        let Ok(text) = files::text_of(&path, &bench.workspace) else { continue };
        let lines: Vec<(usize, String)> = (1..)
            .zip(text.lines())
            .filter(|(_, line)| pattern.is_match(line))
            .map(|(number, line)| (number, line.to_owned()))
            .collect();
        if !lines.is_empty() {
            matches.push((bench.shown(&path), lines));
        }
    }
    Ok(report(input["output_mode"].as_str().unwrap_or("files_with_matches"), &matches))
}

fn report(mode: &str, matches: &[(String, Vec<(usize, String)>)]) -> Outcome {
    let files = matches.len();
    let all: usize = matches.iter().map(|(_, lines)| lines.len()).sum();
    match mode {
        "content" => {
            let lines: Vec<String> = matches
                .iter()
                .flat_map(|(path, lines)| lines.iter().map(move |(number, line)| format!("{path}:{number}:{line}")))
                .collect();
            let content = if lines.is_empty() { "No matches found".into() } else { lines.join("\n") };
            let result = json!({
                "mode": "content", "numFiles": 0, "filenames": [], "content": content, "numLines": all,
                "totalLines": all,
            });
            Outcome::text(content, result)
        }
        "count" => {
            let counts: Vec<String> = matches.iter().map(|(path, lines)| format!("{path}:{}", lines.len())).collect();
            let content = counts.join("\n");
            let told = format!("{content}\n\nFound {all} total occurrences across {files} files.");
            let result = json!({
                "mode": "count", "numFiles": files, "filenames": [], "content": content, "numMatches": all,
            });
            Outcome::text(told, result)
        }
        _ => {
            let paths: Vec<&str> = matches.iter().map(|(path, _)| path.as_str()).collect();
            let told = match files {
                0 => "No files found".into(),
                1 => format!("Found 1 file\n{}", paths.join("\n")),
                _ => format!("Found {files} files\n{}", paths.join("\n")),
            };
            let result = json!({
                "mode": "files_with_matches", "filenames": paths, "numFiles": files, "totalFiles": files,
            });
            Outcome::text(told, result)
        }
    }
}

/// Every regular file below a directory but those of `.git`, in byte order of the path. Links are not followed.
fn files_below(base: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut waiting = vec![base.to_path_buf()];
    while let Some(directory) = waiting.pop() {
        let Ok(entries) = fs::read_dir(&directory) else { continue };
        for entry in entries.filter_map(Result::ok) {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && entry.file_name() != ".git" => waiting.push(entry.path()),
                Ok(kind) if kind.is_file() => found.push(entry.path()),
                _ => {}
            }
        }
        if found.len() > MOST_FILES {
            break;
        }
    }
    found.sort();
    found
}

/// A glob as a regular expression: `*` and `?` stop at `/`, `**` does not, `{a,b}` is a choice.
fn matcher(glob: &str) -> Result<Regex, Fault> {
    let mut pattern = String::from("^");
    let mut rest = glob;
    let mut in_choice = false;
    while let Some(next) = rest.chars().next() {
        let (taken, part) = match next {
            '*' if rest.starts_with("**/") => (3, "(?:.*/)?".into()),
            '*' if rest.starts_with("**") => (2, ".*".into()),
            '*' => (1, "[^/]*".into()),
            '?' => (1, "[^/]".into()),
            '{' if !in_choice => (1, "(?:".into()),
            '}' if in_choice => (1, ")".into()),
            ',' if in_choice => (1, "|".into()),
            other => (other.len_utf8(), regex::escape(other.encode_utf8(&mut [0; 4]))),
        };
        in_choice = if in_choice { next != '}' } else { next == '{' };
        pattern.push_str(&part);
        rest = &rest[taken..];
    }
    pattern.push('$');
    Regex::new(&pattern).map_err(|_| Fault::Failed(format!("`{glob}` is no glob")))
}

#[cfg(test)]
mod tests {
    use super::super::tests::bench;
    use super::*;

    const FILES: &[(&str, &str)] = &[
        ("docs/a.md", "# Alpha\nThe pump runs at 40 Hz.\n"),
        ("docs/b.md", "# Beta\n"),
        ("README.md", "see docs/\n"),
        ("src/m.py", "return 40\n"),
        (".git/x.md", "pump"),
    ];

    #[test]
    fn glob_finds_what_the_pattern_names() {
        let (_directory, mut bench) = bench(FILES);
        let mut found = |pattern: &str| bench.perform("Glob", &json!({"pattern": pattern})).content;
        assert_eq!(found("**/*.md"), "README.md\ndocs/a.md\ndocs/b.md");
        assert_eq!(found("*.{md,py}"), "README.md");
        assert_eq!(found("docs/?.md"), "docs/a.md\ndocs/b.md");
        assert_eq!(found("*.txt"), "No files found");
    }

    #[test]
    fn grep_reports_in_its_three_modes() {
        let (_directory, mut bench) = bench(FILES);
        let mut found = |input: Value| bench.perform("Grep", &input).content;
        assert_eq!(found(json!({"pattern": "pump"})), "Found 1 file\ndocs/a.md");
        assert_eq!(
            found(json!({"pattern": "PUMP", "-i": true, "path": "docs", "output_mode": "content"})),
            "docs/a.md:2:The pump runs at 40 Hz."
        );
        assert_eq!(
            found(json!({"pattern": "40", "output_mode": "count"})),
            "docs/a.md:1\nsrc/m.py:1\n\nFound 2 total occurrences across 2 files."
        );
        assert_eq!(found(json!({"pattern": "40", "glob": "*.py"})), "Found 1 file\nsrc/m.py");
        assert_eq!(found(json!({"pattern": "zzz"})), "No files found");
        assert!(found(json!({"pattern": "("})).as_str().unwrap().contains("regex parse error"));
    }
}
