//! The closed set of answers: the `yaml` block under `Expectation` of a probe that expects `answered`.

use super::one_line;
use headwater_contract::markdown::{self, Piece};
use headwater_contract::yaml::{self, Limits, Node};
use std::collections::BTreeSet;

const ANSWERS: &str = "answers";
const EXPECTED: &str = "expected";

/// Why a closed set is none.
pub(super) enum Defect {
    /// There is no set, and this is why.
    NoSet(String),
    /// There is this set, and why no proper part of it is expected.
    NotProper(Vec<String>, String),
}

/// The closed set and the expected part of it, both in the order of the document.
pub(super) fn read(section: Option<Piece<'_>>) -> Result<(Vec<String>, Vec<String>), Defect> {
    let block = block(section).map_err(Defect::NoSet)?;
    let answers = texts(&block, ANSWERS).map_err(Defect::NoSet)?;
    match texts(&block, EXPECTED).and_then(|expected| proper(&answers, expected)) {
        Ok(expected) => Ok((answers, expected)),
        Err(why) => Err(Defect::NotProper(answers, why)),
    }
}

fn proper(answers: &[String], expected: Vec<String>) -> Result<Vec<String>, String> {
    if is_proper(answers, &expected) {
        return Ok(expected);
    }
    Err(match expected.iter().find(|e| !answers.contains(e)) {
        Some(stray) => format!("`{}` is expected and is not among the `answers`", one_line(stray)),
        None => "every answer is expected, so that none could miss".to_owned(),
    })
}

fn block(section: Option<Piece<'_>>) -> Result<Node, String> {
    let section = section.ok_or("there is no section `## Expectation`")?;
    let fence = markdown::fenced(section, "yaml").ok_or("the section holds no fenced `yaml` block")?;
    let line = fence.content.line;
    if !fence.closed {
        return Err(format!("the `yaml` block that starts on line {line} is never closed"));
    }
    let block = yaml::read(fence.content, Limits::DOCUMENT).map_err(|e| e.to_string())?;
    let entries =
        block.mapping().ok_or_else(|| format!("line {line}: the block is {} and no mapping", block.what()))?;
    match entries.iter().find(|e| e.key != ANSWERS && e.key != EXPECTED) {
        Some(stray) => Err(format!("line {}: `{}` is no key of the block", stray.line, one_line(&stray.key))),
        None => Ok(block),
    }
}

/// The texts under a key of the block: at least one, none blank, each once.
fn texts(block: &Node, key: &str) -> Result<Vec<String>, String> {
    let node = block.get(key).ok_or_else(|| format!("line {}: there is no `{key}`", block.line))?;
    let items = node.sequence().ok_or_else(|| format!("line {}: `{key}` is {} and no list", node.line, node.what()))?;
    let (mut texts, mut seen) = (Vec::with_capacity(items.len()), BTreeSet::new());
    for item in items {
        let text = item.text().filter(|t| !t.trim().is_empty());
        let text = text.ok_or_else(|| format!("line {}: a member of `{key}` is no text", item.line))?;
        if !seen.insert(text) {
            return Err(format!("line {}: `{}` stands twice under `{key}`", item.line, one_line(text)));
        }
        texts.push(text.to_owned());
    }
    if texts.is_empty() { Err(format!("line {}: `{key}` is empty", node.line)) } else { Ok(texts) }
}

/// The line of the first declaration of answers in a `yaml` block of a section.
pub(super) fn line(section: Piece<'_>) -> Option<usize> {
    markdown::fences(section).filter(|fence| fence.info == "yaml").find_map(|fence| {
        let block = yaml::read(fence.content, Limits::DOCUMENT).ok()?;
        block.mapping()?.iter().find(|e| e.key == ANSWERS || e.key == EXPECTED).map(|e| e.line)
    })
}

/// Whether `expected` is neither nothing nor everything of `answers`, in neither of which anything stands twice.
pub(super) fn is_proper(answers: &[String], expected: &[String]) -> bool {
    let answers: BTreeSet<_> = answers.iter().collect();
    !expected.is_empty() && expected.len() < answers.len() && expected.iter().all(|e| answers.contains(e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expected_part_is_proper_where_it_is_neither_nothing_nor_everything() {
        let texts = |items: &[&str]| items.iter().map(|i| (*i).to_owned()).collect::<Vec<_>>();
        let answers = texts(&["a", "b"]);
        for (expected, proper) in
            [(&["a"][..], true), (&["b"], true), (&[], false), (&["a", "b"], false), (&["c"], false)]
        {
            assert_eq!(is_proper(&answers, &texts(expected)), proper, "{expected:?}");
        }
    }
}
