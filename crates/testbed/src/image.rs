//! Container images without a container engine: an OCI image layout in a tar file, the same bytes
//! for the same content, which `ctr images import` and every registry tool take.
//!
//! Which images there are, and what is in each, is for [`crate::images`] to say.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use tar::{Builder, EntryType, Header};

/// An image: its name, how it starts, and the files in it.
#[derive(Clone, Debug)]
pub struct Image {
    /// Reference, e.g. `localhost/pause:1`.
    pub name: String,
    /// The program and its words.
    pub entrypoint: Vec<String>,
    /// The user it runs as, e.g. `65532:65532`.
    pub user: String,
    /// Path inside, and what is there.
    pub content: BTreeMap<String, Content>,
}

/// What stands at a path of an image.
#[derive(Clone, Debug)]
pub enum Content {
    /// A program copied from this machine.
    Program(PathBuf),
    /// A file copied from this machine, to be read only.
    File(PathBuf),
    /// A symbolic link to this target.
    Link(String),
    /// An empty folder with these permissions.
    Folder(u32),
}

/// An image in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// Its reference.
    pub name: String,
    /// Where it is.
    pub file: PathBuf,
    /// The digest registries and container runtimes know it by.
    pub digest: String,
    /// How large the file is.
    pub size: u64,
}

/// The bytes of an image's file, and the digest of its manifest.
struct Layout {
    bytes: Vec<u8>,
    digest: String,
}

impl Image {
    /// Writes the image into a folder, whole or not at all.
    pub fn write(&self, folder: &Path) -> io::Result<Written> {
        let file = file(&self.name, folder);
        let layout = self.layout()?;
        let partial = file.with_extension(format!("{}.partial", std::process::id()));
        std::fs::write(&partial, &layout.bytes)?;
        std::fs::rename(&partial, &file)?;
        Ok(Written {
            name: self.name.clone(),
            file,
            digest: layout.digest,
            size: layout.bytes.len() as u64,
        })
    }

    fn layout(&self) -> io::Result<Layout> {
        let layer = self.layer()?;
        let layer_digest = digest(&layer);
        let config = bytes(&self.config(&layer_digest));
        let manifest = bytes(&json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": descriptor("config.v1+json", &config),
            "layers": [descriptor("layer.v1.tar", &layer)],
        }));
        let mut listed = descriptor("manifest.v1+json", &manifest);
        listed["annotations"] = json!({
            "io.containerd.image.name": self.name,
            "org.opencontainers.image.ref.name": self.name,
        });
        let index = bytes(&json!({ "schemaVersion": 2, "manifests": [listed] }));
        let mut layout = Builder::new(Vec::new());
        add(
            &mut layout,
            "oci-layout",
            br#"{"imageLayoutVersion":"1.0.0"}"#,
        )?;
        add(&mut layout, "index.json", &index)?;
        for blob in [&layer, &config, &manifest] {
            let name = digest(blob).replace(':', "/");
            add(&mut layout, &format!("blobs/{name}"), blob)?;
        }
        Ok(Layout {
            bytes: layout.into_inner()?,
            digest: digest(&manifest),
        })
    }

    /// How it starts, over a layer with this digest.
    pub(crate) fn config(&self, layer: &str) -> Value {
        json!({
            "architecture": architecture(),
            "os": "linux",
            "config": {
                "Entrypoint": self.entrypoint,
                "User": self.user,
                "Env": ["PATH=/bin"],
                "WorkingDir": "/",
                // So that two releases of the same content are two images: a container runtime
                // that knows one image by two names tells either.
                "Labels": { "org.opencontainers.image.ref.name": self.name },
            },
            "rootfs": { "type": "layers", "diff_ids": [layer] },
        })
    }

    /// One layer, not compressed: images here are read once, from the disk they lie on.
    fn layer(&self) -> io::Result<Vec<u8>> {
        let mut layer = Builder::new(Vec::new());
        let mut folders: BTreeMap<String, u32> = BTreeMap::new();
        for folder in ["dev", "etc", "proc", "run", "sys"] {
            folders.insert(folder.into(), 0o755);
        }
        for (path, content) in &self.content {
            for folder in Path::new(path)
                .ancestors()
                .skip(1)
                .filter(|it| !it.as_os_str().is_empty())
            {
                folders.entry(folder.display().to_string()).or_insert(0o755);
            }
            if let Content::Folder(mode) = content {
                folders.insert(path.clone(), *mode);
            }
        }
        for (path, mode) in folders {
            let mut header = header(EntryType::Directory, mode, 0);
            layer.append_data(&mut header, format!("{path}/"), io::empty())?;
        }
        for (path, content) in &self.content {
            match content {
                Content::Folder(_) => {}
                Content::Link(target) => {
                    let mut header = header(EntryType::Symlink, 0o777, 0);
                    layer.append_link(&mut header, path, target)?;
                }
                Content::Program(source) => copy(&mut layer, path, source, 0o755)?,
                Content::File(source) => copy(&mut layer, path, source, 0o644)?,
            }
        }
        layer.into_inner()
    }
}

