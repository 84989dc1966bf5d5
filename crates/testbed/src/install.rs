//! Keelson in a cluster: types, rights, settings and the operator as a Deployment, an authority, an S3
//! server, and chains that take their genesis from it.
//!
//! All of it is applied with kubectl from the files people apply, so that it may be done again and to
//! a cluster someone else runs. Only images are named otherwise: see [`Installer::images`].

mod removal;
mod waiting;

use crate::cache;
use crate::chain::Founding;
use crate::error::{Doing, Error};
use crate::images;
use crate::kubectl::Kubectl;
use crate::manifests::read_folder;
use crate::node::Pods;
use crate::packages;
use crate::products::{Product, Profile};
use crate::progress::Progress;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Installs Keelson into one cluster.
#[derive(Clone, Debug)]
pub struct Installer {
    kubectl: Kubectl,
    images: String,
    hosts: bool,
}

/// The setting that has the operator look after NMStates.
const HOST_IMAGE: &str = "RELATED_IMAGE_HANDLER_IMAGE";

/// A node on which Keelson and a chain can run: with their images and the label of the pool, and a
/// volume for each of this many nodes. What is missing is built.
pub fn pods(profile: Profile, volumes: usize) -> Result<Pods, Error> {
    packages::provide(packages::IMAGES)?;
    let folder = cache::images();
    let mut wanted = images::products(profile, &folder.join("programs"))?;
    wanted.extend(images::peers()?);
    let progress = Progress::start("writing images");
    let mut written = Vec::new();
    for (done, image) in wanted.iter().enumerate() {
        progress.at(done, wanted.len());
        written.extend(images::write_all(std::slice::from_ref(image), &folder)?);
    }
    progress.done();
    Ok(ready_pods(
        volumes,
        written.into_iter().map(|it| it.file).collect(),
    ))
}

/// The same, of images that are there.
pub(crate) fn ready_pods(volumes: usize, images: Vec<PathBuf>) -> Pods {
    Pods {
        node_labels: [("karpenter.sh/nodepool".to_owned(), "local".to_owned())].into(),
        volumes,
        images,
        ..Pods::default()
    }
}

impl Installer {
    /// For the cluster behind this kubectl, with images of this machine.
    pub fn new(kubectl: Kubectl) -> Self {
        Self {
            kubectl,
            images: "localhost".into(),
            hosts: false,
        }
    }

    /// With images of this registry instead.
    #[must_use]
    pub fn images(mut self, registry: &str) -> Self {
        self.images = registry.trim_end_matches('/').to_owned();
        self
    }

    /// With what lets the operator look after NMStates, and the image of the host components among its
    /// settings.
    #[must_use]
    pub fn hosts(mut self) -> Self {
        self.hosts = true;
        self
    }

    /// Whether a cluster someone else runs has what Keelson and the example need.
    pub fn check(&self) -> Result<(), Error> {
        if !self.has(&["crd", "certificates.cert-manager.io"])? {
            return Err(Error::Unfit {
                what: "it has no cert-manager: install it first".into(),
            });
        }
        if !self.has(&["nodes", "--selector=karpenter.sh/nodepool=local"])? {
            return Err(Error::Unfit {
                what: "no node of it may run nodes of the chain: `kubectl label node NAME karpenter.sh/nodepool=local`".into(),
            });
        }
        Ok(())
    }

    /// Whether there is something of this description.
    fn has(&self, words: &[&str]) -> Result<bool, Error> {
        let words = [&["get", "--ignore-not-found", "--output=name"], words].concat();
        Ok(!self.kubectl.run(&words)?.trim().is_empty())
    }

    /// Types, rights, the settings of a small platform with these changes, and the operator. What is
    /// there already stays as it is.
    pub fn operator(&self, changes: &BTreeMap<String, String>) -> Result<String, Error> {
        let types = self.objects("deploy/crds")?;
        let mut said = self.kubectl.apply(&types)?;
        let local = self.objects("deploy/local")?;
        let mut settings = one(&local, "ConfigMap", "keelson-platform")?;
        for (variable, value) in changes {
            settings["data"][variable] = json!(value);
        }
        let mut objects = self.objects("deploy/operator")?;
        objects.retain(|it| it["kind"] != "ConfigMap");
        if self.hosts {
            let image = in_registry(&images::name(Product::Host), &self.images);
            settings["data"][HOST_IMAGE] = json!(image);
            objects.extend(self.objects("deploy/host")?);
        }
        // A namespace before what is in it, and settings before who reads them.
        objects.sort_by_key(|it| it["kind"] != "Namespace");
        let inside = objects.partition_point(|it| it["kind"] == "Namespace");
        objects.insert(inside, settings);
        said += &self.kubectl.apply(&objects)?;
        Ok(said)
    }

    /// The issuer certificates are ordered from, and the S3 server.
    pub fn surroundings(&self) -> Result<String, Error> {
        let mut objects = self.objects("deploy/local")?;
        objects.retain(|it| it["metadata"]["namespace"] != "keelson-system");
        objects.sort_by_key(|it| it["kind"] != "Namespace");
        self.kubectl.apply(&objects)
    }

    /// A namespace for nodes, with what a platform provides in it.
    pub fn namespace(&self, name: &str) -> Result<String, Error> {
        let mut objects = self.objects("examples/local")?;
        objects.retain(|it| it["kind"] != "SeiNode");
        for object in &mut objects {
            match object["kind"] == "Namespace" {
                true => object["metadata"]["name"] = json!(name),
                false => object["metadata"]["namespace"] = json!(name),
            }
        }
        self.kubectl.apply(&objects)
    }

