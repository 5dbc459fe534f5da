//! A confinement in words: what `record --explain` prints of a session that it does not start.

use crate::confine::bwrap::Plan;
use crate::confine::launcher::LAUNCH;
use crate::confine::seccomp;
use crate::confine::view::LAUNCHER;
use crate::harness::drive::Limits;
use crate::status::{Failure, Outcome};
use serde::Serialize;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt;

/// How a session would be confined and started.
#[derive(Debug, Serialize)]
pub struct Explanation {
    /// `host` or `closure`.
    pub view: String,
    /// bwrap.
    pub bwrap: Bwrap,
    /// Landlock.
    pub landlock: Landlock,
    /// The filter of system calls.
    pub seccomp: Seccomp,
    /// The whole environment of the harness.
    pub environment: BTreeMap<String, String>,
    /// The harness and its arguments, as paths inside.
    pub harness: Vec<String>,
    /// What ends a session, by name, in the unit of the name.
    pub limits: BTreeMap<&'static str, u64>,
}

/// bwrap as it is started: its options go to it in memory, by `--args`, and mean the same.
#[derive(Debug, Serialize)]
pub struct Bwrap {
    /// The program.
    pub program: String,
    /// What it calls itself.
    pub version: String,
    /// Its options, each with its values.
    pub options: Vec<Vec<String>>,
    /// What it starts.
    pub command: Vec<String>,
    /// The files in memory that the options name by a descriptor: the number, and the file inside.
    pub descriptors: BTreeMap<RawFd, String>,
}

/// The rules of Landlock.
#[derive(Debug, Serialize)]
pub struct Landlock {
    /// The ABI of this kernel.
    pub abi: i32,
    /// What it leaves to the other parts of the confinement.
    pub left_out: Vec<&'static str>,
    /// The rules of the file system.
    pub rules: Vec<LandlockRule>,
}

/// One path inside, and what may be done with it and below it.
#[derive(Debug, Serialize)]
pub struct LandlockRule {
    /// The path.
    pub path: String,
    /// The rights by the kernel's names, as the crate `landlock` writes them. A file gets those that files have.
    pub rights: Vec<String>,
}

/// The filter of system calls.
#[derive(Debug, Serialize)]
pub struct Seccomp {
    /// The digest of the filter as the kernel gets it.
    pub digest: String,
    /// Its rules; what none names is let through.
    pub rules: Vec<SeccompRule>,
}

/// One rule of the filter.
#[derive(Debug, Serialize)]
pub struct SeccompRule {
    /// The calls.
    pub calls: Vec<&'static str>,
    /// Which uses of them are refused.
    pub when: String,
    /// What they are answered with.
    pub answer: &'static str,
    /// Why.
    pub why: &'static str,
}

impl Explanation {
    /// How `plan` confines its session on this kernel.
    ///
    /// # Errors
    /// [`Status::Unconfined`](crate::status::Status::Unconfined) where the kernel has no Landlock.
    pub fn of(plan: &Plan, limits: &Limits) -> Outcome<Self> {
        let restrictions = plan.restrictions()?;
        let enforced = restrictions.rules.enforced();
        let in_memory: Vec<_> = plan.in_memory().map(|(path, ..)| path.display().to_string()).collect();
        let numbers: Vec<RawFd> = (10..).take(in_memory.len()).collect();
        let rules = restrictions
            .rules
            .files
            .iter()
            .map(|rule| LandlockRule { path: rule.path().display().to_string(), rights: rule.may.names(enforced.abi) });
        let filter = seccomp::rules(enforced.abi).map(|rule| SeccompRule {
            calls: rule.calls.iter().map(|(name, _)| *name).collect(),
            when: rule.uses(),
            answer: rule.answer.name(),
            why: rule.why,
        });
        Ok(Self {
            view: plan.view.kind().to_string(),
            bwrap: Bwrap {
                program: plan.bwrap.path.display().to_string(),
                version: plan.bwrap.version.clone(),
                options: plan.option_lines(&numbers).iter().map(|line| texts(line)).collect(),
                command: [LAUNCHER, LAUNCH].map(str::to_owned).to_vec(),
                descriptors: numbers.into_iter().zip(in_memory).collect(),
            },
            landlock: Landlock { abi: enforced.abi, left_out: enforced.left_out, rules: rules.collect() },
            seccomp: Seccomp { digest: restrictions.filter.digest().to_string(), rules: filter.collect() },
            environment: plan.environment.iter().map(|(name, value)| (text(name), text(value))).collect(),
            harness: texts(&plan.command),
            limits: BTreeMap::from([
                ("wall_seconds", limits.wall.as_secs()),
                ("idle_seconds", limits.idle.as_secs()),
                ("stream_bytes", limits.raw_bytes),
                ("linger_seconds", limits.linger.as_secs()),
            ]),
        })
    }

