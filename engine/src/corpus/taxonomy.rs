//! The taxonomy: what a corpus declares about its documents, resolved.

use super::CorpusError;
use super::census::bounded_text;
use super::declared::{self, At};
use super::scheme::Scheme;
use super::shelf::{Shelf, Shelves};
use super::tree::Tree;
use headwater_contract::yaml::Limits;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

/// A resolved taxonomy.
#[derive(Debug, Clone, Default)]
pub struct Taxonomy {
    /// Facets by name.
    pub facets: BTreeMap<String, Facet>,
    /// Identifier schemes by name.
    pub schemes: BTreeMap<String, Scheme>,
    /// Kinds by name, with all that they inherit.
    pub kinds: BTreeMap<String, Kind>,
    /// Relations by name.
    pub relations: BTreeMap<String, Relation>,
    /// Where documents stand.
    pub shelves: Shelves,
}

/// What a facet is to the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FacetRole {
    /// It holds the state of a document.
    State,
    /// It holds the date on which the document entered its state.
    StateEntered,
    /// It says what a document is about to somebody who has not opened it.
    Scent,
}

impl FacetRole {
    const ALL: [Self; 3] = [Self::State, Self::StateEntered, Self::Scent];

    /// As the taxonomy writes it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::State => "state",
            Self::StateEntered => "state_entered",
            Self::Scent => "scent",
        }
    }
}

/// A facet: a front-matter key.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Facet {
    /// What it is to the engine.
    pub role: Option<FacetRole>,
    /// Whether every typed document has it.
    pub required: bool,
    /// The closed set of its values in the order of the declaration; empty where anything goes.
    pub values: Vec<FacetValue>,
    /// How often it is expected to change, as the taxonomy says it.
    pub volatility: Option<String>,
}

/// A permitted value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FacetValue {
    /// The value.
    pub value: String,
    /// Its role as declared.
    pub role: Option<String>,
}

impl FacetValue {
    /// What the role of a state says about a document in it.
    #[must_use]
    pub fn state_role(&self) -> StateRole {
        match self.role.as_deref() {
            Some("initial") => StateRole::Initial,
            Some("live") => StateRole::Live,
            Some(role) if role.starts_with("terminal-") => StateRole::Terminal,
            _ => StateRole::Unknown,
        }
    }
}

/// What a state says about a document in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateRole {
    /// It is unfinished.
    Initial,
    /// A reader may rely on it.
    Live,
    /// It is kept as a record, and nothing relies on it any more.
    Terminal,
    /// The taxonomy gives the value no role, or one that the engine does not know.
    Unknown,
}

/// A kind with all that it inherits.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Kind {
    /// Whether no document can have it.
    pub is_abstract: bool,
    /// What it inherits from, the nearest first.
    pub ancestors: Vec<String>,
    /// The name of the identifier scheme.
    pub scheme: Option<String>,
    /// The facets that a document of this kind has, in byte order.
    pub facets: BTreeSet<String>,
    /// The sections that a document of this kind has: inherited ones first, then in the order of the declaration.
    pub sections: Vec<String>,
}

/// A relation between documents.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Relation {
    /// The family, as the taxonomy says it.
    pub family: String,
    /// Kinds that may carry it, and with them the kinds below.
    pub from: BTreeSet<String>,
    /// Kinds that it may name, and with them the kinds below.
    pub to: BTreeSet<String>,
}

/// The facet that stands under `provenance` and not at the top of the front matter. A taxonomy that declares it with
/// values gives the closed set of `provenance.warrant`; one that does not leaves the warrant free.
pub const WARRANT: &str = "warrant";

impl Taxonomy {
    /// The absolute form of a root.
    ///
    /// # Errors
    /// Where there is nothing at `root`.
    pub(super) fn root(root: &Path) -> Result<PathBuf, CorpusError> {
        root.canonicalize().map_err(|e| no_root(root, &e))
    }