    /// Puts the genesis of a chain where nodes look for it.
    pub fn genesis(&self, founding: &Founding) -> Result<(), Error> {
        let folder = format!("/buckets/genesis/{}", founding.chain);
        // Whole or not at all: a node may be looking for it already.
        let script = format!(
            "mkdir -p /buckets/snapshots {folder} && cat > {folder}/.part && mv {folder}/.part {folder}/genesis.json"
        );
        let place = ["--namespace", "storage", "exec", "--stdin", "deployment/s3"];
        let words = [&place[..], &["--", "sh", "-c", &script]].concat();
        self.kubectl.feed(&words, founding.genesis.as_bytes())?;
        Ok(())
    }

    /// The keys of a validator as the two Secrets its SeiNode names.
    pub fn keys(&self, namespace: &str, node: &str, founding: &Founding) -> Result<String, Error> {
        let secret = |name: &str, file: &str, text: &str| {
            json!({
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": { "name": format!("{node}-{name}"), "namespace": namespace },
                "stringData": { file: text },
            })
        };
        self.kubectl.apply(&[
            secret(
                "signing-key",
                "priv_validator_key.json",
                &founding.signing_key,
            ),
            secret("node-key", "node_key.json", &founding.node_key),
        ])
    }

    /// The nodes of the example.
    pub fn example(&self) -> Result<Vec<Value>, Error> {
        let mut objects = self.objects("examples/local")?;
        objects.retain(|it| it["kind"] == "SeiNode");
        Ok(objects)
    }

    /// Everything that may say why a node of a namespace is not as it should be.
    pub fn look(&self, namespace: &str) -> String {
        let here = ["--namespace", namespace];
        let operator = ["--namespace", "keelson-system"];
        let all = [
            "--all-containers",
            "--prefix",
            "--tail=30",
            "--ignore-errors",
        ];
        let looks: [(&[&str], &[&str]); 6] = [
            (&here, &["get", "seinodes", "--output=yaml"]),
            (&here, &["get", "pods,pvc,jobs", "--output=wide"]),
            (&here, &["get", "events", "--sort-by=.lastTimestamp"]),
            (&here, &["logs", "--selector=sei.io/node"]),
            (&operator, &["get", "pods", "--output=wide"]),
            (&operator, &["logs", "deployment/keelson-operator"]),
        ];
        let look = |(place, words): (&[&str], &[&str])| {
            let mut words = [place, words].concat();
            if words.contains(&"logs") {
                words.extend(all);
            }
            let said = match self.kubectl.run(&words) {
                Ok(said) => said,
                Err(error) => error.to_string(),
            };
            format!("--- kubectl {} ---\n{said}\n", words.join(" "))
        };
        looks.into_iter().map(look).collect()
    }

    /// The objects of a folder of the checkout, with images from where this installer has them.
    fn objects(&self, folder: &str) -> Result<Vec<Value>, Error> {
        let mut objects: Vec<Value> = read_folder(&cache::checkout().join(folder))?;
        for object in &mut objects {
            rename(object, &self.images);
        }
        Ok(objects)
    }
}

/// The one object of this kind and name.
fn one(objects: &[Value], kind: &str, name: &str) -> Result<Value, Error> {
    let found = objects
        .iter()
        .find(|it| it["kind"] == kind && it["metadata"]["name"] == name);
    let missing = || std::io::Error::from(std::io::ErrorKind::NotFound);
    found
        .cloned()
        .ok_or_else(missing)
        .doing(|| format!("{kind} {name} is in no file of the install"))
}

/// Gives every image of ours in an object its registry: fields named `image`, and settings that end
/// with `_IMAGE`.
fn rename(value: &mut Value, registry: &str) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields.iter_mut() {
                let is_image = name == "image" || name.ends_with("_IMAGE");
                match field.as_str().filter(|_| is_image) {
                    Some(image) => *field = json!(in_registry(image, registry)),
                    None => rename(field, registry),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, registry)),
        _ => {}
    }
}

/// An image without a registry, or with this machine's, in another one.
fn in_registry(image: &str, registry: &str) -> String {
    let name = image.strip_prefix("localhost/").unwrap_or(image);
    match name.contains('/') {
        true => image.to_owned(),
        false => format!("{registry}/{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_of_ours_are_renamed_and_others_are_left_alone() {
        for (image, expected) in [
            (
                "keelson-operator:0.1.0",
                "registry.example/keelson-operator:0.1.0",
            ),
            ("localhost/seid:v6.0.0", "registry.example/seid:v6.0.0"),
            ("other.example/seid:v6.0.0", "other.example/seid:v6.0.0"),
        ] {
            assert_eq!(in_registry(image, "registry.example"), expected);
        }
        let mut object = json!({
            "spec": { "containers": [{ "image": "a:1" }], "image": { "kept": true } },
            "data": { "SEI_SIDECAR_IMAGE": "localhost/b:2", "SEI_GENESIS_BUCKET": "c" },
        });
        rename(&mut object, "here");
        assert_eq!(
            object,
            json!({
                "spec": { "containers": [{ "image": "here/a:1" }], "image": { "kept": true } },
                "data": { "SEI_SIDECAR_IMAGE": "here/b:2", "SEI_GENESIS_BUCKET": "c" },
            })
        );
    }
}