/// Where the image of this name is, in a folder of images.
pub(crate) fn file(name: &str, folder: &Path) -> PathBuf {
    folder.join(format!("{}.tar", name.replace(['/', ':'], "_")))
}

fn copy(layer: &mut Builder<Vec<u8>>, path: &str, source: &Path, mode: u32) -> io::Result<()> {
    let named =
        |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", source.display()));
    let data = std::fs::read(source).map_err(named)?;
    let mut header = header(EntryType::Regular, mode, data.len());
    layer.append_data(&mut header, path, data.as_slice())
}

fn add(layout: &mut Builder<Vec<u8>>, name: &str, data: &[u8]) -> io::Result<()> {
    layout.append_data(
        &mut header(EntryType::Regular, 0o644, data.len()),
        name,
        data,
    )
}

/// No owner, no time: what is left depends on the content alone.
fn header(kind: EntryType, mode: u32, size: usize) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(size as u64);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header
}

fn descriptor(kind: &str, blob: &[u8]) -> Value {
    json!({
        "mediaType": format!("application/vnd.oci.image.{kind}"),
        "digest": digest(blob),
        "size": blob.len(),
    })
}

fn digest(blob: &[u8]) -> String {
    let hash: String = Sha256::digest(blob)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("sha256:{hash}")
}

fn bytes(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}

/// Go's name of this machine's architecture, which is what image tools use.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    fn example() -> Image {
        Image {
            name: "localhost/example:1".into(),
            entrypoint: vec!["/bin/program".into()],
            user: "65532:65532".into(),
            content: [
                (
                    "bin/program".to_owned(),
                    Content::Program("/proc/version".into()),
                ),
                ("bin/alias".to_owned(), Content::Link("program".into())),
                ("tmp".to_owned(), Content::Folder(0o1777)),
            ]
            .into(),
        }
    }

    fn files(archive: &[u8]) -> BTreeMap<String, Vec<u8>> {
        let mut archive = tar::Archive::new(archive);
        let entries = archive.entries().expect("a tar file");
        entries
            .map(|entry| {
                let mut entry = entry.expect("an entry");
                let path = entry.path().expect("a path").display().to_string();
                let mut data = Vec::new();
                entry.read_to_end(&mut data).expect("its data");
                (path, data)
            })
            .collect()
    }

    #[test]
    fn the_same_content_gives_the_same_bytes() {
        let (one, other) = (example().layout(), example().layout());
        let (one, other) = (one.expect("bytes"), other.expect("bytes"));
        assert!(one.bytes == other.bytes && one.digest == other.digest);
    }

    #[test]
    fn every_digest_in_an_image_is_the_digest_of_what_it_names() {
        let layout = files(&example().layout().expect("bytes").bytes);
        for (path, blob) in layout.iter().filter(|(path, _)| path.starts_with("blobs/")) {
            let named = path.trim_start_matches("blobs/").replace('/', ":");
            assert_eq!(named, digest(blob), "{path}");
        }
        let read = |name: &str| -> Value { serde_json::from_slice(&layout[name]).expect("JSON") };
        let blob = |digest: &Value| {
            format!(
                "blobs/{}",
                digest.as_str().expect("a digest").replace(':', "/")
            )
        };
        let manifest = read(&blob(&read("index.json")["manifests"][0]["digest"]));
        let config = read(&blob(&manifest["config"]["digest"]));
        assert_eq!(
            config["rootfs"]["diff_ids"][0],
            manifest["layers"][0]["digest"]
        );
        let layer = files(&layout[&blob(&manifest["layers"][0]["digest"])]);
        assert!(
            layer.contains_key("bin/program") && layer.contains_key("tmp/"),
            "{:?}",
            layer.keys()
        );
    }
}
