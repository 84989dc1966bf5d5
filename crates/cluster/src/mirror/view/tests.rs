//! The laws of the view: what counts, what is told, in every order.

use super::*;
use proptest::prelude::*;

fn key(name: &str) -> Key {
    Key {
        namespace: "chain".to_owned(),
        name: name.to_owned(),
    }
}

/// A state of the object that is there first.
fn at(version: &str) -> State {
    State {
        version: version.to_owned(),
        uid: "first".to_owned(),
        leaving: false,
    }
}

fn told<V: Clone>(change: Option<Change<V>>) -> Option<(Option<V>, Option<V>)> {
    let own = |value: Option<Arc<V>>| value.as_deref().cloned();
    change.map(|change| (own(change.before), own(change.after)))
}

#[test]
fn an_older_event_does_not_undo_a_write_of_our_own() {
    let mut view = View::default();
    assert_eq!(
        told(view.event(key("a"), &at("5"), Some(5), true)),
        Some((None, Some(5)))
    );
    view.note(key("a"), "9", 9);
    assert_eq!(told(view.event(key("a"), &at("7"), Some(7), true)), None);
    assert_eq!(view.get(&key("a")).as_deref(), Some(&9));
    // The event of the write itself is told of, with what was told before it.
    assert_eq!(
        told(view.event(key("a"), &at("9"), Some(9), true)),
        Some((Some(5), Some(9)))
    );
    assert_eq!(
        told(view.event(key("a"), &at("11"), Some(11), true)),
        Some((Some(9), Some(11)))
    );
    view.note(key("a"), "9", 9);
    assert_eq!(
        view.get(&key("a")).as_deref(),
        Some(&11),
        "an answer that comes late"
    );
}

#[test]
fn versions_are_numbers_and_what_is_none_gives_way_to_the_later_arrival() {
    let mut view = View::default();
    view.note(key("a"), "10", 10);
    view.event(key("a"), &at("9"), Some(9), true);
    assert_eq!(view.get(&key("a")).as_deref(), Some(&10));
    view.event(key("a"), &at("odd"), Some(1), true);
    assert_eq!(view.get(&key("a")).as_deref(), Some(&1));
    view.note(key("a"), "2", 2);
    assert_eq!(view.get(&key("a")).as_deref(), Some(&2));
}

#[test]
fn the_answer_to_a_write_does_not_bring_back_what_was_deleted_since() {
    let mut view = View::default();
    view.event(key("a"), &at("5"), Some(5), true);
    assert_eq!(
        told(view.event(key("a"), &at("8"), None, false)),
        Some((Some(5), None))
    );
    view.note(key("a"), "7", 7);
    assert_eq!(view.get(&key("a")), None);
    view.note(key("a"), "9", 9);
    assert_eq!(view.get(&key("a")).as_deref(), Some(&9), "made anew");
    view.reached("12");
    view.note(key("b"), "11", 11);
    assert_eq!(view.get(&key("b")), None);
}

#[test]
fn what_we_deleted_is_not_brought_back_by_a_state_of_before() {
    let mut view = View::default();
    view.event(key("a"), &at("5"), Some(5), true);
    view.gone(&key("a"), "first");
    assert_eq!((view.get(&key("a")), view.len()), (None, 0));
    // The one we had seen, and one that somebody wrote before we deleted it.
    assert_eq!(told(view.event(key("a"), &at("5"), Some(5), true)), None);
    assert_eq!(told(view.event(key("a"), &at("6"), Some(6), true)), None);
    assert_eq!(view.get(&key("a")), None);
    assert_eq!(
        told(view.event(key("a"), &at("7"), None, false)),
        Some((Some(5), None))
    );
    // So does no list that was taken before.
    view.event(key("b"), &at("8"), Some(8), true);
    view.gone(&key("b"), "first");
    view.list();
    assert_eq!(told(view.event(key("b"), &at("9"), Some(9), true)), None);
    assert!(view.listed("9").is_empty());
    assert_eq!(view.get(&key("b")), None);
    assert_eq!(
        told(view.event(key("b"), &at("10"), None, false)),
        Some((Some(8), None))
    );
}

#[test]
fn another_object_of_the_name_and_one_that_is_held_are_there_after_a_delete() {
    let mut view = View::default();
    let another = State {
        uid: "second".to_owned(),
        ..at("8")
    };
    let held = State {
        leaving: true,
        ..at("8")
    };
    for (name, comes) in [("a", another), ("b", held)] {
        view.event(key(name), &at("5"), Some(5), true);
        view.gone(&key(name), "first");
        assert_eq!(
            told(view.event(key(name), &comes, Some(8), true)),
            Some((Some(5), Some(8)))
        );
        assert_eq!(view.get(&key(name)).as_deref(), Some(&8));
    }
}

