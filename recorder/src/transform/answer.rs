//! The final line against the closed set.

use headwater_contract::transcript::Answer;
use std::collections::BTreeSet;

/// The answer a session gave: the declared form of the answer whose words are the words of the last line of the
/// final message that is not empty.
///
/// The space around the line is trimmed, one period at its end is taken off, the case is folded, and what runs of
/// space divide are its words. They are compared as a set, so order and repetition do not count; a word too many or
/// too few gives no answer. The first declared answer that fits is written, in its declared form. A line of white
/// space is empty.
///
/// Everything that is no answer was looked at and is [`Answer::None`]: also where the session has no final message, and
/// where the probe declares no answers.
#[must_use]
pub fn answer(final_message: Option<&str>, answers: &[String]) -> Answer {
    let last = final_message.and_then(|message| message.lines().rev().find(|line| !line.trim().is_empty()));
    let said = last.map(words).unwrap_or_default();
    let given = answers.iter().find(|declared| !said.is_empty() && words(declared) == said);
    given.map_or(Answer::None, |declared| Answer::Value(declared.clone()))
}

/// The words of a line. Case is folded a character at a time, so that no character depends on its neighbours.
fn words(line: &str) -> BTreeSet<String> {
    let line = line.trim();
    let line = line.strip_suffix('.').unwrap_or(line);
    line.split_whitespace().map(|word| word.chars().flat_map(char::to_lowercase).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn given(message: &str, answers: &[&str]) -> Answer {
        let answers: Vec<_> = answers.iter().map(ToString::to_string).collect();
        answer(Some(message), &answers)
    }

    fn value(text: &str) -> Answer {
        Answer::Value(text.into())
    }

    #[test]
    fn the_last_line_that_is_not_empty_is_the_answer() {
        assert_eq!(given("The spec says so.\nyes", &["yes", "no"]), value("yes"));
        assert_eq!(given("no\n\nyes\r\n \t\n\n", &["yes", "no"]), value("yes"));
        assert_eq!(given("yes\nI am sure", &["yes", "no"]), Answer::None);
    }

    #[test]
    fn space_one_period_and_case_do_not_count() {
        assert_eq!(given("  YES.  ", &["yes"]), value("yes"));
        assert_eq!(given("yes .", &["yes"]), value("yes"));
        assert_eq!(given("Ärger", &["ÄRGER"]), value("ÄRGER"));
        assert_eq!(given("yes..", &["yes"]), Answer::None);
        assert_eq!(given(".yes", &["yes"]), Answer::None);
        assert_eq!(given("etc.", &["etc."]), value("etc."));
    }

    #[test]
    fn the_words_are_compared_as_a_set() {
        let answers = ["current WM-DR-0052", "retired WM-DR-0052"];
        assert_eq!(given("WM-DR-0052  current", &answers), value("current WM-DR-0052"));
        assert_eq!(given("current\tWM-DR-0052 current", &answers), value("current WM-DR-0052"));
        assert_eq!(given("0052 current WM-DR-0052", &answers), Answer::None);
        assert_eq!(given("current", &answers), Answer::None);
    }

    #[test]
    fn a_sentence_and_a_word_in_emphasis_carry_no_answer() {
        for line in ["The answer is yes.", "**yes**", "`yes`", "yes!", "answer: yes", "\"yes\""] {
            assert_eq!(given(line, &["yes"]), Answer::None, "{line}");
        }
    }

    #[test]
    fn the_declared_form_is_written_and_the_first_that_fits() {
        assert_eq!(given("b a", &["A b", "b A"]), value("A b"));
    }

    #[test]
    fn a_session_without_a_final_message_was_looked_at_and_a_probe_without_answers_was_not() {
        assert_eq!(answer(None, &["yes".into()]), Answer::None);
        assert_eq!(given("", &["yes", ""]), Answer::None);
        assert_eq!(given(".", &["", "."]), Answer::None);
        assert_eq!(given("yes", &[]), Answer::None);
    }

    proptest! {
        #[test]
        fn an_answer_is_one_of_the_declared_whatever_the_message(
            message in any::<String>(),
            answers in prop::collection::vec(any::<String>(), 0..4),
        ) {
            if let Answer::Value(value) = answer(Some(&message), &answers) {
                prop_assert!(answers.contains(&value));
            }
        }

        #[test]
        fn a_declared_answer_on_the_last_line_is_read_back(word in "[a-zA-Z0-9-]{1,12}", before in any::<String>()) {
            let given = answer(Some(&format!("{before}\n{word}.\n")), std::slice::from_ref(&word));
            prop_assert_eq!(given, Answer::Value(word));
        }
    }
}
