//! The four closed key sets, the tiers and the arms. A key outside a set refuses the whole transcript: that refusal is
//! what keeps model prose out of it, so a key is added here and in `docs/contract.md` or nowhere (a test holds both).

use std::fmt;
use std::str::FromStr;

/// One key of a closed set and what a recorder writes under it, word for word as the table in `docs/contract.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    /// The key as it stands in the block.
    pub name: &'static str,
    /// What the recorder writes.
    pub writes: &'static str,
}

const fn key(name: &'static str, writes: &'static str) -> Key {
    Key { name, writes }
}

/// The run identity: twelve keys, every one required.
pub const IDENTITY: [Key; 12] = [
    key("model", "the model that was asked for"),
    key("served_version", "the version that served it, or the model's name where the provider tells none"),
    key("tree", "the corpus tree digest of the plan"),
    key("lock", "the taxonomy lock digest of the plan"),
    key("selection", "the selection digest of the plan"),
    key("read_set", "the read-set digest of the plan"),
    key("seed", "the rotation seed the caller stated"),
    key("harness", "the harness version of the plan"),
    key("tier", "`regression`, `campaign` or `documentation`"),
    key("arm", "`present`, `absent`, or a component arm: `no-hook`, `no-skills`, `no-claude-md`, `mcp`"),
    key("at", "when the run started, RFC 3339 in UTC"),
    key("cost_cents", "the realized cost, whole cents"),
];

/// One event: five keys, of which `probe` and `session` are required.
pub const EVENT: [Key; 5] = [
    key("probe", "the identifier of the probe this session ran"),
    key("session", "a name for the session, distinct within its probe"),
    key("calls", "the ordered tool calls; absent where nothing watched"),
    key("produced", "the artifacts the session left; absent where nothing looked"),
    key("answer", "the final answer, `null` where there was none; absent where nothing looked"),
];

/// One tool call: three keys, all required.
pub const CALL: [Key; 3] = [
    key("tool", "the name of the tool"),
    key("argument", "the argument; for a read, the path"),
    key("result", "the identity of what came back; for a read, the content digest of the document"),
];

/// One produced artifact: four keys, of which `findings` may be absent.
pub const PRODUCED: [Key; 4] = [
    key("path", "where the artifact landed"),
    key("result", "the identity of the artifact, never its bytes"),
    key("cites", "every identifier of this corpus that appears in it"),
    key("findings", "every rule that reported over it; absent where nothing checked"),
];

macro_rules! closed_set {
    ($(#[$doc:meta])* $name:ident, $what:literal, { $($variant:ident => $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $(#[doc = concat!("`", $text, "`")] $variant),+ }

        impl $name {
            /// Every member, in the order of the contract.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The member as it is written.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl FromStr for $name {
            type Err = NotAMember;
            fn from_str(text: &str) -> Result<Self, NotAMember> {
                Self::ALL.iter().copied().find(|m| m.as_str() == text).ok_or_else(|| NotAMember {
                    what: $what,
                    text: text.chars().take(80).collect(),
                    members: Self::ALL.iter().map(|m| m.as_str()).collect::<Vec<_>>().join(", "),
                })
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                String::deserialize(d)?.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

/// A text that is not in a closed set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no {what}: expected one of {members}")]
pub struct NotAMember {
    /// The name of the set.
    pub what: &'static str,
    /// The text as found, cut at 80 characters.
    pub text: String,
    /// The members of the set, joined.
    pub members: String,
}

closed_set!(
    /// The tier of a run.
    Tier, "tier", {
    Regression => "regression",
    Campaign => "campaign",
    Documentation => "documentation",
});

closed_set!(
    /// The arm of a run: what the workspace of its sessions holds.
    Arm, "arm", {
    Present => "present",
    Absent => "absent",
    NoHook => "no-hook",
    NoSkills => "no-skills",
    NoClaudeMd => "no-claude-md",
    Mcp => "mcp",
});

closed_set!(
    /// What a probe is about.
    Category, "probe category", {
    Discovery => "discovery",
    Sufficiency => "sufficiency",
    Navigability => "navigability",
    Consistency => "consistency",
});

closed_set!(
    /// The form of a probe's expectation.
    Expectation, "expectation", {
    Opened => "opened",
    NotOpened => "not_opened",
    Cited => "cited",
    Answered => "answered",
    Patched => "patched",
});

impl Arm {
    /// Whether the arm takes one component away from (or, for `mcp`, adds one to) the present tree.
    #[must_use]
    pub const fn is_component(self) -> bool {
        !matches!(self, Self::Present | Self::Absent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rows of the first table behind a heading of the page.
    fn rows(heading: &str) -> Vec<String> {
        let page = include_str!("../../../docs/contract.md");
        let section = page.split(&format!("\n### {heading}\n")).nth(1).expect(heading);
        let table = section.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
        table.skip(2).map(str::to_owned).collect()
    }

    #[test]
    fn the_tables_of_the_page_are_the_closed_key_sets() {
        for (heading, set) in [
            ("The run identity", &IDENTITY[..]),
            ("An event", &EVENT[..]),
            ("A call", &CALL[..]),
            ("A produced artifact", &PRODUCED[..]),
        ] {
            let code: Vec<_> = set.iter().map(|key| format!("| `{}` | {} |", key.name, key.writes)).collect();
            assert_eq!(rows(heading), code, "docs/contract.md, {heading}");
        }
    }

    #[test]
    fn a_member_is_written_as_it_is_read_and_nothing_else_is_one() {
        for arm in Arm::ALL {
            assert_eq!(arm.as_str().parse(), Ok(*arm));
        }
        assert_eq!(Arm::ALL.iter().filter(|arm| arm.is_component()).count(), 4);
        let refused = "Present".parse::<Arm>().unwrap_err().to_string();
        assert_eq!(
            refused,
            "`Present` is no arm: expected one of present, absent, no-hook, no-skills, no-claude-md, mcp"
        );
        assert!("".parse::<Tier>().is_err() && "opened ".parse::<Expectation>().is_err());
    }
}
