//! Which images there are, and what is in each: one program (the host components have a second one
//! beside it), the shared libraries it is linked to, and the few files it cannot do without.
//!
//! Every image runs as a user with a number and no name, and none expects to write to its own root.
//! The images of `make images`, of tests and of `make up` come from this one table; the profile the
//! programs were built with is all they differ in.

use crate::error::{Doing, Error};
use crate::image::{Content, Image, Written};
use crate::libraries::{libraries, stripped};
use crate::node::NON_ROOT;
use crate::peers::{Peer, peer};
use crate::products::{Product, Profile, build};
use crate::programs::pause;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

mod kept;

/// The version of Keelson's own images.
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Where the distribution keeps the authorities a program may trust, and where programs look.
pub(crate) const AUTHORITIES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// The name of an image of a program of Keelson's.
pub fn name(product: Product) -> String {
    format!("localhost/{}:{VERSION}", product.name())
}

/// The name of the image of a peer.
pub fn peer_name(peer: Peer) -> String {
    format!("localhost/{}:{}", peer.name(), peer.version())
}

/// The name of the image that stands where a platform has its exporter of chain metrics.
pub const EXPORTER: &str = "localhost/no-exporter:1";

/// The images a cluster with pods always has: `localhost/pause:1` and `localhost/busybox:1`.
pub(crate) fn standard() -> Result<Vec<Image>, Error> {
    let busybox = Image {
        name: "localhost/busybox:1".into(),
        entrypoint: vec!["/bin/sh".into()],
        user: non_root(),
        content: [busybox_as(&[
            "sh", "cat", "echo", "httpd", "id", "ls", "nc", "nslookup", "sleep", "test", "touch",
            "true",
        ])]
        .into_iter()
        .flatten()
        .chain([scratch()])
        .collect(),
    };
    Ok(vec![waiting("localhost/pause:1")?, busybox])
}

/// The images of Keelson's own programs.
pub fn products(profile: Profile, folder: &Path) -> Result<Vec<Image>, Error> {
    let built = build(profile)?;
    let image = |product: Product| {
        let program = stripped(&built[&product], folder)?;
        let mut image = of_program(name(product), product.name(), program)?;
        if let Some(beside) = product.beside() {
            let program = built[&product].with_file_name(beside);
            image
                .content
                .extend(called(beside, stripped(&program, folder)?)?);
        }
        match product {
            Product::Operator | Product::Host => {}
            Product::Proxy => image.content.extend([authorities()]),
            Product::Sidecar => {
                // The name a pod calls it by is the one of the program it follows.
                let other = Content::Link(product.name().into());
                let other = ("bin/seictl".to_owned(), other);
                image.content.extend([other, authorities(), scratch()]);
            }
        }
        Ok(image)
    };
    Product::ALL.into_iter().map(image).collect()
}

/// The images of what stands beside Keelson: the chain in an old and a new version, an S3 server,
/// kube-rbac-proxy, and something in the place of an exporter.
pub fn peers() -> Result<Vec<Image>, Error> {
    let mut images = vec![waiting(EXPORTER)?];
    for one in Peer::ALL {
        let mut image = of_program(peer_name(one), one.name(), peer(one)?)?;
        match one {
            // Its containers are started by scripts, as Sei's are, and one of them wants bash. Those
            // of pods the original operator left want a little more.
            Peer::Seid | Peer::NewSeid => {
                let bash = PathBuf::from("/bin/bash");
                image.content.extend(linked(&bash)?);
                let bash = ("bin/bash".to_owned(), Content::Program(bash));
                image.content.extend([bash]);
                image
                    .content
                    .extend(busybox_as(&["sh", "cat", "grep", "head", "mkdir", "sleep"]));
            }
            Peer::Versitygw => {
                let tools = busybox_as(&["sh", "cat", "mkdir", "mv"]);
                image.content.extend(tools.chain([scratch()]));
            }
            Peer::KubeRbacProxy => image.content.extend([authorities()]),
        }
        images.push(image);
    }
    Ok(images)
}

/// Writes images into a folder, but for those that are there already.
pub fn write_all(images: &[Image], folder: &Path) -> Result<Vec<Written>, Error> {
    std::fs::create_dir_all(folder).doing(|| format!("{} could not be made", folder.display()))?;
    let write = |image: &Image| {
        let written = kept::write(image, folder);
        written.doing(|| format!("image {} could not be written", image.name))
    };
    images.iter().map(write).collect()
}

