//! NetworkManager, over the system bus: its checkpoints and its connection profiles.
//!
//! nmstate changes the network; here is what it has no calls for: which checkpoints are pending, a
//! commit or a rollback of exactly one of them, and every connection profile with its secrets. Each
//! conversation is with the NetworkManager that was there when it began, by its unique name on the
//! bus: after another start of it the same path may be somebody else's checkpoint, and a call for it
//! fails instead. Every call has a deadline. What to do with what is found is decided elsewhere.

mod profiles;
mod typed;

use std::collections::HashMap;
use std::future::Future;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use zbus::zvariant::{DynamicType, ObjectPath, OwnedObjectPath, OwnedValue, Type};
use zbus::{Connection, Message};

use super::journal::Checkpoint;

const NAME: &str = "org.freedesktop.NetworkManager";
const PATH: &str = "/org/freedesktop/NetworkManager";
const CHECKPOINT: &str = "org.freedesktop.NetworkManager.Checkpoint";
const PROPERTIES: &str = "org.freedesktop.DBus.Properties";

/// How long an answer may take.
const CALL: Duration = Duration::from_secs(10);

/// How long going back to a checkpoint may take: devices are brought up again.
const ROLLBACK: Duration = Duration::from_secs(60);

/// Why NetworkManager did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// Nobody is there, or it refused.
    #[error("NetworkManager: {doing} failed: {cause}")]
    Refused {
        /// What was being done.
        doing: &'static str,
        /// The bus's or NetworkManager's own words.
        cause: Box<zbus::Error>,
    },
    /// No answer came.
    #[error("NetworkManager did not answer within {} s: {doing}", after.as_secs())]
    Deadline {
        /// What was being done.
        doing: &'static str,
        /// For how long.
        after: Duration,
    },
    /// It brings up what it knows first.
    #[error("NetworkManager is still starting")]
    Starting,
    /// Settings that cannot be written down or read back.
    #[error("a connection profile cannot be {verb}: {cause}")]
    Profile {
        /// What was being done with it.
        verb: &'static str,
        /// What is wrong.
        cause: String,
    },
}

/// A conversation with one NetworkManager: the one that was there when it began.
#[derive(Debug)]
pub struct NetworkManager {
    bus: Connection,
    /// Its unique name.
    owner: String,
}

type Arguments<'a, B> = (&'a str, &'a str, &'static str, &'a B);

impl NetworkManager {
    /// Begins a conversation.
    pub async fn meet() -> Result<Self, Trouble> {
        let bus = within("connecting to the system bus", CALL, Connection::system()).await?;
        let doing = "asking the bus for it";
        let asked = bus.call_method(
            Some("org.freedesktop.DBus"),
            "/org/freedesktop/DBus",
            Some("org.freedesktop.DBus"),
            "GetNameOwner",
            &(NAME,),
        );
        let answer = within(doing, CALL, asked).await?;
        let owner = body(doing, &answer)?;
        Ok(Self { bus, owner })
    }

    /// The same, once it has brought up what it knows of.
    pub async fn meet_started() -> Result<Self, Trouble> {
        let met = Self::meet().await?;
        match met.property::<bool>(PATH, NAME, "Startup").await? {
            true => Err(Trouble::Starting),
            false => Ok(met),
        }
    }

    /// Its version.
    pub async fn version(&self) -> Result<String, Trouble> {
        self.property(PATH, NAME, "Version").await
    }

    /// Every checkpoint that is pending, whoever made it, the oldest first.
    pub async fn checkpoints(&self) -> Result<Vec<Checkpoint>, Trouble> {
        let paths: Vec<OwnedObjectPath> = self.property(PATH, NAME, "Checkpoints").await?;
        let mut found = Vec::new();
        for path in paths {
            found.extend(self.checkpoint(&path).await?);
        }
        found.sort_by_key(|it| it.created_ms);
        Ok(found)
    }

    /// One checkpoint; none where it has ended since it was listed.
    async fn checkpoint(&self, path: &OwnedObjectPath) -> Result<Option<Checkpoint>, Trouble> {
        let asked = (path.as_str(), PROPERTIES, "GetAll", &(CHECKPOINT,));
        let doing = "reading a checkpoint";
        let known: HashMap<String, OwnedValue> = match self.call(doing, CALL, asked).await {
            Ok(known) => known,
            Err(error) if error.is_unknown_object() => return Ok(None),
            Err(error) => return Err(error),
        };
        let created: Option<i64> = number(&known, "Created");
        let timeout: Option<u32> = number(&known, "RollbackTimeout");
        let created_ms = created.and_then(|it| u64::try_from(it).ok());
        let created_ms = created_ms.unwrap_or_default();
        Ok(Some(Checkpoint {
            path: path.to_string(),
            created_ms,
            deadline_ms: timeout
                .filter(|seconds| *seconds > 0)
                .map(|seconds| created_ms + u64::from(seconds) * 1000),
        }))
    }