    /// The same for a tool.
    ///
    /// # Errors
    /// None that is known: every member is text or a number.
    pub fn json(&self) -> Outcome<String> {
        serde_json::to_string_pretty(self).map(|text| text + "\n").map_err(|e| Failure::io("the explanation", e))
    }

    /// The same for a person: lines of a shell where they can be.
    #[must_use]
    pub fn text(&self) -> String {
        let mut out = format!("# bwrap: {}, the {} view\n", self.bwrap.version, self.view);
        for (number, path) in &self.bwrap.descriptors {
            out.push_str(&format!("# descriptor {number}: {path}, in memory\n"));
        }
        out.push_str(&format!("{} \\\n", quoted(&self.bwrap.program)));
        for option in &self.bwrap.options {
            out.push_str(&format!("  {} \\\n", words(option)));
        }
        out.push_str(&format!("  -- {} ORDERS\n", words(&self.bwrap.command)));

        let Landlock { abi, left_out, rules } = &self.landlock;
        out.push_str(&format!("\n# Landlock: ABI {abi}\n"));
        if !left_out.is_empty() {
            out.push_str(&format!("# not held by it: {}\n", left_out.join("; ")));
        }
        out.push_str("# of a line, a file has the rights that files can have\n");
        for rule in rules {
            out.push_str(&format!("{}: {}\n", quoted(&rule.path), rule.rights.join(" ")));
        }

        out.push_str(&format!("\n# seccomp: {}\n", self.seccomp.digest));
        out.push_str("# what no line names is let through\n");
        for rule in &self.seccomp.rules {
            out.push_str(&format!("{} ({}): {}: {}\n", rule.calls.join(" "), rule.when, rule.answer, rule.why));
        }

        out.push_str("\n# environment\n");
        for (name, value) in &self.environment {
            out.push_str(&format!("{name}={}\n", quoted(value)));
        }
        out.push_str(&format!("\n# harness\n{}\n\n# limits\n", words(&self.harness)));
        for (name, value) in &self.limits {
            out.push_str(&format!("{name}={value}\n"));
        }
        out
    }
}

fn text(word: &OsStr) -> String {
    word.to_string_lossy().into_owned()
}

fn texts(words: &[OsString]) -> Vec<String> {
    words.iter().map(|word| text(word)).collect()
}

fn words(words: &[String]) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

