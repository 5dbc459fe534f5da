//! Every reason for which a planned run does not start: its stable id and its one line, in one table.
//!
//! A plan names the first reason in the order of the table: first what concerns the run as a whole, up to the count of
//! its sessions; then, probe by probe in byte order of the identifier, what the probes declare; last the cost.

use headwater_contract::plan::Refusal;

macro_rules! reasons {
    ($($variant:ident, $id:literal, $summary:literal;)+) => {
        /// A reason for which a run does not start.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Reason { $(#[doc = $summary] $variant),+ }

        /// Every reason, in the order in which a plan looks for it.
        pub const REFUSALS: &[Reason] = &[$(Reason::$variant),+];

        impl Reason {
            /// The stable id, as a plan in JSON carries it and `docs/` lists it.
            #[must_use]
            pub const fn id(self) -> &'static str {
                match self { $(Self::$variant => $id),+ }
            }

            /// The reason in one line.
            #[must_use]
            pub const fn summary(self) -> &'static str {
                match self { $(Self::$variant => $summary),+ }
            }
        }
    };
}

reasons! {
    TierUndeclared, "tier-undeclared", "the policy declares no envelope for the tier";
    NoProbe, "no-probe", "the corpus has no probe";
    ProbeNoIdentifier, "probe-no-identifier", "a probe has no identifier, or one that is not one line of text";
    IdentifierShared, "probe-identifier-shared", "two probes have the same identifier";
    ExcludedUnknown, "excluded-unknown", "an excluded probe is not in the corpus";
    CategoryMissing, "category-missing", "a probe that is not excluded has no category";
    CategoryUnknown, "category-unknown", "a probe that is not excluded has a category outside the closed set";
    EmptySelection, "empty-selection", "category and exclusions leave no probe";
    RepetitionsZero, "repetitions-zero", "the run has no repetition";
    RepetitionsAbove, "repetitions-above", "more repetitions are asked for than the tier declares";
    ArmNotRun, "arm-not-run", "the tier does not run the arm";
    ArmUnpaired, "arm-unpaired", "a tier that compares present with absent is narrowed to one arm";
    CountOverflow, "count-overflow", "sessions or cost are beyond what 64 bits can count";
    ExpectationMissing, "expectation-missing", "a probe has no expectation";
    ExpectationUnknown, "expectation-unknown", "a probe has an expectation outside the closed set";
    TaskMissing, "task-missing", "a probe has no task";
    OracleMissing, "oracle-missing", "a probe expects `patched` and names no oracle";
    OracleUnknown, "oracle-unknown", "a probe expects `patched` and its oracle is no rule of this engine";
    NoClosedSet, "no-closed-set", "a probe expects `answered` and declares no closed set of answers";
    ExpectedNotProper, "expected-not-proper", "the expected answers are not a proper, non-empty part of the closed set";
    AnswersUnused, "answers-unused", "a probe declares answers and its expectation does not use them";
    TargetUnsafe, "target-unsafe", "a probe examines what is neither an identifier nor a path inside the corpus";
    NoDocument, "no-document", "a probe expects `opened`, `not_opened` or `cited` and names no document for it";
    ExaminesInstrument, "examines-instrument", "a probe examines a path of the instrument, which no arm has";
    ExaminesAblation, "examines-ablation", "a probe examines a path of the ablation, which the absent arm lacks";
    CostAboveCeiling, "cost-above-ceiling", "the projected cost is above the ceiling of the tier";
}

impl Reason {
    /// The refusal with this reason. The message names the probe, path or number, and the remedy.
    #[must_use]
    pub fn refusal(self, message: impl Into<String>) -> Refusal {
        Refusal { id: self.id().to_owned(), message: message.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_refusal_has_an_id_of_its_own_in_kebab_case_and_one_line() {
        let ids: BTreeSet<_> = REFUSALS.iter().map(|r| r.id()).collect();
        assert_eq!(ids.len(), REFUSALS.len());
        for reason in REFUSALS {
            assert!(reason.id().bytes().all(|b| b.is_ascii_lowercase() || b == b'-'), "{}", reason.id());
            assert!(!reason.summary().is_empty() && !reason.summary().contains('\n'));
        }
    }
}