    /// Reads the taxonomy of the corpus at `root`, and opens its tree.
    ///
    /// # Errors
    /// Where the root is no directory, or holds no taxonomy that can be read; otherwise as [`Taxonomy::parse`].
    pub fn read(root: &Path) -> Result<(Tree, Self), CorpusError> {
        let tree = Tree::open(root).map_err(|e| no_root(root, &e))?;
        // One byte above the limit of YAML, so that the message about size is the one of the YAML reader.
        let limit = Limits::DOCUMENT.bytes + 1;
        let text = tree.file(super::TAXONOMY).and_then(|file| bounded_text(file, limit)).map_err(|e| {
            let path = root.join(super::TAXONOMY);
            let error = CorpusError::new(format!("{}: {e}", path.display()));
            error.remedy("name the root of a corpus with --root; its taxonomy is a regular file of UTF-8 text")
        })?;
        Ok((tree, Self::parse(&text)?))
    }

    /// Reads and resolves the text of a taxonomy.
    ///
    /// # Errors
    /// Where it is no YAML, has an unknown key, names what it does not declare, or inherits in a circle. The message
    /// has the line.
    pub fn parse(text: &str) -> Result<Self, CorpusError> {
        let node = declared::read(super::TAXONOMY, text)?;
        let fields = At::top(super::TAXONOMY, &node).fields(&[
            "facets",
            "identifier_schemes",
            "kinds",
            "relations",
            "shelves",
        ])?;
        let mut taxonomy = Self::default();
        if let Some(at) = fields.get("facets") {
            taxonomy.read_facets(at)?;
        }
        if let Some(at) = fields.get("identifier_schemes") {
            for (name, at) in at.entries()? {
                taxonomy.schemes.insert(name.to_owned(), Scheme::read(&at)?);
            }
        }
        if let Some(at) = fields.get("kinds") {
            taxonomy.read_kinds(at)?;
        }
        if let Some(at) = fields.get("relations") {
            taxonomy.read_relations(at)?;
        }
        if let Some(at) = fields.get("shelves") {
            taxonomy.shelves = Shelves::read(at)?;
            taxonomy.hold_shelves(at)?;
        }
        Ok(taxonomy)
    }

    fn read_facets(&mut self, at: &At<'_>) -> Result<(), CorpusError> {
        for (name, at) in at.entries()? {
            let facet = read_facet(&at)?;
            if let Some(role @ (FacetRole::State | FacetRole::StateEntered)) = facet.role
                && let Some(other) = self.with_role(role).next()
            {
                return Err(at
                    .error(format!("`{other}` has the role `{}` too", role.as_str()))
                    .remedy("one facet of a taxonomy has it; take it from the other one"));
            }
            self.facets.insert(name.to_owned(), facet);
        }
        Ok(())
    }

    fn read_kinds(&mut self, at: &At<'_>) -> Result<(), CorpusError> {
        let mut declared = BTreeMap::new();
        for (name, at) in at.entries()? {
            declared.insert(name, DeclaredKind::read(&at, self)?);
        }
        let everywhere: BTreeSet<_> =
            self.facets.iter().filter(|(_, f)| f.required).map(|(name, _)| name.clone()).collect();
        for name in declared.keys() {
            let mut kind = resolve(name, &declared)?;
            kind.facets.extend(everywhere.iter().cloned());
            self.kinds.insert((*name).to_owned(), kind);
        }
        Ok(())
    }

    fn read_relations(&mut self, at: &At<'_>) -> Result<(), CorpusError> {
        for (name, at) in at.entries()? {
            let fields = at.fields(&["family", "from", "to"])?;
            let kinds = |key| -> Result<BTreeSet<String>, CorpusError> {
                let at = fields.require(key)?;
                at.texts()?;
                at.items()?.iter().map(|item| Ok(self.known_kind(item)?.to_owned())).collect()
            };
            let family = fields.require("family")?.text()?.to_owned();
            let relation = Relation { family, from: kinds("from")?, to: kinds("to")? };
            self.relations.insert(name.to_owned(), relation);
        }
        Ok(())
    }

