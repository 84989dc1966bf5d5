//! Points at which a test may kill the process: before and after everything that is made durable.
//!
//! `KEELSON_FAIL_POINT=store-submit-after:2` aborts the process the second time it comes past that
//! point, as a power cut would: nothing is unwound and nothing is flushed. Without the variable a
//! point costs one look at an empty cell. Every point is in [`Point::ALL`], so that a test can go
//! through all of them.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The variable that names a point and how often it is passed before the process dies there.
pub const VARIABLE: &str = "KEELSON_FAIL_POINT";

macro_rules! points {
    ($($name:ident => $word:literal,)*) => {
        /// A place where something is about to be durable, or has just become so.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs, reason = "the words say it")]
        pub enum Point { $($name,)* }

        impl Point {
            /// Every point there is.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The point's word in the variable.
            pub const fn word(self) -> &'static str {
                match self { $(Self::$name => $word,)* }
            }
        }
    };
}

points! {
    MigrateBefore => "store-migrate-before",
    MigrateAfter => "store-migrate-after",
    PrepareBefore => "store-prepare-before",
    PrepareAfter => "store-prepare-after",
    SubmitBefore => "store-submit-before",
    SubmitAfter => "store-submit-after",
    FinishBefore => "store-finish-before",
    FinishAfter => "store-finish-after",
    DeleteBefore => "store-delete-before",
    DeleteAfter => "store-delete-after",
    PurgeBefore => "store-purge-before",
    PurgeAfter => "store-purge-after",
    PruneBefore => "store-prune-before",
    PruneAfter => "store-prune-after",
    BeatBefore => "store-beat-before",
    BeatAfter => "store-beat-after",
    RenameBefore => "file-rename-before",
    RenameAfter => "file-rename-after",
    RemoveBefore => "file-remove-before",
    RemoveAfter => "file-remove-after",
    WipeBefore => "data-wipe-before",
    WipeAfter => "data-wipe-after",
    UnpackBefore => "snapshot-unpack-before",
    UnpackAfter => "snapshot-unpack-after",
    AsideAfter => "snapshot-aside-after",
    PlaceBefore => "snapshot-place-before",
    PlaceAfter => "snapshot-place-after",
}

struct Planned {
    word: String,
    passes: AtomicU64,
}

/// Dies here, if this is the point and the pass the variable names.
pub fn point(point: Point) {
    static PLANNED: OnceLock<Option<Planned>> = OnceLock::new();
    let planned = PLANNED.get_or_init(|| parse(&std::env::var(VARIABLE).ok()?));
    let Some(planned) = planned.as_ref().filter(|it| it.word == point.word()) else {
        return;
    };
    if planned.passes.fetch_sub(1, Ordering::Relaxed) == 1 {
        eprintln!("{VARIABLE}: the process dies at {}", point.word());
        std::process::abort();
    }
}

fn parse(text: &str) -> Option<Planned> {
    let (word, passes) = text.split_once(':').unwrap_or((text, "1"));
    Some(Planned {
        word: word.to_owned(),
        passes: AtomicU64::new(passes.parse().ok().filter(|it| *it > 0)?),
    })
}
