//! The members of a stream line that are read, and nothing else of it.
//!
//! Every other member is passed over without being kept. A key that is read and stands twice is an error, because
//! two readers would each believe another one. Text is decoded as the harness itself hands it to a file system: a
//! lone surrogate becomes U+FFFD.

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

/// An object. A derived reader alone would also take an array, by position.
#[derive(Debug)]
pub(super) struct Object<T>(pub T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Map<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Map<T> {
            type Value = T;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map))
            }
        }
        deserializer.deserialize_map(Map(PhantomData)).map(Object)
    }
}

/// An object as pairs, in its order. A key that stands twice is an error.
#[derive(Debug)]
pub(super) struct Pairs<T>(pub Vec<(String, T)>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Pairs<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Map<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Map<T> {
            type Value = Vec<(String, T)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut pairs: Self::Value = Vec::new();
                while let Some((key, value)) = map.next_entry::<String, T>()? {
                    if pairs.iter().any(|(known, _)| *known == key) {
                        return Err(A::Error::custom("a key stands twice"));
                    }
                    pairs.push((key, value));
                }
                Ok(pairs)
            }
        }
        deserializer.deserialize_map(Map(PhantomData)).map(Pairs)
    }
}

/// A string.
#[derive(Debug)]
pub(super) struct Text<'a>(pub Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?;
        decode(raw.get()).map(Text).ok_or_else(|| D::Error::custom("not a string"))
    }
}

impl Text<'_> {
    /// The string by itself.
    pub(super) fn into_string(self) -> String {
        self.0.into_owned()
    }
}

/// A string, or any other value, which is read as none.
#[derive(Debug, Default)]
pub(super) struct Loose<'a>(pub Option<Cow<'a, str>>);

impl<'de: 'a, 'a> Deserialize<'de> for Loose<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(decode(<&RawValue>::deserialize(deserializer)?.get())))
    }
}

/// A whole number of 64 bits, or any other value, which is read as none.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Count(pub Option<u64>);

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(<&RawValue>::deserialize(deserializer)?.get().parse().ok()))
    }
}

/// The text of a JSON string that a parser has already passed over, or none where it is no string.
fn decode(raw: &str) -> Option<Cow<'_, str>> {
    let inner = raw.strip_prefix('"')?.strip_suffix('"')?;
    if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
        return Some(Cow::Borrowed(inner));
    }
    serde_json::from_str(raw).or_else(|_| serde_json::from_str(&without_lone_surrogates(raw))).ok().map(Cow::Owned)
}

/// `raw` with each escape of a lone surrogate replaced by the escape of U+FFFD.
fn without_lone_surrogates(raw: &str) -> String {
    let unit = |at: usize| -> Option<u16> {
        let digits = raw.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    let mut out = String::with_capacity(raw.len());
    let mut from = 0;
    while let Some(offset) = memchr::memchr(b'\\', &raw.as_bytes()[from..]) {
        let at = from + offset;
        out.push_str(&raw[from..at]);
        let (replaced, length) = match unit(at) {
            Some(0xd800..=0xdbff) if matches!(unit(at + 6), Some(0xdc00..=0xdfff)) => (false, 12),
            Some(0xd800..=0xdfff) => (true, 6),
            Some(_) => (false, 6),
            None => (false, 2),
        };
        let end = raw.len().min(at + length);
        out.push_str(if replaced { "\\ufffd" } else { &raw[at..end] });
        from = end;
    }
    out.push_str(&raw[from..]);
    out
}

/// What every line has.
#[derive(Debug, Deserialize)]
pub(super) struct Head<'a> {
    #[serde(borrow, rename = "type")]
    pub kind: Text<'a>,
    #[serde(borrow, default)]
    pub subtype: Loose<'a>,
}

/// A line of the assistant or of the user.
#[derive(Debug, Deserialize)]
pub(super) struct Talk<'a> {
    #[serde(borrow, rename = "type")]
    pub kind: Text<'a>,
    #[serde(borrow)]
    pub message: Object<Message<'a>>,
    #[serde(borrow)]
    pub parent_tool_use_id: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub error: Loose<'a>,
    #[serde(borrow, default)]
    pub api_error_type: Loose<'a>,
    #[serde(default)]
    pub api_error_status: Count,
}