#[test]
fn what_a_list_does_not_mention_is_gone_but_for_what_was_written_since() {
    let mut view = View::default();
    view.event(key("a"), &at("1"), Some(1), true);
    view.event(key("b"), &at("2"), Some(2), true);
    view.list();
    view.event(key("b"), &at("2"), Some(2), true);
    view.note(key("c"), "9", 9);
    let vanished = view.listed("7");
    let names: Vec<_> = vanished.iter().map(|it| it.key.name.as_str()).collect();
    assert_eq!(names, ["a"]);
    assert_eq!(view.get(&key("c")).as_deref(), Some(&9));
    assert_eq!(view.len(), 2);
    view.list();
    assert_eq!(view.listed("12").len(), 1, "b, and nobody was told of c");
    assert_eq!(view.len(), 0);
}

#[test]
fn what_is_not_worth_keeping_is_told_of_once() {
    let mut view = View::default();
    assert_eq!(
        told(view.event(key("a"), &at("1"), None::<u64>, true)),
        None
    );
    view.event(key("a"), &at("2"), Some(2), true);
    assert_eq!(
        told(view.event(key("a"), &at("3"), None, true)),
        Some((Some(2), None))
    );
    assert_eq!(told(view.event(key("a"), &at("4"), None, true)), None);
}

/// What happens to the objects, and when it is heard of.
#[derive(Clone, Debug)]
enum Move {
    /// An object is written: by us, then its answer comes some moves later, or by others.
    Write { name: u8, ours: Option<u8> },
    /// An object is deleted.
    Delete { name: u8 },
    /// The watch says the next thing.
    Hear,
    /// The watch begins anew, with a list.
    List,
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let write = (0..3_u8, proptest::option::of(0..6_u8));
    let one = prop_oneof![
        3 => write.prop_map(|(name, ours)| Move::Write { name, ours }),
        1 => (0..3_u8).prop_map(|name| Move::Delete { name }),
        4 => Just(Move::Hear),
        1 => Just(Move::List),
    ];
    proptest::collection::vec(one, 1..60)
}

/// A server, a watch that lags behind it, answers on their way, and what was told.
#[derive(Default)]
struct World {
    version: u64,
    truth: HashMap<String, u64>,
    unheard: Vec<(String, u64, bool)>,
    answers: Vec<(u8, String, u64)>,
    view: View<u64>,
    told: HashMap<String, u64>,
}

impl World {
    fn play(&mut self, step: Move) {
        match step {
            Move::Write { name, ours } => {
                let name = name.to_string();
                self.version += 1;
                self.truth.insert(name.clone(), self.version);
                self.unheard.push((name.clone(), self.version, true));
                if let Some(after) = ours {
                    self.answers.push((after, name, self.version));
                }
            }
            Move::Delete { name } => {
                let name = name.to_string();
                if self.truth.remove(&name).is_some() {
                    self.version += 1;
                    self.unheard.push((name, self.version, false));
                }
            }
            Move::Hear if self.unheard.is_empty() => {}
            Move::Hear => {
                let (name, version, exists) = self.unheard.remove(0);
                self.hear(&name, version, exists);
            }
            Move::List => self.list(),
        }
        self.answer();
    }

    fn hear(&mut self, name: &str, version: u64, exists: bool) {
        let value = exists.then_some(version);
        let change = self
            .view
            .event(key(name), &at(&version.to_string()), value, exists);
        self.tell(change);
    }

    fn list(&mut self) {
        self.unheard.clear();
        self.view.list();
        let mut objects: Vec<_> = self.truth.clone().into_iter().collect();
        objects.sort();
        for (name, version) in objects {
            self.hear(&name, version, true);
        }
        for change in self.view.listed(&self.version.to_string()) {
            self.tell(Some(change));
        }
    }

    /// Answers whose time has come.
    fn answer(&mut self) {
        let mut later = Vec::new();
        for (after, name, version) in std::mem::take(&mut self.answers) {
            match after {
                0 => {
                    let before = self.view.get(&key(&name)).map(|known| *known);
                    self.view.note(key(&name), &version.to_string(), version);
                    let now = self.view.get(&key(&name)).map(|known| *known);
                    assert!(now >= before, "a write of our own went back in time");
                }
                after => later.push((after - 1, name, version)),
            }
        }
        self.answers = later;
    }

    fn tell(&mut self, change: Option<Change<u64>>) {
        let Some(change) = change else { return };
        let name = change.key.name;
        let before = self.told.get(&name).copied();
        assert_eq!(change.before.map(|it| *it), before, "what was told before");
        match change.after {
            Some(after) => self.told.insert(name, *after),
            None => self.told.remove(&name),
        };
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn whatever_comes_in_whichever_order_the_view_ends_with_the_truth(moves in moves()) {
        let mut world = World::default();
        for step in moves {
            world.play(step);
        }
        while !world.unheard.is_empty() || !world.answers.is_empty() {
            world.play(Move::Hear);
        }
        let known: HashMap<String, u64> = world
            .view
            .all()
            .into_iter()
            .map(|(key, version)| (key.name, *version))
            .collect();
        prop_assert_eq!(&known, &world.truth);
        prop_assert_eq!(&world.told, &world.truth);
    }
}
