//! The types of OpenShift that a test installs on a plain cluster, as OpenShift publishes them.
//!
//! Nothing of OpenShift runs here: the API server keeps and checks its objects by the published
//! schemas, and that is what ours reads.

use crate::command::run;
use crate::error::{Doing, Error};
use crate::modules::{Module, alone};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

const MODULE: Module = Module {
    folder: "testbed/go/openshift",
    sources: &[],
    stamps: &[],
};

/// A CRD of the module: the name it is kept under, and where it is there.
type Published = (&'static str, &'static str);

const API_SERVERS: Published = (
    "apiservers.yaml",
    "config/v1/zz_generated.crd-manifests/0000_10_config-operator_01_apiservers-Default.crd.yaml",
);

/// What makes a cluster an OpenShift for those who ask, beside its settings.
const PLATFORM: [Published; 4] = [
    (
        "securitycontextconstraints.yaml",
        "security/v1/zz_generated.crd-manifests/0000_03_config-operator_01_securitycontextconstraints.crd.yaml",
    ),
    (
        "servicecas.yaml",
        "operator/v1/zz_generated.crd-manifests/0000_50_service-ca_02_servicecas.crd.yaml",
    ),
    (
        "consoles.yaml",
        "operator/v1/zz_generated.crd-manifests/0000_50_console_01_consoles.crd.yaml",
    ),
    (
        "consoleplugins.yaml",
        "console/v1/zz_generated.crd-manifests/90_consoleplugins.crd.yaml",
    ),
];

/// The CRD of `apiservers.config.openshift.io`, as YAML.
pub fn api_server_crd() -> Result<String, Error> {
    let crds = published(&[API_SERVERS])?;
    Ok(crds.into_iter().next().unwrap_or_default())
}

/// The same with the two fields that newer versions of OpenShift have, `groups` of a custom profile
/// and `tlsAdherence`. Derived, not OpenShift's: there they may be checked more closely.
pub fn derived_api_server_crd() -> Result<String, Error> {
    let text = api_server_crd()?;
    let mut crd: Value = serde_saphyr::from_str(&text).map_err(|error| Error::Command {
        doing: "reading the CRD of apiservers.config.openshift.io".to_owned(),
        status: error.to_string(),
        output: text.clone(),
    })?;
    let strings = json!({"type": "array", "items": {"type": "string"}});
    let spec = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
    let custom = format!("{spec}/tlsSecurityProfile/properties/custom/properties");
    for (place, field, schema) in [
        (custom.as_str(), "groups", strings),
        (spec, "tlsAdherence", json!({"type": "string"})),
    ] {
        let fields = crd.pointer_mut(place).and_then(Value::as_object_mut);
        let added = fields.map(|it| it.insert(field.to_owned(), schema));
        added.ok_or_else(|| Error::Command {
            doing: format!("adding {field} to the CRD of apiservers.config.openshift.io"),
            status: format!("there is no {place}"),
            output: text.clone(),
        })?;
    }
    Ok(crd.to_string())
}

/// The CRDs of SecurityContextConstraints, ServiceCAs, Consoles and ConsolePlugins, as YAML.
pub fn openshift_crds() -> Result<Vec<String>, Error> {
    published(&PLATFORM)
}

fn published(crds: &[Published]) -> Result<Vec<String>, Error> {
    let (_, _alone) = alone()?;
    let folder = MODULE.built()?;
    let read = |(name, from): &Published| {
        let kept = folder.join(name);
        if !kept.exists() {
            keep(&kept, from)?;
        }
        std::fs::read_to_string(&kept).doing(|| format!("{} could not be read", kept.display()))
    };
    crds.iter().map(read).collect()
}

fn keep(kept: &Path, from: &str) -> Result<(), Error> {
    let mut download = MODULE.go();
    download.args(["mod", "download", "-json", "github.com/openshift/api"]);
    let said: Value = serde_json::from_str(&run(download)?).unwrap_or_default();
    let from = PathBuf::from(said["Dir"].as_str().unwrap_or_default()).join(from);
    let partial = kept.with_extension("partial");
    let copied = (|| {
        let text = std::fs::read(&from)?;
        std::fs::create_dir_all(kept.parent().unwrap_or(kept))?;
        std::fs::write(&partial, text)?;
        std::fs::rename(&partial, kept)
    })();
    copied.doing(|| format!("{} could not be copied from its module", from.display()))
}
