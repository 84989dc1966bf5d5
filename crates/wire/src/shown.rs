//! What `Debug` shows of JSON whose values may be secret: the names, and nothing else.

use std::fmt;

use crate::Object;

/// Shows an object's names.
pub(crate) struct Names<'a>(pub(crate) &'a Object);

impl fmt::Debug for Names<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// Shows only that there is something.
pub(crate) struct Present<'a, T>(pub(crate) &'a Option<T>);

impl<T> fmt::Debug for Present<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() {
            "(not shown)"
        } else {
            "none"
        })
    }
}