/// The files of the images that were written into a folder for Keelson and its peers.
pub(crate) fn written(folder: &Path) -> Vec<PathBuf> {
    let products = Product::ALL.into_iter().map(name);
    let peers = Peer::ALL.into_iter().map(peer_name);
    let names = products.chain(peers).chain([EXPORTER.to_owned()]);
    let files = names.map(|name| crate::image::file(&name, folder));
    files.filter(|file| file.exists()).collect()
}

/// One program with what it is linked to.
fn of_program(name: String, program: &str, file: PathBuf) -> Result<Image, Error> {
    Ok(Image {
        name,
        entrypoint: vec![format!("/bin/{program}")],
        user: non_root(),
        content: called(program, file)?,
    })
}

/// A program under its name, and what it is linked to.
fn called(name: &str, program: PathBuf) -> Result<BTreeMap<String, Content>, Error> {
    let mut content: BTreeMap<_, _> = linked(&program)?.collect();
    content.insert(format!("bin/{name}"), Content::Program(program));
    Ok(content)
}

/// A program that waits to be ended and does nothing else.
fn waiting(name: &str) -> Result<Image, Error> {
    Ok(Image {
        name: name.into(),
        entrypoint: vec!["/pause".into()],
        user: "65535:65535".into(),
        content: [("pause".into(), Content::Program(pause()?))].into(),
    })
}

/// The libraries of a program, each where the loader looks for it.
fn linked(program: &Path) -> Result<impl Iterator<Item = (String, Content)> + use<>, Error> {
    let inside = |library: PathBuf| {
        let path = library.display().to_string();
        let path = path.trim_start_matches('/').to_owned();
        (path, Content::Program(library))
    };
    Ok(libraries(program)?.into_iter().map(inside))
}

fn busybox_as(applets: &[&'static str]) -> impl Iterator<Item = (String, Content)> + use<> {
    let program = Content::Program("/bin/busybox".into());
    let links: Vec<_> = applets
        .iter()
        .map(|applet| (format!("bin/{applet}"), Content::Link("busybox".into())))
        .collect();
    links
        .into_iter()
        .chain([("bin/busybox".to_owned(), program)])
}

fn authorities() -> (String, Content) {
    let path = AUTHORITIES.trim_start_matches('/').to_owned();
    (path, Content::File(AUTHORITIES.into()))
}

fn scratch() -> (String, Content) {
    ("tmp".to_owned(), Content::Folder(0o1777))
}

fn non_root() -> String {
    format!("{NON_ROOT}:{NON_ROOT}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// This test's own program, as large and as linked as those that ship.
    fn image(folder: &Path) -> Written {
        let program = std::env::current_exe().expect("this program");
        let program = stripped(&program, folder).expect("a program");
        let image = of_program("localhost/example:1".into(), "example", program);
        let image = image.expect("an image");
        write_all(&[image], folder).expect("an image").remove(0)
    }

    #[test]
    fn the_same_program_is_the_same_image_wherever_it_is_made() {
        let root = std::env::temp_dir().join(format!("keelson-images-{}", std::process::id()));
        let made = ["one", "other"].map(|name| {
            let folder = root.join(name);
            std::fs::create_dir_all(&folder).expect("a folder");
            let written = image(&folder);
            let bytes = std::fs::read(&written.file).expect("its file");
            (written.digest, written.size, bytes)
        });
        std::fs::remove_dir_all(&root).expect("removal");
        let [one, other] = made;
        assert!(one == other, "{} and {} differ", one.0, other.0);
    }

    #[test]
    fn every_image_runs_as_a_user_who_is_not_root_and_starts_a_program_that_is_in_it() {
        let folder = std::env::temp_dir().join(format!("keelson-users-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let mut images = standard().expect("images");
        images.extend(peers().expect("images"));
        images.extend(products(Profile::Dev, &folder).expect("images"));
        assert_eq!(images.len(), 3 + Peer::ALL.len() + Product::ALL.len());
        for image in images {
            let config = image.config("sha256:0");
            let user = config["config"]["User"].as_str().expect("a user");
            let user = user.split_once(':').map(|(user, _)| user.parse());
            let user: u32 = user.expect("a group").expect("a number");
            assert!(user > 0, "{}", image.name);
            let started = image.entrypoint[0].trim_start_matches('/');
            let there = match image.content.get(started) {
                Some(Content::Link(target)) => image.content.get(&format!("bin/{target}")),
                other => other,
            };
            let program = matches!(there, Some(Content::Program(file)) if file.exists());
            assert!(program, "{} has no {started}", image.name);
        }
        std::fs::remove_dir_all(&folder).expect("removal");
    }
}