/// A message.
#[derive(Debug, Deserialize)]
pub(super) struct Message<'a> {
    #[serde(borrow, default)]
    pub model: Loose<'a>,
    #[serde(borrow, default)]
    pub stop_reason: Loose<'a>,
    #[serde(borrow)]
    pub content: Content<'a>,
}

/// The blocks of a message. A message that is one string has none.
#[derive(Debug)]
pub(super) struct Content<'a>(pub Vec<Block<'a>>);

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Blocks;
        impl<'de> Visitor<'de> for Blocks {
            type Value = Vec<Block<'de>>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of blocks or a string")
            }

            fn visit_bytes<E: Error>(self, _: &[u8]) -> Result<Self::Value, E> {
                Ok(Vec::new())
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut blocks = Vec::new();
                while let Some(Object(block)) = seq.next_element()? {
                    blocks.push(block);
                }
                Ok(blocks)
            }
        }
        // As bytes, because serde_json then takes a list or a string, and a string that holds a lone surrogate too.
        deserializer.deserialize_bytes(Blocks).map(Content)
    }
}

/// A block of a message. Which members count is decided by its tag.
#[derive(Debug, Deserialize)]
pub(super) struct Block<'a> {
    #[serde(borrow, rename = "type")]
    pub kind: Text<'a>,
    #[serde(borrow)]
    pub id: Option<Text<'a>>,
    #[serde(borrow)]
    pub name: Option<Text<'a>>,
    #[serde(borrow)]
    pub input: Option<&'a RawValue>,
    #[serde(borrow)]
    pub tool_use_id: Option<Text<'a>>,
    pub is_error: Option<bool>,
}

/// The members of a call's input that name a path, or the command.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Input<'a> {
    #[serde(borrow, default)]
    pub file_path: Loose<'a>,
    #[serde(borrow, default)]
    pub notebook_path: Loose<'a>,
    #[serde(borrow, default)]
    pub path: Loose<'a>,
    #[serde(borrow, default)]
    pub command: Loose<'a>,
}

/// A system line about one call or one task.
#[derive(Debug, Deserialize)]
pub(super) struct About<'a> {
    #[serde(borrow, default)]
    pub tool_use_id: Loose<'a>,
    pub usage: Option<Object<TaskUsage>>,
}

/// What a task used.
#[derive(Debug, Deserialize)]
pub(super) struct TaskUsage {
    #[serde(default)]
    pub tool_uses: Count,
}

/// The init line.
#[derive(Debug, Deserialize)]
pub(super) struct Init<'a> {
    #[serde(borrow)]
    pub cwd: Option<Text<'a>>,
    #[serde(borrow)]
    pub original_cwd: Option<Text<'a>>,
    #[serde(borrow, rename = "permissionMode")]
    pub permission_mode: Option<Text<'a>>,
    #[serde(borrow)]
    pub output_style: Option<Text<'a>>,
    #[serde(borrow)]
    pub model: Option<Text<'a>>,
    #[serde(borrow)]
    pub claude_code_version: Option<Text<'a>>,
    #[serde(borrow, rename = "apiKeySource")]
    pub api_key_source: Option<Text<'a>>,
    pub tools: Option<Vec<serde::de::IgnoredAny>>,
    #[serde(borrow)]
    pub mcp_servers: Option<Vec<Object<Server<'a>>>>,
    #[serde(borrow)]
    pub plugins: Option<Vec<Object<Plugin<'a>>>>,
    #[serde(borrow)]
    pub skills: Option<Vec<Text<'a>>>,
    #[serde(borrow)]
    pub agents: Option<Vec<Text<'a>>>,
    #[serde(borrow)]
    pub slash_commands: Option<Vec<Text<'a>>>,
    #[serde(borrow)]
    pub additional_directories: Option<Vec<Text<'a>>>,
    pub memory_paths: Option<serde_json::Value>,
}

/// An MCP server of the init line.
#[derive(Debug, Deserialize)]
pub(super) struct Server<'a> {
    #[serde(borrow)]
    pub name: Text<'a>,
    #[serde(borrow)]
    pub source: Option<Text<'a>>,
}

