//! Connection profiles: every one of them as settings, secrets included, and back again.
//!
//! A checkpoint brings back the profiles of devices; it loses inactive ones and keys. So all of them
//! are written down before a change and made those again when it is undone. Profiles NetworkManager
//! makes up by itself, for devices others configured, are nobody's and are left out.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use futures::StreamExt;
use futures::stream::iter;
use keelson_api::policy::State;
use serde_json::Value;
use zbus::zvariant::{ObjectPath, OwnedObjectPath, OwnedValue};

use super::typed::typed;
use super::{CALL, NAME, NetworkManager, PATH, Trouble};
use crate::handler::journal::Profile;
use crate::handler::profiles::{Edit, edits, settled};

const SETTINGS_PATH: &str = "/org/freedesktop/NetworkManager/Settings";
const SETTINGS: &str = "org.freedesktop.NetworkManager.Settings";
const CONNECTION: &str = "org.freedesktop.NetworkManager.Settings.Connection";
const ACTIVE: &str = "org.freedesktop.NetworkManager.Connection.Active";
const DEVICE: &str = "org.freedesktop.NetworkManager.Device";

/// Flags of profiles that are made up, or end with their device.
const MADE_UP: u32 = 0x2 | 0x4 | 0x8;

/// The flag of a profile that is in memory alone.
const UNSAVED: u32 = 0x1;

/// How a profile is written: to disk or to memory, without activating or changing any device.
const TO_DISK: u32 = 0x1;
const IN_MEMORY: u32 = 0x2;
const BLOCK_AUTOCONNECT: u32 = 0x20;
const NO_REAPPLY: u32 = 0x40;

/// State of a connection that is up.
const ACTIVATED: u32 = 2;

/// How many questions are asked at a time. A system bus keeps about a hundred questions of one program open.
const AT_ONCE: usize = 16;

/// How long a connection may take to be up again.
const UP: Duration = Duration::from_secs(45);

/// Settings that may have secrets in them, which are only told to those who ask.
const SECRET: [&str; 9] = [
    "802-1x",
    "802-11-wireless-security",
    "adsl",
    "cdma",
    "gsm",
    "macsec",
    "pppoe",
    "vpn",
    "wireguard",
];

type Settings = HashMap<String, HashMap<String, OwnedValue>>;

/// A profile and where it is on the bus.
struct Found {
    path: OwnedObjectPath,
    profile: Profile,
}

impl NetworkManager {
    /// Every connection profile, sorted by uuid.
    pub async fn profiles(&self) -> Result<Vec<Profile>, Trouble> {
        let found = self.found().await?;
        Ok(found.into_values().map(|it| it.profile).collect())
    }

    /// Makes the profiles those again. What a device was connected by is up before another is deleted.
    pub async fn restore(&self, before: &[Profile]) -> Result<(), Trouble> {
        let now = self.found().await?;
        let known: Vec<Profile> = now.values().map(|it| it.profile.clone()).collect();
        let mut paths: BTreeMap<String, OwnedObjectPath> = BTreeMap::new();
        paths.extend(now.into_iter().map(|(uuid, it)| (uuid, it.path)));
        let edits = edits(before, &known);
        for edit in &edits {
            match edit {
                Edit::Add(profile) => {
                    let path = self.add(profile).await?;
                    paths.insert(profile.uuid.clone(), path);
                }
                Edit::Change(profile) => {
                    if let Some(path) = paths.get(&profile.uuid) {
                        self.update(path, profile).await?;
                    }
                }
                Edit::Activate { uuid, device } => {
                    // A device that cannot be connected now, because a cable is out, is no reason to leave
                    // the rest as it is.
                    if let Some(path) = paths.get(uuid)
                        && let Err(trouble) = self.activate(path, device).await
                    {
                        tracing::warn!(device, "{trouble}");
                    }
                }
                Edit::Delete { uuid } => {
                    if let Some(path) = paths.get(uuid) {
                        let asked = (path.as_str(), CONNECTION, "Delete", &());
                        self.call::<_, ()>("deleting a profile", CALL, asked)
                            .await?;
                    }
                }
            }
        }
        Ok(())
    }

    async fn found(&self) -> Result<BTreeMap<String, Found>, Trouble> {
        let asked = (SETTINGS_PATH, SETTINGS, "ListConnections", &());
        let paths: Vec<OwnedObjectPath> = self.call("listing profiles", CALL, asked).await?;
        let told = paths
            .into_iter()
            .map(async |path| Ok((self.told(&path).await?, path)));
        let told = at_once(told);
        let (active, told) = tokio::try_join!(self.active(), told)?;
        let mut found = BTreeMap::new();
        for (told, path) in told {
            let Some((flags, settings)) = told else {
                continue;
            };
            let uuid = text(&settings, "connection", "uuid");
            let profile = Profile {
                uuid: uuid.clone(),
                settings: settled(written(&settings)?),
                active: active.get(path.as_str()).cloned(),
                in_memory: flags & UNSAVED != 0,
            };
            found.insert(uuid, Found { path, profile });
        }
        Ok(found)
    }

    /// Flags and settings of a profile; none of one that is made up.
    async fn told(&self, path: &OwnedObjectPath) -> Result<Option<(u32, Settings)>, Trouble> {
        let flags: u32 = self.property(path.as_str(), CONNECTION, "Flags").await?;
        match flags & MADE_UP {
            0 => Ok(Some((flags, self.settings(path).await?))),
            _ => Ok(None),
        }
    }

