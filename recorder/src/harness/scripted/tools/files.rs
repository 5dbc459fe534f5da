//! Read, Write and Edit.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use serde_json::{Value, json};

use super::{Bench, Fault, Outcome, Performed, failed, required};

/// The longest file that is read, in bytes.
const LONGEST: u64 = 64 << 20;

pub(super) fn read(bench: &mut Bench, input: &Value) -> Performed {
    let name = required("Read", input, "file_path")?;
    let path = bench.path(name);
    let text = text_of(&path, &bench.workspace)?;
    bench.learn(&path);
    let lines: Vec<&str> = text.split('\n').collect();
    let start = input["offset"].as_u64().unwrap_or(1).max(1);
    let skipped = usize::try_from(start - 1).unwrap_or(usize::MAX);
    let limit = input["limit"].as_u64().map_or(usize::MAX, |n| usize::try_from(n).unwrap_or(usize::MAX));
    let shown: Vec<&str> = lines.iter().skip(skipped).take(limit).copied().collect();
    let numbered: Vec<String> = shown.iter().zip(start..).map(|(line, number)| format!("{number}\t{line}")).collect();
    let file = json!({
        "filePath": name, "content": shown.join("\n"), "numLines": shown.len(), "startLine": start,
        "totalLines": lines.len(),
    });
    Ok(Outcome::text(numbered.join("\n"), json!({"type": "text", "file": file})))
}

/// The text of a regular file. A FIFO or a device is refused and never waited for.
pub(super) fn text_of(path: &Path, workspace: &Path) -> Result<String, Fault> {
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path);
    let file = opened.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Fault::Failed(format!(
            "File does not exist. Note: your current working directory is {}.",
            workspace.display()
        )),
        _ => failed(path, &error),
    })?;
    let kind = file.metadata().map_err(|error| failed(path, &error))?.file_type();
    if kind.is_dir() {
        let message = format!("EISDIR: illegal operation on a directory, read '{}'", path.display());
        return Err(Fault::Failed(message));
    }
    if !kind.is_file() {
        return Err(Fault::Failed(format!("'{}' is no regular file", path.display())));
    }
    let mut bytes = Vec::new();
    let length = file.take(LONGEST + 1).read_to_end(&mut bytes).map_err(|error| failed(path, &error))?;
    if length as u64 > LONGEST {
        return Err(Fault::Failed(format!("'{}' is longer than {LONGEST} bytes", path.display())));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

pub(super) fn write(bench: &mut Bench, input: &Value) -> Performed {
    let name = required("Write", input, "file_path")?;
    let content = required("Write", input, "content")?;
    let path = bench.path(name);
    bench.must_know(&path)?;
    let original = if path.exists() { Some(text_of(&path, &bench.workspace)?) } else { None };
    replace(&path, content)?;
    bench.learn(&path);
    let (kind, message) = match original {
        None => ("create", format!("File created successfully at: {name}")),
        Some(_) => ("update", format!("The file {name} has been updated successfully.")),
    };
    let result = json!({
        "type": kind, "filePath": name, "content": content, "structuredPatch": [], "originalFile": original,
        "userModified": false,
    });
    Ok(Outcome::text(message, result))
}

pub(super) fn edit(bench: &mut Bench, input: &Value) -> Performed {
    let name = required("Edit", input, "file_path")?;
    let old = required("Edit", input, "old_string")?;
    let new = required("Edit", input, "new_string")?;
    let replace_all = input["replace_all"].as_bool().unwrap_or(false);
    let path = bench.path(name);
    if old == new {
        return Err(Fault::Invalid("No changes to make: old_string and new_string are exactly the same.".into()));
    }
    bench.must_know(&path)?;
    let original = text_of(&path, &bench.workspace)?;
    let matches = if old.is_empty() { 0 } else { original.matches(old).count() };
    let edited = match (matches, replace_all) {
        (0, _) => return Err(Fault::Invalid(format!("String to replace not found in file.\nString: {old}"))),
        (1, _) => original.replacen(old, new, 1),
        (_, true) => original.replace(old, new),
        (_, false) => {
            let message =
                format!("Found {matches} matches of the string to replace, but replace_all is false.\nString: {old}");
            return Err(Fault::Invalid(message));
        }
    };
    replace(&path, &edited)?;
    bench.learn(&path);
    let message = match replace_all {
        true => format!("The file {name} has been updated. All occurrences were successfully replaced."),
        false => format!("The file {name} has been updated successfully."),
    };
    let result = json!({
        "filePath": name, "oldString": old, "newString": new, "originalFile": original, "structuredPatch": [],
        "userModified": false, "replaceAll": replace_all,
    });
    Ok(Outcome::text(message, result))
}

/// Puts a file in place of `path`, by way of a temporary name beside it as the real harness does.
pub(super) fn replace(path: &Path, content: &str) -> Result<(), Fault> {
    let target = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let write = || -> io::Result<()> {
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent)?;
        }
        let mut temporary = target.clone().into_os_string();
        temporary.push(format!(".tmp.{}", std::process::id()));
        let mut file = File::create(&temporary)?;
        file.write_all(content.as_bytes())?;
        if let Ok(before) = target.metadata() {
            file.set_permissions(before.permissions())?;
        }
        fs::rename(&temporary, &target).inspect_err(|_| {
            // The failure of the rename is what counts; a file that cannot be removed changes nothing about it.
            let _ = fs::remove_file(&temporary);
        })
    };
    write().map_err(|error| failed(path, &error))
}