    fn hold_shelves(&self, at: &At<'_>) -> Result<(), CorpusError> {
        for (_, at) in at.entries()? {
            let fields = at.fields(&["path", "homogeneous", "kind"])?;
            let Some(kind_at) = fields.get("kind") else { continue };
            let kind = self.known_kind(kind_at)?;
            if self.kinds[kind].is_abstract && fields.require("homogeneous")?.boolean()? {
                return Err(kind_at
                    .error(format!("no document can have the abstract kind `{kind}`"))
                    .remedy("name a kind that is not abstract, or write `homogeneous: false`"));
            }
        }
        Ok(())
    }

    fn known_kind<'a>(&self, at: &At<'a>) -> Result<&'a str, CorpusError> {
        let name = at.text()?;
        known(at, "kind", name, &self.kinds)?;
        Ok(name)
    }

    /// Whether `kind` is `ancestor` or inherits from it.
    #[must_use]
    pub fn is_a(&self, kind: &str, ancestor: &str) -> bool {
        kind == ancestor || self.kind(kind).is_some_and(|k| k.ancestors.iter().any(|a| a == ancestor))
    }

    /// A kind.
    #[must_use]
    pub fn kind(&self, name: &str) -> Option<&Kind> {
        self.kinds.get(name)
    }

    /// A facet.
    #[must_use]
    pub fn facet(&self, name: &str) -> Option<&Facet> {
        self.facets.get(name)
    }

    /// A relation.
    #[must_use]
    pub fn relation(&self, name: &str) -> Option<&Relation> {
        self.relations.get(name)
    }

    /// The names of the facets with a role, in byte order. At most one has the role of the state, and one that of the
    /// date on which it was entered.
    pub fn with_role(&self, role: FacetRole) -> impl Iterator<Item = &str> {
        self.facets.iter().filter(move |(_, f)| f.role == Some(role)).map(|(name, _)| name.as_str())
    }

    /// The facet that holds the state of a document.
    #[must_use]
    pub fn state(&self) -> Option<(&str, &Facet)> {
        let name = self.with_role(FacetRole::State).next()?;
        Some((name, self.facet(name)?))
    }

    /// The facet that holds the date on which a document entered its state.
    #[must_use]
    pub fn entered(&self) -> Option<&str> {
        self.with_role(FacetRole::StateEntered).next()
    }

    /// The first state whose role is `initial`.
    #[must_use]
    pub fn initial_state(&self) -> Option<&str> {
        let initial = |v: &&FacetValue| v.state_role() == StateRole::Initial;
        self.state()?.1.values.iter().find(initial).map(|v| v.value.as_str())
    }

    /// The role of a state, [`StateRole::Unknown`] for a value that the vocabulary does not have.
    #[must_use]
    pub fn state_role(&self, state: &str) -> StateRole {
        let values = self.state().map_or(&[][..], |(_, f)| &f.values);
        values.iter().find(|v| v.value == state).map_or(StateRole::Unknown, FacetValue::state_role)
    }

    /// The identifier scheme of a kind.
    #[must_use]
    pub fn scheme_of(&self, kind: &str) -> Option<&Scheme> {
        self.schemes.get(self.kind(kind)?.scheme.as_deref()?)
    }

    /// The shelf that a path stands on, and its name.
    #[must_use]
    pub fn shelf_of(&self, path: &str) -> Option<(&str, &Shelf)> {
        self.shelves.of(path)
    }

    /// The shelf of a kind: the one that declares it, else the first that is not homogeneous and may hold it.
    #[must_use]
    pub fn shelf_of_kind(&self, kind: &str) -> Option<(&str, &Shelf)> {
        let own = self.shelves.iter().find(|(_, s)| s.kind.as_deref() == Some(kind));
        own.or_else(|| {
            let holds = |s: &Shelf| !s.homogeneous && s.kind.as_deref().is_none_or(|k| self.is_a(kind, k));
            self.shelves.iter().find(|(_, s)| holds(s))
        })
    }
}

fn no_root(root: &Path, error: &io::Error) -> CorpusError {
    CorpusError::new(format!("{}: {error}", root.display())).remedy("name the root of a corpus with --root")
}

