//! The plan over a large corpus.

use crate::measure::{in_turns, ms, ours_over};
use anyhow::Result;
use headwater_tests::user::User;
use headwater_tests::{bins, corpus};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// Documents of the generated corpus.
const DOCUMENTS: usize = 10_000;

/// The plan over a generated corpus, against sha256sum of the same files.
pub fn plan(user: &User) -> Result<()> {
    let root = corpus::corpus(user, "large")?;
    let notes = root.join("docs/notes/generated");
    fs::create_dir(&notes)?;
    for n in 0..DOCUMENTS {
        fs::write(notes.join(format!("generated-note-{n}.md")), note(n))?;
    }
    user.give(&notes)?;
    let engine = bins::bin(user, "headwater")?;
    let list = user.file("list", files(&root.join("docs"))?.join("\0"))?;
    let mut plan = || {
        let mut command = user.command(&engine);
        command.args(["probe", "plan", "--tier", "regression", "--root"]).arg(&root);
        command
    };
    let mut sums = || {
        let mut command = user.command("xargs");
        command.arg("-0").arg("-a").arg(&list).arg("sha256sum");
        command
    };
    let [ours, theirs] = in_turns(10, [&mut plan, &mut sums])?;
    println!(
        "plan over {DOCUMENTS} documents   {:>8.1} ms   sha256sum     {:>8.1} ms   {:.2} of sha256sum's time (aim: at most 2)",
        ms(ours),
        ms(theirs),
        ours_over(ours, theirs)
    );
    Ok(())
}

/// A note of about two kilobytes.
fn note(n: usize) -> String {
    let mut text = format!(
        "---\nid: WM-NT-{:04}\nkind: note\nstatus: current\nstatus_date: 2026-01-01\ntitle: Generated note {n}\nsummary: A note that was generated for a measurement.\n---\n\n# Generated note {n}\n",
        5000 + n
    );
    for paragraph in 0..16 {
        let _ = write!(
            text,
            "\nParagraph {paragraph} of note {n} says what the one before it said, in other words and at the same length as it.\n"
        );
    }
    text
}

fn files(directory: &Path) -> Result<Vec<String>> {
    let mut out = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            out.extend(files(&path)?);
        } else if path.extension().is_some_and(|e| e == "md") {
            out.push(path.to_string_lossy().into_owned());
        }
    }
    out.sort();
    Ok(out)
}