#[cfg(test)]
mod tests {
    use super::super::tests::bench;
    use super::*;

    #[test]
    fn a_read_numbers_the_lines_as_the_harness_does() {
        let (_directory, mut bench) = bench(&[("a.md", "# Alpha\nThe pump.\n")]);
        let outcome = bench.perform("Read", &json!({"file_path": "a.md"}));
        assert_eq!(outcome.content, "1\t# Alpha\n2\tThe pump.\n3\t");
        assert_eq!(outcome.result["file"]["totalLines"], 3);
        let part = bench.perform("Read", &json!({"file_path": "a.md", "offset": 2, "limit": 1}));
        assert_eq!(part.content, "2\tThe pump.");
        assert_eq!(
            part.result["file"],
            json!({"filePath": "a.md", "content": "The pump.", "numLines": 1,
            "startLine": 2, "totalLines": 3})
        );
    }

    #[test]
    fn a_read_of_no_file_is_an_error_result() {
        let (directory, mut bench) = bench(&[("docs/a.md", "a")]);
        nix::unistd::mkfifo(&directory.path().join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        for (path, why) in [("missing", "does not exist"), ("docs", "EISDIR"), ("pipe", "no regular file")] {
            let outcome = bench.perform("Read", &json!({"file_path": path}));
            assert_eq!(outcome.is_error, Some(true));
            assert!(outcome.content.as_str().unwrap().contains(why), "{path}: {}", outcome.content);
        }
    }

    #[test]
    fn a_file_is_written_over_only_after_it_was_read() {
        let (directory, mut bench) = bench(&[("a.md", "one two one")]);
        let write = json!({"file_path": "a.md", "content": "x"});
        assert!(bench.perform("Write", &write).content.as_str().unwrap().contains("has not been read"));
        assert!(
            bench
                .for_agent()
                .perform(
                    "Edit",
                    &json!({"file_path": "a.md", "old_string": "two",
            "new_string": "2"})
                )
                .content
                .as_str()
                .unwrap()
                .contains("has not been read")
        );
        bench.perform("Read", &json!({"file_path": "a.md"}));
        let mut edit = json!({"file_path": "a.md", "old_string": "one", "new_string": "1"});
        assert!(bench.perform("Edit", &edit).content.as_str().unwrap().contains("Found 2 matches"));
        edit["replace_all"] = true.into();
        assert_eq!(bench.perform("Edit", &edit).is_error, None);
        assert_eq!(fs::read_to_string(directory.path().join("a.md")).unwrap(), "1 two 1");
        assert!(bench.perform("Edit", &edit).content.as_str().unwrap().contains("not found"));
        assert_eq!(bench.perform("Write", &write).result["type"], "update");
        assert_eq!(bench.perform("Write", &json!({"file_path": "new/b.md", "content": ""})).result["type"], "create");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2, "no temporary file stays");
    }

    #[test]
    fn a_write_through_a_link_changes_what_the_link_names() {
        let (directory, mut bench) = bench(&[("a.md", "a")]);
        std::os::unix::fs::symlink("a.md", directory.path().join("link")).unwrap();
        bench.perform("Read", &json!({"file_path": "link"}));
        assert_eq!(bench.perform("Write", &json!({"file_path": "link", "content": "b"})).is_error, None);
        assert!(directory.path().join("link").is_symlink());
        assert_eq!(fs::read_to_string(directory.path().join("a.md")).unwrap(), "b");
    }
}