/// Refuses a name that is not declared, and says which ones are.
fn known<T>(at: &At<'_>, what: &str, name: &str, declared: &BTreeMap<String, T>) -> Result<(), CorpusError> {
    if declared.contains_key(name) {
        return Ok(());
    }
    let names: Vec<_> = declared.keys().map(String::as_str).collect();
    let declared = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    Err(at
        .error(format!("unknown {what} `{name}`"))
        .remedy(format!("declare it, or name one that is declared: {declared}")))
}

fn read_facet(at: &At<'_>) -> Result<Facet, CorpusError> {
    let fields = at.fields(&["role", "required", "values", "volatility"])?;
    let role = match fields.get("role") {
        Some(at) => {
            let text = at.text()?;
            let role = FacetRole::ALL.into_iter().find(|r| r.as_str() == text);
            Some(role.ok_or_else(|| at.expected("`state`, `state_entered` or `scent`"))?)
        }
        None => None,
    };
    Ok(Facet {
        role,
        required: fields.get("required").map(At::boolean).transpose()?.unwrap_or(false),
        values: fields.get("values").map(read_values).transpose()?.unwrap_or_default(),
        volatility: fields.get("volatility").map(At::text).transpose()?.map(str::to_owned),
    })
}

fn read_values(at: &At<'_>) -> Result<Vec<FacetValue>, CorpusError> {
    let mut values: Vec<FacetValue> = Vec::new();
    for item in at.items()? {
        let value = if item.node().mapping().is_some() {
            let fields = item.fields(&["value", "role"])?;
            let role = fields.get("role").map(At::text).transpose()?;
            FacetValue { value: fields.require("value")?.text()?.to_owned(), role: role.map(str::to_owned) }
        } else {
            FacetValue { value: item.text()?.to_owned(), role: None }
        };
        if values.iter().any(|v| v.value == value.value) {
            return Err(item.error(format!("`{}` stands twice", value.value)).remedy("keep one"));
        }
        values.push(value);
    }
    if values.is_empty() {
        return Err(at.error("an empty set permits nothing").remedy("list the values, or remove the key"));
    }
    Ok(values)
}

/// A kind before it inherits.
struct DeclaredKind<'a> {
    at: At<'a>,
    is_a: Option<(&'a str, At<'a>)>,
    own: Kind,
}

impl<'a> DeclaredKind<'a> {
    fn read(at: &At<'a>, taxonomy: &Taxonomy) -> Result<Self, CorpusError> {
        let fields = at.fields(&["abstract", "is_a", "identifier", "facets", "sections"])?;
        let is_a = fields.get("is_a").map(|at| Ok::<_, CorpusError>((at.text()?, at.clone()))).transpose()?;
        let mut own = Kind {
            is_abstract: fields.get("abstract").map(At::boolean).transpose()?.unwrap_or(false),
            ..Kind::default()
        };
        if let Some(at) = fields.get("identifier") {
            let fields = at.fields(&["scheme"])?;
            let at = fields.require("scheme")?;
            let name = at.text()?;
            known(at, "identifier scheme", name, &taxonomy.schemes)?;
            own.scheme = Some(name.to_owned());
        }
        if let Some(at) = fields.get("facets") {
            let fields = at.fields(&["require"])?;
            let at = fields.require("require")?;
            at.texts()?;
            for item in at.items()? {
                known(&item, "facet", item.text()?, &taxonomy.facets)?;
                own.facets.insert(item.text()?.to_owned());
            }
        }
        if let Some(at) = fields.get("sections") {
            let fields = at.fields(&["require"])?;
            own.sections = fields.require("require")?.texts()?.into_iter().map(str::to_owned).collect();
        }
        Ok(Self { at: at.clone(), is_a, own })
    }
}

