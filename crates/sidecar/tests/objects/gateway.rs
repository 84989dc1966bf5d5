//! A real S3 server for all tests of this program, and the three kinds of buckets they meet.

use super::stage::{free, until};
use keelson_sidecar::objects::{Objects, Patience};
use keelson_sidecar::settings::{Bucket, ObjectStore};
use keelson_testbed::{Peer, peer};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

pub(crate) const ACCESS_KEY: &str = "AKIAKEELSONTEST";
pub(crate) const SECRET_KEY: &str = "a-secret-nobody-may-read";
const REGION: &str = "eu-central-1";
/// The domain before which the server finds the names of buckets.
const DOMAIN: &str = "s3.keelson.test";

/// Short, so that a test that waits for the end of it does not wait long.
pub(crate) const IMPATIENT: Patience = Patience {
    first: Duration::from_millis(10),
    longest: Duration::from_millis(20),
    retries: 3,
};

/// The server.
pub(crate) struct Gateway {
    pub(crate) port: u16,
    pub(crate) folder: PathBuf,
}

/// The server of this program; it ends with it.
pub(crate) fn gateway() -> &'static Gateway {
    static GATEWAY: OnceLock<Gateway> = OnceLock::new();
    GATEWAY.get_or_init(start)
}

fn start() -> Gateway {
    let program = peer(Peer::Versitygw).expect("the S3 server");
    let name = format!("keelson-objects-{}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    let port = free();
    // The pipe closes when this program ends, however it does, and the shell takes the server along.
    let keeper = Command::new("sh")
        .args([
            "-c",
            r#"folder=$1; shift; "$@" & read -r _; kill $!; wait; rm -rf "$folder""#,
        ])
        .arg("sh")
        .arg(&folder)
        .arg(program)
        .args(["--quiet", "--keep-alive", "--region", REGION])
        .args(["--virtual-domain", DOMAIN])
        .args(["--port", &format!("127.0.0.1:{port}"), "posix"])
        .arg(&folder)
        .env("ROOT_ACCESS_KEY", ACCESS_KEY)
        .env("ROOT_SECRET_KEY", SECRET_KEY)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the S3 server");
    std::mem::forget(keeper);
    until("the S3 server", || {
        TcpStream::connect(("127.0.0.1", port)).ok()
    });
    Gateway { port, folder }
}

/// A kind of back end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The bucket's name before the host, as AWS has it.
    S3,
    /// The bucket's name in the path.
    PathStyle,
    /// A folder.
    Folder,
}

pub(crate) const KINDS: [Kind; 3] = [Kind::S3, Kind::PathStyle, Kind::Folder];

/// A bucket of its own.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    pub(crate) kind: Kind,
    pub(crate) name: String,
    /// Where the server is asked; a test may stand between.
    pub(crate) port: u16,
    /// Where the objects lie.
    pub(crate) folder: PathBuf,
}

impl Store {
    pub(crate) fn new(kind: Kind) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("bucket-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let folder = gateway().folder.join(&name);
        std::fs::create_dir(&folder).expect("a bucket");
        Self {
            kind,
            name,
            port: gateway().port,
            folder,
        }
    }

    pub(crate) fn bucket(&self) -> Bucket {
        let name = match self.kind {
            Kind::Folder => format!("file://{}", self.folder.display()),
            _ => self.name.clone(),
        };
        Bucket {
            name,
            region: REGION.into(),
        }
    }

    fn endpoint(&self) -> Option<String> {
        match self.kind {
            Kind::S3 => Some(format!("http://{DOMAIN}")),
            Kind::PathStyle => Some(format!("http://127.0.0.1:{}", self.port)),
            Kind::Folder => None,
        }
    }

    pub(crate) fn reach(&self) -> ObjectStore {
        ObjectStore {
            endpoint: self.endpoint(),
            path_style: self.kind == Kind::PathStyle,
        }
    }

    /// What a pod's environment says of the bucket.
    pub(crate) fn variables(&self) -> Vec<(String, String)> {
        let mut variables = vec![
            ("SEI_SNAPSHOT_BUCKET", self.bucket().name),
            ("SEI_SNAPSHOT_REGION", REGION.into()),
        ];
        if let Some(endpoint) = self.endpoint() {
            let path_style = (self.kind == Kind::PathStyle).to_string();
            variables.push(("SEI_OBJECT_STORE_ENDPOINT", endpoint));
            variables.push(("SEI_OBJECT_STORE_PATH_STYLE", path_style));
            variables.push(("AWS_ACCESS_KEY_ID", ACCESS_KEY.into()));
            variables.push(("AWS_SECRET_ACCESS_KEY", SECRET_KEY.into()));
        }
        if self.kind == Kind::S3 {
            // No name server knows the domain: whoever wants it goes by the server itself.
            let server = format!("http://127.0.0.1:{}", self.port);
            variables.push(("AWS_PROXY_URL", server));
        }
        let owned = |(name, value): (&str, String)| (name.to_owned(), value);
        variables.into_iter().map(owned).collect()
    }

    pub(crate) fn open(&self) -> Objects {
        let opened = Objects::open_with(&self.bucket(), &self.reach(), self.variables());
        opened.expect("a bucket").with_patience(IMPATIENT)
    }
}
