//! The types of OpenShift that a test installs on a plain cluster, as OpenShift publishes them.
//!
//! Nothing of OpenShift runs here: the API server keeps and checks its objects by the published
//! schemas, and that is what ours reads.

use crate::command::run;
use crate::error::{Doing, Error};
use crate::modules::{Module, alone};
use std::path::{Path, PathBuf};

const MODULE: Module = Module {
    folder: "testbed/go/openshift",
    sources: &[],
    stamps: &[],
};

/// The CRD of `APIServer`, in the module.
const API_SERVERS: &str =
    "config/v1/zz_generated.crd-manifests/0000_10_config-operator_01_apiservers-Default.crd.yaml";

/// The CRD of `apiservers.config.openshift.io`, as YAML.
pub fn api_server_crd() -> Result<String, Error> {
    let (_, _alone) = alone()?;
    let kept = MODULE.built()?.join("apiservers.yaml");
    if !kept.exists() {
        keep(&kept)?;
    }
    std::fs::read_to_string(&kept).doing(|| format!("{} could not be read", kept.display()))
}

fn keep(kept: &Path) -> Result<(), Error> {
    let mut download = MODULE.go();
    download.args(["mod", "download", "-json", "github.com/openshift/api"]);
    let said: serde_json::Value = serde_json::from_str(&run(download)?).unwrap_or_default();
    let from = PathBuf::from(said["Dir"].as_str().unwrap_or_default()).join(API_SERVERS);
    let partial = kept.with_extension("partial");
    let copied = (|| {
        let text = std::fs::read(&from)?;
        std::fs::create_dir_all(kept.parent().unwrap_or(kept))?;
        std::fs::write(&partial, text)?;
        std::fs::rename(&partial, kept)
    })();
    copied.doing(|| format!("{} could not be copied from its module", from.display()))
}