/// A word as a shell reads it, on one line. Control characters are written as bash, zsh and ksh read them.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:,=+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    if !word.chars().any(char::is_control) {
        return format!("'{}'", word.replace('\'', "'\\''"));
    }
    let bytes = OsStr::new(word).as_bytes().iter().map(|byte| match byte {
        b'\'' | b'\\' => format!("\\{}", char::from(*byte)),
        0x20..=0x7e => char::from(*byte).to_string(),
        byte => format!("\\x{byte:02x}"),
    });
    format!("$'{}'", bytes.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::confine::bwrap::MemoryFile;
    use crate::confine::landlock::{NEWEST, Use};
    use crate::confine::testing::Place;
    use crate::confine::view::CONFIGURATION;
    use std::path::Path;
    use std::process::Command;

    fn explained(place: &Place) -> Explanation {
        let mut plan = place.plan();
        let path = Path::new(CONFIGURATION).join("file");
        plan.files.push(MemoryFile { path, mode: 0o600, bytes: b"secret".to_vec() });
        Explanation::of(&plan, &Limits::default()).unwrap()
    }

    #[test]
    fn the_options_are_those_of_the_session_and_nothing_of_a_file_is_told() {
        let place = Place::new("");
        let explanation = explained(&place);
        let options: Vec<_> = explanation.bwrap.options.concat().into_iter().map(OsString::from).collect();
        let mut plan = place.plan();
        plan.files.push(MemoryFile { path: Path::new(CONFIGURATION).join("file"), mode: 0o600, bytes: vec![] });
        assert_eq!(options, plan.options(&[10, 11]));
        assert_eq!(explanation.bwrap.descriptors[&11], "/opt/headwater/config/file");
        for text in [explanation.text(), explanation.json().unwrap()] {
            assert!(!text.contains("secret") && text.contains(&explanation.seccomp.digest), "{text}");
        }
    }

    #[test]
    fn every_rule_is_there_with_what_it_does() {
        let place = Place::new("");
        let (explanation, plan) = (explained(&place), place.plan());
        let restrictions = plan.restrictions().unwrap();
        assert_eq!(explanation.landlock.rules.len(), restrictions.rules.files.len());
        let rights = |path: &str| &explanation.landlock.rules.iter().find(|rule| rule.path == path).unwrap().rights;
        assert_eq!(rights("/"), &["ReadDir"]);
        assert!(rights("/usr").contains(&"Execute".to_owned()) && !rights("/usr").contains(&"WriteFile".to_owned()));
        assert_eq!(explanation.seccomp.rules.len(), seccomp::rules(explanation.landlock.abi).count());
        assert_eq!(explanation.seccomp.digest, restrictions.filter.digest().to_string());
    }

    /// The rows of the table behind a heading of `docs/confinement.md`.
    fn documented(heading: &str) -> Vec<String> {
        let page = include_str!("../../../docs/confinement.md");
        let section = page.split(&format!("\n## {heading}\n")).nth(1).unwrap();
        let table = section.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
        table.skip(2).map(str::to_owned).collect()
    }

    // The page is that of the architecture with the longer list.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn every_rule_of_the_filter_is_documented_and_no_other() {
        let row = |rule: &seccomp::Rule| {
            let calls: Vec<_> = rule.calls.iter().map(|(name, _)| format!("`{name}`")).collect();
            let (uses, answer) = (rule.uses(), rule.answer.name());
            format!("| {} | {uses} | `{answer}` | {} | {} |", calls.join(" "), rule.kernels(), rule.why)
        };
        assert_eq!(documented("System calls"), seccomp::RULES.iter().map(row).collect::<Vec<_>>());
    }

    #[test]
    fn the_rights_of_every_kind_of_item_are_documented_and_no_other() {
        let code = Use::ALL.map(|may| {
            let rights: Vec<_> = may.names(NEWEST).into_iter().map(|name| format!("`{name}`")).collect();
            format!("| {may} | {} |", rights.join(" "))
        });
        assert_eq!(documented("Landlock"), code);
    }

    #[test]
    fn a_shell_reads_each_word_as_it_was() {
        for word in ["", "plain/-x", "two words", "it's", "$HOME `x` \"y\" \\ *", "a\nb\t'c'\\", "\u{1b}[1mä"] {
            let read = Command::new("bash").args(["-c", &format!("printf %s {}", quoted(word))]).output().unwrap();
            assert_eq!(String::from_utf8(read.stdout).unwrap(), word);
            assert_eq!(quoted(word).lines().count().max(1), 1);
        }
    }
}
