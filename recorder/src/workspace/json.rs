//! Array elements taken out of a JSON text, everything else left byte for byte as it is.

use std::ops::Range;

/// Why a text keeps what it should lose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Uncut {
    /// No JSON.
    #[error("it is not JSON")]
    NotJson,
    /// A place that is in no array.
    #[error("line {0} names it outside of any array")]
    OutsideOfArrays(usize),
}

/// `text` without the innermost array elements in which `places` (byte offsets, ascending) are, and how many those were.
///
/// # Errors
/// Where `text` is no JSON, or a place is in no array.
pub fn without_elements(text: &[u8], places: &[usize]) -> Result<(Vec<u8>, usize), Uncut> {
    serde_json::from_slice::<serde::de::IgnoredAny>(text).map_err(|_| Uncut::NotJson)?;
    let mut cuts = Cuts { left: places.to_vec(), ranges: Vec::new(), count: 0 };
    let mut open: Vec<Option<Array>> = Vec::new();
    let mut in_string = false;
    let mut escaped = false;
    for (at, byte) in text.iter().enumerate() {
        if in_string {
            in_string = escaped || *byte != b'"';
            escaped = !escaped && *byte == b'\\';
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'{' => open.push(None),
            b'[' => open.push(Some(Array { element: at + 1, ..Array::default() })),
            b',' => {
                if let Some(Some(array)) = open.last_mut() {
                    array.end_element(at, &mut cuts);
                }
            }
            b']' | b'}' => {
                if let Some(Some(mut array)) = open.pop() {
                    array.end_element(at, &mut cuts);
                    array.end(&mut cuts);
                }
            }
            _ => {}
        }
    }
    match cuts.left.first() {
        Some(place) => Err(Uncut::OutsideOfArrays(memchr::memchr_iter(b'\n', &text[..*place]).count() + 1)),
        None => Ok((cuts.apply(text), cuts.count)),
    }
}

/// An array that is being read. An element reaches from behind the bracket or comma before it to the comma or bracket
/// behind it.
#[derive(Default)]
struct Array {
    element: usize,
    elements: Vec<(Range<usize>, bool)>,
}

impl Array {
    fn end_element(&mut self, end: usize, cuts: &mut Cuts) {
        let range = self.element..end;
        let named = cuts.take_places(&range);
        self.elements.push((range, named));
        self.element = end + 1;
    }

    /// Each element that goes takes one comma with it: the one before it where an element before it stays, else the one
    /// behind it.
    fn end(self, cuts: &mut Cuts) {
        let count = self.elements.len();
        let mut kept_before = false;
        for (at, (range, named)) in self.elements.into_iter().enumerate() {
            if !named {
                kept_before = true;
                continue;
            }
            cuts.count += 1;
            cuts.ranges.push(match (kept_before, at + 1 == count) {
                (true, _) => range.start - 1..range.end,
                (false, false) => range.start..range.end + 1,
                (false, true) => range,
            });
        }
    }
}

struct Cuts {
    /// Places that are in no element yet. Elements end from the inside out, so the first that has one is the innermost.
    left: Vec<usize>,
    ranges: Vec<Range<usize>>,
    count: usize,
}

impl Cuts {
    fn take_places(&mut self, range: &Range<usize>) -> bool {
        let from = self.left.partition_point(|place| *place < range.start);
        let to = self.left.partition_point(|place| *place < range.end);
        self.left.drain(from..to).next().is_some()
    }

    fn apply(&self, text: &[u8]) -> Vec<u8> {
        let mut ranges = self.ranges.clone();
        ranges.sort_unstable_by_key(|range| range.start);
        let mut kept = Vec::with_capacity(text.len());
        let mut at = 0;
        for range in ranges {
            if range.start > at {
                kept.extend_from_slice(&text[at..range.start]);
            }
            at = at.max(range.end);
        }
        kept.extend_from_slice(&text[at..]);
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn cut(text: &str) -> Result<(String, usize), Uncut> {
        let places: Vec<_> = text.match_indices("X-1").map(|(at, _)| at).collect();
        without_elements(text.as_bytes(), &places).map(|(text, count)| (String::from_utf8(text).unwrap(), count))
    }

    #[test]
    fn the_innermost_element_that_names_it_goes_with_one_comma() {
        for (text, expected, count) in [
            (r#"["X-1", "b"]"#, r#"[ "b"]"#, 1),
            (r#"["a", "X-1"]"#, r#"["a"]"#, 1),
            (r#"["a", "X-1", "b"]"#, r#"["a", "b"]"#, 1),
            (r#"["X-1"]"#, "[]", 1),
            (r#"["X-1", "X-1"]"#, "[]", 2),
            (
                r#"{"d": [{"id": "X-1", "l": []}, {"id": "b", "l": ["X-1", "c"]}]}"#,
                r#"{"d": [ {"id": "b", "l": [ "c"]}]}"#,
                2,
            ),
            (r#"[{"id": "X-1", "l": ["X-1"]}]"#, "[]", 2),
            (r#"["] \" , X-1", "b]\\"]"#, r#"[ "b]\\"]"#, 1),
            ("[\n  \"a\",\n  \"X-1\"\n]\n", "[\n  \"a\"]\n", 1),
            (r#"["a"]"#, r#"["a"]"#, 0),
        ] {
            let (kept, cut) = cut(text).unwrap();
            assert_eq!((kept.as_str(), cut), (expected, count), "{text}");
        }
    }

    #[test]
    fn what_is_in_no_array_or_in_no_json_stays_and_is_said() {
        assert_eq!(cut("{\n\"a\": \"X-1\"}"), Err(Uncut::OutsideOfArrays(2)));
        assert_eq!(cut("{\"l\": [\"X-1\"], \"X-1\": 0}"), Err(Uncut::OutsideOfArrays(1)));
        for text in ["[\"X-1\"", "// X-1\n[]", "", "[\"X-1\",]"] {
            assert_eq!(cut(text), Err(Uncut::NotJson), "{text}");
        }
    }

    #[test]
    fn a_text_of_any_depth_is_cut() {
        let nested = |inner: &str| format!("{}{inner}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(cut(&nested("\"X-1\"")) == Ok((nested(""), 1)));
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![Just(json!("X-1")), Just(json!("a,]\"\\")), Just(json!(1)), Just(Value::Null)];
        leaf.prop_recursive(4, 40, 5, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::Array),
                proptest::collection::btree_map("[a-c]", inner, 0..4).prop_map(|m| json!(m)),
            ]
        })
    }

    fn without(value: &Value) -> Value {
        match value {
            Value::Array(items) => {
                let named = |v: &Value| direct(v);
                Value::Array(items.iter().filter(|v| !named(v)).map(without).collect())
            }
            Value::Object(map) => Value::Object(map.iter().map(|(k, v)| (k.clone(), without(v))).collect()),
            other => other.clone(),
        }
    }

    /// Whether the name stands in a value outside of any array within it.
    fn direct(value: &Value) -> bool {
        match value {
            Value::String(text) => text == "X-1",
            Value::Object(map) => map.values().any(direct),
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn a_text_still_parses_and_is_what_the_rule_leaves_of_it(value in value(), pretty: bool) {
            let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }.unwrap();
            match cut(&text) {
                Ok((kept, _)) => prop_assert_eq!(serde_json::from_str::<Value>(&kept).unwrap(), without(&value)),
                Err(why) => {
                    prop_assert!(matches!(why, Uncut::OutsideOfArrays(_)));
                    prop_assert!(direct(&value));
                }
            }
        }
    }
}
