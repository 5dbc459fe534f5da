//! What a transcript needs to be a document of the corpus.

use crate::corpus::Corpus;
use headwater_contract::plan::TranscriptForm;
use std::collections::BTreeMap;

/// The kind of a transcript.
const KIND: &str = "probe_transcript";

/// The form of a transcript, where the taxonomy has the kind `probe_transcript`, a scheme and a shelf for it.
#[must_use]
pub fn of(corpus: &Corpus) -> Option<TranscriptForm> {
    let taxonomy = &corpus.taxonomy;
    let kind = taxonomy.kind(KIND)?;
    let scheme = taxonomy.scheme_of(KIND)?;
    let (_, shelf) = taxonomy.shelf_of_kind(KIND)?;
    let state = taxonomy.state().map(|(name, _)| name.to_owned());
    let initial = taxonomy.initial_state().map(str::to_owned);
    Some(TranscriptForm {
        shelf: shelf.directory().to_owned(),
        identifier: scheme.template(),
        number: scheme.next_number(corpus.documents.iter().filter_map(|d| d.id.as_deref())),
        facets: state.zip(initial).into_iter().collect::<BTreeMap<_, _>>(),
        entered: taxonomy.entered().map(str::to_owned),
        required: kind.facets.iter().cloned().collect(),
        names_kind: !shelf.homogeneous,
    })
}