fn resolve(name: &str, declared: &BTreeMap<&str, DeclaredKind<'_>>) -> Result<Kind, CorpusError> {
    let Some(start) = declared.get(name) else { return Ok(Kind::default()) };
    let mut kind = start.own.clone();
    let mut chain = vec![name];
    let mut last = start;
    while let Some((parent, at)) = &last.is_a {
        let Some(next) = declared.get(parent) else {
            let names = declared.keys().copied().collect::<Vec<_>>().join(", ");
            return Err(at
                .error(format!("unknown kind `{parent}`"))
                .remedy(format!("declare it, or name one that is declared: {names}")));
        };
        let circle = chain.contains(parent);
        chain.push(parent);
        if circle {
            return Err(start
                .at
                .error(format!("inherits in a circle: {}", chain.join(" -> ")))
                .remedy("remove one `is_a` of the circle"));
        }
        kind.scheme = kind.scheme.or_else(|| next.own.scheme.clone());
        kind.facets.extend(next.own.facets.iter().cloned());
        let own = kind.sections.iter().filter(|s| !next.own.sections.contains(s));
        kind.sections = next.own.sections.iter().chain(own).cloned().collect();
        kind.ancestors.push((*parent).to_owned());
        last = next;
    }
    Ok(kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: &str = "
facets:
  status: {role: state, required: true, values: [{value: draft, role: initial}, {value: ok, role: live}, {value: old, role: terminal-superseded}, {value: odd, role: paused}]}
  status_date: {role: state_entered, required: true, volatility: high}
  title: {role: scent}
  summary: {role: scent}
  level: {values: [low, 1.0]}
identifier_schemes:
  numbered: {pattern: '{namespace}-DR-{number}', namespace: WM, allocation: sequential}
  named: {pattern: '{namespace}-P-{slug}', namespace: WM, allocation: slug}
kinds:
  thing: {abstract: true, identifier: {scheme: numbered}, facets: {require: [title]}, sections: {require: [Context]}}
  decision: {is_a: thing, facets: {require: [level]}, sections: {require: [Decision, Context]}}
  ruling: {is_a: decision, identifier: {scheme: named}, sections: {require: [Ruling]}}
  note: {}
relations:
  settles: {family: governance, from: [thing], to: [decision]}
shelves:
  decisions: {path: docs/decisions/*.md, homogeneous: true, kind: decision}
  rulings: {path: docs/rulings/*.md, homogeneous: false, kind: thing}
";

    fn refused(text: &str) -> String {
        let error = Taxonomy::parse(text).unwrap_err();
        format!("{} | {}", error.message, error.remedy.unwrap_or_default())
    }

    #[test]
    fn a_kind_has_what_it_inherits_and_what_every_document_has() {
        let t = Taxonomy::parse(BASE).unwrap();
        let ruling = t.kind("ruling").unwrap();
        assert_eq!(ruling.ancestors, ["decision", "thing"]);
        assert_eq!(ruling.sections, ["Context", "Decision", "Ruling"]);
        let facets: Vec<_> = ruling.facets.iter().map(String::as_str).collect();
        assert_eq!(facets, ["level", "status", "status_date", "title"]);
        assert_eq!(t.scheme_of("ruling").unwrap().template(), "WM-P-{slug}");
        assert_eq!(t.scheme_of("decision").unwrap().template(), "WM-DR-{number}");
        assert!(t.scheme_of("note").is_none());
        assert!(t.is_a("ruling", "thing") && t.is_a("thing", "thing") && !t.is_a("thing", "ruling"));
        assert!(!ruling.is_abstract && t.kind("thing").unwrap().is_abstract);
    }

    #[test]
    fn the_state_its_roles_and_its_date_are_found_by_role() {
        let t = Taxonomy::parse(BASE).unwrap();
        assert_eq!(t.state().unwrap().0, "status");
        assert_eq!((t.entered(), t.initial_state()), (Some("status_date"), Some("draft")));
        assert_eq!(t.with_role(FacetRole::Scent).collect::<Vec<_>>(), ["summary", "title"]);
        for (state, role) in [
            ("draft", StateRole::Initial),
            ("ok", StateRole::Live),
            ("old", StateRole::Terminal),
            ("odd", StateRole::Unknown),
            ("none", StateRole::Unknown),
        ] {
            assert_eq!(t.state_role(state), role, "{state}");
        }
        assert_eq!(t.facet("level").unwrap().values[1].value, "1.0");
    }

    #[test]
    fn a_kind_stands_on_the_shelf_that_declares_it_or_on_one_that_may_hold_it() {
        let t = Taxonomy::parse(BASE).unwrap();
        assert_eq!(t.shelf_of_kind("decision").unwrap().0, "decisions");
        assert_eq!(t.shelf_of_kind("ruling").unwrap().0, "rulings");
        assert!(t.shelf_of_kind("note").is_none());
        assert_eq!(t.shelf_of("docs/decisions/a.md").unwrap().0, "decisions");
        assert_eq!(t.relation("settles").unwrap().from, BTreeSet::from(["thing".to_owned()]));
    }

    #[test]
    fn an_empty_taxonomy_declares_nothing() {
        assert!(Taxonomy::parse("").unwrap().kinds.is_empty());
    }

    #[test]
    fn what_is_not_declared_or_not_known_is_refused_with_line_and_remedy() {
        for (text, message, remedy) in [
            ("facet: {}\n", ":1: the file: unknown key `facet`", "it takes facets, identifier_schemes, kinds"),
            ("kinds:\n  a:\n    isa: b\n", ":3: kinds.a: unknown key `isa`", "it takes abstract, is_a"),
            ("kinds: {a: {is_a: b}}\n", "kinds.a.is_a: unknown kind `b`", "declared: a"),
            ("kinds: {a: {facets: {require: [x]}}}\n", "kinds.a.facets.require: unknown facet `x`", "declared: none"),
            ("kinds: {a: {identifier: {scheme: x}}}\n", "unknown identifier scheme `x`", "declare it"),
            ("kinds: {a: {sections: {need: [x]}}}\n", "kinds.a.sections: unknown key `need`", "it takes require"),
            ("kinds: {a: {is_a: b}, b: {is_a: c}, c: {is_a: b}}\n", "in a circle: a -> b -> c -> b", "remove one"),
            ("kinds: {a: {is_a: a}}\n", "in a circle: a -> a", "remove one"),
            ("kinds: {a: {}}\nrelations: {r: {family: f, from: [a], to: [z]}}\n", ":2: relations.r.to: unknown", ": a"),
            ("relations: {r: {from: [], to: []}}\n", "`family` is missing", "add `family:`"),
            ("shelves: {s: {path: a.md, homogeneous: true, kind: z}}\n", "shelves.s.kind: unknown kind `z`", "declare"),
            (
                "kinds: {a: {abstract: true}}\nshelves: {s: {path: a.md, homogeneous: true, kind: a}}\n",
                "abstract kind `a`",
                "homogeneous: false",
            ),
            ("facets: {a: {role: title}}\n", "expected `state`, `state_entered` or `scent`", ""),
            ("facets: {a: {role: state}, b: {role: state}}\n", "facets.b: `a` has the role `state` too", "one facet"),
            ("facets: {a: {values: []}}\n", "permits nothing", "list the values"),
            ("facets: {a: {values: [x, {value: x}]}}\n", "`x` stands twice", "keep one"),
            ("facets: {a: {values: [{value: x, rôle: y}]}}\n", "unknown key `rôle`", "it takes value, role"),
            ("facets: {a: {required: yes}}\n", "expected true or false, found `yes`", ""),
            ("kinds: [a]\n", "kinds: expected a mapping, found a list", ""),
            ("a: &x 1\n", ":1: anchors", ""),
        ] {
            let text = refused(text);
            assert!(text.starts_with(".headwater/taxonomy.yml:"), "{text}");
            assert!(text.contains(message) && text.contains(remedy), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_taxonomy_is_a_crash(
            key in "(facets|identifier_schemes|kinds|relations|shelves)",
            text in "[ -~\n]{0,120}",
        ) {
            let _ = Taxonomy::parse(&format!("{key}:\n  a: {text}\n"));
            let _ = Taxonomy::parse(&BASE.replacen("{", &text, 1));
        }
    }
}