    /// Settings of a profile, with every secret NetworkManager itself keeps. A profile whose secrets
    /// cannot be told now is not written down without them: going back would lose them.
    async fn settings(&self, path: &OwnedObjectPath) -> Result<Settings, Trouble> {
        let asked = (path.as_str(), CONNECTION, "GetSettings", &());
        let mut settings: Settings = self.call("reading a profile", CALL, asked).await?;
        for name in SECRET {
            if !settings.contains_key(name) {
                continue;
            }
            let asked = (path.as_str(), CONNECTION, "GetSecrets", &(name,));
            let secrets: Settings = match self.call("reading secrets", CALL, asked).await {
                Ok(secrets) => secrets,
                Err(error) if error.is_without_secrets() => continue,
                Err(error) => return Err(error),
            };
            for (name, values) in secrets {
                settings.entry(name).or_default().extend(values);
            }
        }
        Ok(settings)
    }

    /// The device each profile is active on, by the profile's path.
    async fn active(&self) -> Result<HashMap<String, String>, Trouble> {
        let all: Vec<OwnedObjectPath> = self.property(PATH, NAME, "ActiveConnections").await?;
        let active = at_once(all.iter().map(|path| self.active_on(path))).await?;
        Ok(active.into_iter().flatten().collect())
    }

    async fn active_on(&self, path: &str) -> Result<Option<(String, String)>, Trouble> {
        let devices: Vec<OwnedObjectPath> = self.property(path, ACTIVE, "Devices").await?;
        let Some(device) = devices.first() else {
            return Ok(None);
        };
        let profile = self.property::<OwnedObjectPath>(path, ACTIVE, "Connection");
        let name = self.property::<String>(device.as_str(), DEVICE, "Interface");
        let (profile, name) = tokio::try_join!(profile, name)?;
        Ok(Some((profile.to_string(), name)))
    }

    async fn add(&self, profile: &Profile) -> Result<OwnedObjectPath, Trouble> {
        let settings = read(&profile.settings)?;
        let none = HashMap::<String, OwnedValue>::new();
        let arguments = (settings, place(profile) | BLOCK_AUTOCONNECT, none);
        let asked = (SETTINGS_PATH, SETTINGS, "AddConnection2", &arguments);
        let (path, _): (OwnedObjectPath, HashMap<String, OwnedValue>) =
            self.call("adding a profile again", CALL, asked).await?;
        Ok(path)
    }

    async fn update(&self, path: &OwnedObjectPath, profile: &Profile) -> Result<(), Trouble> {
        let settings = read(&profile.settings)?;
        let none = HashMap::<String, OwnedValue>::new();
        let how = place(profile) | BLOCK_AUTOCONNECT | NO_REAPPLY;
        let arguments = (settings, how, none);
        let asked = (path.as_str(), CONNECTION, "Update2", &arguments);
        let _: HashMap<String, OwnedValue> = self
            .call("making a profile what it was", CALL, asked)
            .await?;
        Ok(())
    }

    /// Has a device connected by a profile, and waits until it is.
    async fn activate(&self, profile: &OwnedObjectPath, device: &str) -> Result<(), Trouble> {
        let asked = (PATH, NAME, "GetDeviceByIpIface", &(device,));
        let device: OwnedObjectPath = match self.call("finding a device", CALL, asked).await {
            Ok(device) => device,
            // It went with the change, or the cable with it: nothing to connect.
            Err(Trouble::Refused { .. }) => return Ok(()),
            Err(error) => return Err(error),
        };
        let arguments = (profile, &device, ObjectPath::default());
        let asked = (PATH, NAME, "ActivateConnection", &arguments);
        let active: OwnedObjectPath = self.call("activating a profile", CALL, asked).await?;
        let doing = "waiting for a profile to be active";
        let up = async {
            while self
                .property::<u32>(active.as_str(), ACTIVE, "State")
                .await?
                != ACTIVATED
            {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            Ok(())
        };
        match tokio::time::timeout(UP, up).await {
            Ok(up) => up,
            Err(_) => Err(Trouble::Deadline { doing, after: UP }),
        }
    }
}

/// The answers to questions about objects, several being asked at a time. Those about objects that are gone
/// since they were listed are left out.
async fn at_once<T>(
    questions: impl Iterator<Item = impl Future<Output = Result<T, Trouble>>>,
) -> Result<Vec<T>, Trouble> {
    let mut answers = iter(questions).buffered(AT_ONCE);
    let mut known = Vec::new();
    while let Some(answer) = answers.next().await {
        match answer {
            Ok(answer) => known.push(answer),
            Err(error) if error.is_unknown_object() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(known)
}

fn place(profile: &Profile) -> u32 {
    match profile.in_memory {
        true => IN_MEMORY,
        false => TO_DISK,
    }
}

fn text(settings: &Settings, setting: &str, key: &str) -> String {
    let value = settings.get(setting).and_then(|it| it.get(key));
    let text = value.and_then(|it| it.downcast_ref::<&str>().ok());
    text.unwrap_or_default().to_owned()
}

fn written(settings: &Settings) -> Result<State, Trouble> {
    match serde_json::to_value(settings) {
        Ok(Value::Object(settings)) => Ok(settings),
        Ok(_) => Ok(State::new()),
        Err(error) => Err(Trouble::Profile {
            verb: "written down",
            cause: format!("{:?} error", error.classify()),
        }),
    }
}

fn read(settings: &State) -> Result<Settings, Trouble> {
    let mut read = Settings::new();
    for (setting, values) in settings {
        for (key, written) in values.as_object().into_iter().flatten() {
            // Its place, not its text: the text may be a key.
            let value = typed(written).ok_or_else(|| Trouble::Profile {
                verb: "read back",
                cause: format!("{setting}.{key} is no value of the bus"),
            })?;
            read.entry(setting.clone())
                .or_default()
                .insert(key.clone(), value);
        }
    }
    Ok(read)
}
