//! What a corpus is: a directory tree declared by `.headwater/taxonomy.yml`.
//!
//! - [`taxonomy`]: facets, kinds and relations, read and resolved; [`scheme`]: identifiers; [`shelf`]: where documents
//!   stand; [`declared`]: files whose keys are a closed set.
//! - [`lock`]: the canonical resolved form and its digest.
//! - [`document`]: one file: its front matter, identity, kind and content digest.
//! - [`tree`]: files below a root that is never left; [`census`]: the walk over them, in parallel, into a [`Corpus`].
//! - [`rules`]: every rule of `headwater check`; [`links`]: what a page links and what can be linked in it.
//!
//! Bodies are not kept: a rule or a verb that needs one reads it through [`Corpus::text`], so that memory does not
//! grow with the bytes of the documents.

pub mod census;
pub mod declared;
pub mod document;
pub mod links;
pub mod lock;
pub mod rules;
pub mod scheme;
pub mod shelf;
pub mod taxonomy;
pub mod tree;

#[cfg(test)]
pub(crate) mod testing;

pub use census::{Corpus, CorpusError, Target};
pub use document::{Class, Document};
pub use taxonomy::Taxonomy;

/// Where a corpus declares itself, relative to its root.
pub const TAXONOMY: &str = ".headwater/taxonomy.yml";
/// Where the resolved form stands, relative to the root.
pub const LOCK: &str = ".headwater/taxonomy.lock";