/// A plugin of the init line.
#[derive(Debug, Deserialize)]
pub(super) struct Plugin<'a> {
    #[serde(borrow)]
    pub name: Text<'a>,
    #[serde(borrow)]
    pub path: Option<Text<'a>>,
}

/// A result line.
#[derive(Debug, Deserialize)]
pub(super) struct ResultLine<'a> {
    #[serde(borrow)]
    pub subtype: Option<Text<'a>>,
    pub is_error: Option<bool>,
    #[serde(borrow)]
    pub terminal_reason: Option<Text<'a>>,
    #[serde(borrow)]
    pub stop_reason: Option<Text<'a>>,
    #[serde(borrow)]
    pub result: Option<Text<'a>>,
    #[serde(default)]
    pub result_index: Count,
    #[serde(default)]
    pub num_turns: Count,
    #[serde(default)]
    pub api_error_status: Count,
    #[serde(borrow)]
    pub total_cost_usd: Option<&'a RawValue>,
    #[serde(borrow, rename = "modelUsage")]
    pub model_usage: Option<Pairs<Object<ModelUsage<'a>>>>,
    #[serde(borrow)]
    pub permission_denials: Option<Vec<Object<Denial<'a>>>>,
}

/// The tokens of one model.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ModelUsage<'a> {
    #[serde(default)]
    pub input_tokens: Count,
    #[serde(default)]
    pub output_tokens: Count,
    #[serde(default)]
    pub cache_read_input_tokens: Count,
    #[serde(default)]
    pub cache_creation_input_tokens: Count,
    #[serde(default, rename = "cacheCreationEphemeral1hInputTokens")]
    pub cache_creation_1h: Count,
    #[serde(borrow)]
    pub canonical_model: Option<Text<'a>>,
    #[serde(borrow)]
    pub cost_basis: Option<Text<'a>>,
}

/// A denied call.
#[derive(Debug, Deserialize)]
pub(super) struct Denial<'a> {
    #[serde(borrow, default)]
    pub tool_use_id: Loose<'a>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(json: &str) -> Option<String> {
        serde_json::from_str::<Text<'_>>(json).ok().map(Text::into_string)
    }

    #[test]
    fn a_lone_surrogate_is_read_as_one_replacement_character() {
        assert_eq!(text(r#""a\ud800b""#).unwrap(), "a\u{fffd}b");
        assert_eq!(text(r#""\udc00\ud83d\ude00\ud83d""#).unwrap(), "\u{fffd}\u{1f600}\u{fffd}");
        assert_eq!(text(r#""\ud800\\ud800\ud800\u0041\n""#).unwrap(), "\u{fffd}\\ud800\u{fffd}A\n");
    }

    #[test]
    fn only_a_string_is_text() {
        for json in ["1", "null", "[\"a\"]", "{}", "true"] {
            assert_eq!(text(json), None);
            assert!(serde_json::from_str::<Loose<'_>>(json).unwrap().0.is_none());
        }
    }

    #[test]
    fn an_array_is_no_object() {
        assert!(serde_json::from_str::<Object<Head<'_>>>(r#"["system","init"]"#).is_err());
        assert!(serde_json::from_str::<Object<Head<'_>>>(r#"{"type":"system"}"#).is_ok());
    }

    #[test]
    fn a_count_beyond_64_bits_is_none() {
        for json in ["18446744073709551616", "-1", "1.5", "1e3", "null", "\"1\""] {
            assert_eq!(serde_json::from_str::<Count>(json).unwrap().0, None, "{json}");
        }
        assert_eq!(serde_json::from_str::<Count>("18446744073709551615").unwrap().0, Some(u64::MAX));
    }

    #[test]
    fn a_key_of_a_map_that_stands_twice_is_an_error() {
        assert!(serde_json::from_str::<Pairs<Count>>(r#"{"a":1,"b":2}"#).is_ok());
        assert!(serde_json::from_str::<Pairs<Count>>(r#"{"a":1,"\u0061":2}"#).is_err());
    }
}
