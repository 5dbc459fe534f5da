//! The prompt on standard input: the task of the probe, word for word.
//!
//! A prompt that is given as text is read as if it had been typed: one that starts with `/` is a command that may never
//! reach the model, and `@path` in it attaches a file that no line of the stream shows. So it is given as a message that
//! says it was not typed, and every task arrives as it stands (measured with the pinned harness).

use serde::Serialize;

/// The message of the user, in the field order of the harness's own messages.
#[derive(Serialize)]
struct Line<'a> {
    r#type: &'static str,
    message: Message<'a>,
    text_not_typed: bool,
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: &'a str,
}

/// What is written to standard input for `task`: one line of JSON. Its end is the end of the input.
///
/// # Errors
/// None in practice: a string is always JSON.
pub fn line(task: &str) -> serde_json::Result<Vec<u8>> {
    let message = Message { role: "user", content: task };
    let mut line = serde_json::to_vec(&Line { r#type: "user", message, text_not_typed: true })?;
    line.push(b'\n');
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::line;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_task_is_one_line_that_holds_it_word_for_word(task in any::<String>()) {
            let line = line(&task).unwrap();
            prop_assert_eq!(line.iter().filter(|b| **b == b'\n').count(), 1);
            let value: serde_json::Value = serde_json::from_slice(&line).unwrap();
            prop_assert_eq!(value["message"]["content"].as_str(), Some(task.as_str()));
            prop_assert_eq!(&value["text_not_typed"], true);
        }
    }
}
