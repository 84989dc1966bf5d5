//! What of a host's network must be the old or the new one, exactly: links, addresses, routes, name
//! servers, and every connection profile with its secrets.

use keelson_testbed::Host;
use std::collections::{BTreeMap, BTreeSet};

/// A host's network, with the host's own address and whatever is random taken out of it, so that two
/// hosts in the same state have the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Snapshot {
    pub(crate) links: Vec<String>,
    pub(crate) addresses: Vec<String>,
    pub(crate) routes: Vec<String>,
    pub(crate) profiles: BTreeMap<String, Vec<String>>,
}

/// Settings of a profile that are random, or change by themselves.
const RANDOM: [&str; 2] = ["connection.uuid", "connection.timestamp"];

/// What a profile with keys has in it.
const KEYED: &str = "802-1x.eap:";

/// Keys are asked for on the bus: nmcli copies a profile first, and what it shows of a profile that
/// changes meanwhile may have none.
const ASK_KEYS: &str =
    "dbus-send --system --print-reply=literal --dest=org.freedesktop.NetworkManager";
const KEYS: &str = "org.freedesktop.NetworkManager.Settings.Connection.GetSecrets string:802-1x";

impl Snapshot {
    /// The network of a host now.
    pub(crate) fn of(host: &Host) -> Result<Self, String> {
        let run = |words: &str| host.run(words).map_err(|error| error.to_string());
        let own = host.address().to_string();
        let text = |shown: String| shown.replace(&own, "@");
        let mut profiles = BTreeMap::new();
        let known = run("nmcli --terse --fields DBUS-PATH,UUID,NAME connection show")?;
        for line in known.lines() {
            let words: Vec<&str> = line.splitn(3, ':').collect();
            let [path, uuid, name] = words[..] else {
                continue;
            };
            if name == "lo" {
                continue;
            }
            let shown = run(&format!("nmcli --terse connection show {uuid}"))?;
            let mut settings = settings(&text(shown));
            if settings.iter().any(|line| line.starts_with(KEYED)) {
                settings.extend(keys(&run(&format!("{ASK_KEYS} {path} {KEYS}"))?));
            }
            profiles.insert(name.to_owned(), settings);
        }
        Ok(Self {
            links: lines(&text(run("ip -o link show")?), link),
            addresses: lines(&text(run("ip -o -4 addr show")?), address),
            routes: lines(&text(run("ip route show")?), |line| Some(line.to_owned())),
            profiles,
        })
    }
}

impl Snapshot {
    /// What is here and was not before, and what was before and is not here; nothing where the two are
    /// the same.
    pub(crate) fn differences(&self, before: &Self) -> Vec<String> {
        let (now, then) = (self.lines(), before.lines());
        let new = now.difference(&then).map(|it| format!("+ {it}"));
        let gone = then.difference(&now).map(|it| format!("- {it}"));
        new.chain(gone).collect()
    }

    fn lines(&self) -> BTreeSet<String> {
        let plain = [
            ("link", &self.links),
            ("address", &self.addresses),
            ("route", &self.routes),
        ];
        let plain = plain
            .into_iter()
            .flat_map(|(what, lines)| lines.iter().map(move |line| format!("{what} {line}")));
        let profiles = self.profiles.iter().flat_map(|(name, lines)| {
            lines
                .iter()
                .map(move |line| format!("profile {name} {line}"))
        });
        plain.chain(profiles).collect()
    }
}

fn lines(shown: &str, of: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let mut lines: Vec<String> = shown.lines().map(str::trim).filter_map(of).collect();
    lines.sort();
    lines
}

/// What a profile is set to; what of it is active now is no setting.
fn settings(shown: &str) -> Vec<String> {
    lines(shown, |line| {
        let (key, _) = line.split_once(':')?;
        let set = key.starts_with(|first: char| first.is_ascii_lowercase() || first == '8');
        let random = RANDOM.contains(&key);
        // A port names what it is a port of by a name that is random.
        let words = match key {
            "connection.master" => key.to_owned(),
            _ => line.to_owned(),
        };
        (set && !random).then_some(words)
    })
}

/// The keys in an answer of the bus, whatever their order.
fn keys(answer: &str) -> Vec<String> {
    lines(answer, |line| {
        line.contains("variant").then(|| format!("key {line}"))
    })
}

/// Which link, what else it is called, what it is a port of, and how large its packets are.
fn link(line: &str) -> Option<String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let after = |key: &str| {
        let at = words.iter().position(|it| *it == key)?;
        words.get(at + 1).copied()
    };
    let name = words.get(1)?.split(['@', ':']).next()?;
    let master = after("master").unwrap_or("-");
    let known = after("altname").map(|other| format!(" ({other})"));
    let known = known.unwrap_or_default();
    Some(format!(
        "{name}{known} mtu {} under {master}",
        after("mtu")?
    ))
}

/// Who has which address.
fn address(line: &str) -> Option<String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    Some(format!("{} {}", words.get(1)?, words.get(3)?))
}