    /// Forgets a checkpoint: what was changed since stays.
    pub async fn commit(&self, checkpoint: &Checkpoint) -> Result<(), Trouble> {
        let path = object(&checkpoint.path);
        let asked = (PATH, NAME, "CheckpointDestroy", &(path,));
        self.call("committing a checkpoint", CALL, asked).await
    }

    /// Goes back to a checkpoint.
    pub async fn roll_back(&self, checkpoint: &Checkpoint) -> Result<(), Trouble> {
        let path = object(&checkpoint.path);
        let asked = (PATH, NAME, "CheckpointRollback", &(path,));
        // Devices it could not bring back are seen by comparing the state afterwards.
        let results: HashMap<String, u32> = self
            .call("going back to a checkpoint", ROLLBACK, asked)
            .await?;
        for (device, result) in results.iter().filter(|(_, result)| **result != 0) {
            tracing::warn!(
                device,
                result,
                "NetworkManager could not bring a device back"
            );
        }
        Ok(())
    }

    async fn property<T>(
        &self,
        path: &str,
        interface: &'static str,
        name: &'static str,
    ) -> Result<T, Trouble>
    where
        T: TryFrom<OwnedValue>,
        T::Error: Into<zbus::Error>,
    {
        let asked = (path, PROPERTIES, "Get", &(interface, name));
        let value: OwnedValue = self.call("reading a property", CALL, asked).await?;
        T::try_from(value).map_err(|error| refused(name, error.into()))
    }

    async fn call<B, T>(
        &self,
        doing: &'static str,
        after: Duration,
        (path, interface, method, arguments): Arguments<'_, B>,
    ) -> Result<T, Trouble>
    where
        B: Serialize + DynamicType,
        T: DeserializeOwned + Type,
    {
        let owner = Some(self.owner.as_str());
        let asked = self
            .bus
            .call_method(owner, path, Some(interface), method, arguments);
        let answer = within(doing, after, asked).await?;
        body(doing, &answer)
    }
}

impl Trouble {
    fn is_unknown_object(&self) -> bool {
        let name = self.name();
        name.ends_with(".UnknownObject") || name.ends_with(".UnknownMethod")
    }

    /// A profile has no secrets, or none that are kept with it: a person's agent has them.
    fn is_without_secrets(&self) -> bool {
        let name = self.name();
        name.ends_with(".AgentManager.NoSecrets") || name.ends_with(".SettingNotFound")
    }

    /// What the bus calls an error that came as an answer.
    fn name(&self) -> &str {
        match self {
            Self::Refused { cause, .. } => match cause.as_ref() {
                zbus::Error::MethodError(name, ..) => name.as_str(),
                _ => "",
            },
            _ => "",
        }
    }
}

fn refused(doing: &'static str, cause: zbus::Error) -> Trouble {
    Trouble::Refused {
        doing,
        cause: Box::new(cause),
    }
}

async fn within<T>(
    doing: &'static str,
    after: Duration,
    call: impl Future<Output = zbus::Result<T>>,
) -> Result<T, Trouble> {
    match tokio::time::timeout(after, call).await {
        Ok(answer) => answer.map_err(|cause| refused(doing, cause)),
        Err(_) => Err(Trouble::Deadline { doing, after }),
    }
}

fn body<T: DeserializeOwned + Type>(doing: &'static str, answer: &Message) -> Result<T, Trouble> {
    let body = answer.body();
    body.deserialize().map_err(|cause| refused(doing, cause))
}

/// A path that came from NetworkManager; one that is none is no checkpoint either, and is refused there.
fn object(path: &str) -> ObjectPath<'_> {
    ObjectPath::try_from(path).unwrap_or_default()
}

fn number<T: TryFrom<OwnedValue>>(known: &HashMap<String, OwnedValue>, name: &str) -> Option<T> {
    let value = known.get(name)?.try_clone().ok()?;
    T::try_from(value).ok()
}
