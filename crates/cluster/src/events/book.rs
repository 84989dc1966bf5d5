//! What was said lately, and so whether it is said again. Pure: time is told.

use k8s_openapi::api::core::v1::ObjectReference;
use keelson_api::event::Severity;
use std::collections::HashMap;
use std::time::Duration;
use tokio::time::Instant;

/// For how long the same counts as the same, from the last time.
const SERIES: Duration = Duration::from_secs(600);
/// How many events are remembered. Beyond that the same may become a new event.
const REMEMBERED: usize = 10_000;
/// Where events about objects without a namespace are kept.
const DEFAULT_NAMESPACE: &str = "default";

/// Something said about an object.
#[derive(Clone, Debug)]
pub(super) struct Saying {
    pub(super) about: ObjectReference,
    pub(super) severity: Severity,
    pub(super) reason: String,
    pub(super) note: String,
}

impl Saying {
    pub(super) fn name(&self) -> &str {
        self.about.name.as_deref().unwrap_or_default()
    }

    /// The namespace of the event: that of the object.
    pub(super) fn namespace(&self) -> &str {
        match self.about.namespace.as_deref() {
            None | Some("") => DEFAULT_NAMESPACE,
            Some(namespace) => namespace,
        }
    }

    /// What makes it the same: everything a reader sees of it.
    fn same(&self) -> Same {
        let about = &self.about;
        Same {
            kind: about.kind.clone().unwrap_or_default(),
            object: format!("{}/{}", self.namespace(), self.name()),
            uid: about.uid.clone().unwrap_or_default(),
            severity: self.severity,
            reason: self.reason.clone(),
            note: self.note.clone(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Same {
    kind: String,
    object: String,
    uid: String,
    severity: Severity,
    reason: String,
    note: String,
}

/// An event that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Its name.
    pub(super) event: String,
    /// How often it was said.
    pub(super) count: i32,
    last: Instant,
}

/// The events written lately.
#[derive(Default)]
pub(super) struct Book {
    entries: HashMap<Same, Entry>,
}

impl Book {
    /// The event that this repeats, counted once more; none where it is a new one.
    pub(super) fn again(&mut self, saying: &Saying, now: Instant) -> Option<Entry> {
        let entry = self.entries.get_mut(&saying.same())?;
        if is_over(entry, now) {
            return None;
        }
        entry.count = entry.count.saturating_add(1);
        entry.last = now;
        Some(entry.clone())
    }

    /// A new event was written under this name.
    pub(super) fn wrote(&mut self, saying: &Saying, event: String, now: Instant) {
        if self.entries.len() >= REMEMBERED {
            self.entries.retain(|_, entry| !is_over(entry, now));
        }
        if self.entries.len() >= REMEMBERED {
            self.entries.clear();
        }
        let entry = Entry {
            event,
            count: 1,
            last: now,
        };
        self.entries.insert(saying.same(), entry);
    }
}

fn is_over(entry: &Entry, now: Instant) -> bool {
    now.saturating_duration_since(entry.last) >= SERIES
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saying(note: &str) -> Saying {
        Saying {
            about: ObjectReference {
                name: Some("atlas".to_owned()),
                ..ObjectReference::default()
            },
            severity: Severity::Normal,
            reason: "PlanStarted".to_owned(),
            note: note.to_owned(),
        }
    }

    #[test]
    fn the_same_within_ten_minutes_is_counted_and_later_it_is_new() {
        let (mut book, start) = (Book::default(), Instant::now());
        let said = saying("image");
        assert_eq!(book.again(&said, start), None);
        book.wrote(&said, "first".to_owned(), start);
        let nearly = start + SERIES - Duration::from_secs(1);
        let counted = book.again(&said, nearly).expect("a count");
        assert_eq!((counted.event.as_str(), counted.count), ("first", 2));
        // The series goes on from the last time, not from the first.
        assert_eq!(
            book.again(&said, nearly + SERIES / 2).map(|it| it.count),
            Some(3)
        );
        assert_eq!(book.again(&said, nearly + SERIES * 2), None);
    }

    #[test]
    fn another_note_or_another_object_is_a_new_event() {
        let (mut book, now) = (Book::default(), Instant::now());
        book.wrote(&saying("image"), "first".to_owned(), now);
        assert_eq!(book.again(&saying("image, TLS"), now), None);
        let mut other = saying("image");
        other.about.uid = Some("another".to_owned());
        assert_eq!(book.again(&other, now), None);
    }

    #[test]
    fn the_book_does_not_grow_without_end() {
        let (mut book, now) = (Book::default(), Instant::now());
        for number in 0..=REMEMBERED {
            book.wrote(&saying(&number.to_string()), "event".to_owned(), now);
        }
        assert!(book.entries.len() <= REMEMBERED);
        assert!(book.again(&saying(&REMEMBERED.to_string()), now).is_some());
    }
}
