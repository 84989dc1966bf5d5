//! The files of `examples/policies`, and what they say about where they can be tried.

use keelson_api::NodeNetworkConfigurationPolicy;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// One policy in its file.
pub(crate) struct Example {
    pub(crate) file: String,
    #[allow(dead_code, reason = "each test binary uses its part")]
    pub(crate) text: String,
    pub(crate) object: Value,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/policies")
}

/// Every policy, by the names of the files.
pub(crate) fn all() -> Vec<Example> {
    let entries = std::fs::read_dir(folder()).expect("the folder of policies");
    let mut files: Vec<String> = entries
        .map(|it| {
            it.expect("an entry")
                .file_name()
                .into_string()
                .expect("a name")
        })
        .filter(|it| it.ends_with(".yaml"))
        .collect();
    files.sort();
    files.iter().map(|it| named(it)).collect()
}

/// The policy in this file.
pub(crate) fn named(file: &str) -> Example {
    let read = std::fs::read_to_string(folder().join(file));
    let text = read.unwrap_or_else(|error| panic!("{file}: {error}"));
    let object = serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{file}: {error}"));
    Example {
        file: file.to_owned(),
        text,
        object,
    }
}

impl Example {
    pub(crate) fn name(&self) -> String {
        let name = self.object["metadata"]["name"].as_str();
        name.expect("a name").to_owned()
    }

    pub(crate) fn policy(&self) -> NodeNetworkConfigurationPolicy {
        let policy = serde_json::from_value(self.object.clone());
        policy.unwrap_or_else(|error| panic!("{}: {error}", self.file))
    }

    /// Whether the kernel of the tests has every kind of device it needs.
    pub(crate) fn is_for_this_kernel(&self) -> bool {
        let tried = &self.object["metadata"]["labels"]["keelson.io/tested-on"];
        match tried.as_str() {
            Some("host") => true,
            Some("second-kernel") => false,
            other => panic!("{} is tried on {other:?}", self.file),
        }
    }

    /// The NICs a host must have for it, beside the one that leads out.
    pub(crate) fn nics(&self) -> Vec<&str> {
        self.noted("keelson.io/needs-nics")
    }

    /// Those of them in whose network somebody answers DHCP.
    pub(crate) fn nics_with_dhcp(&self) -> Vec<&str> {
        self.noted("keelson.io/needs-dhcp")
    }

    /// The interfaces that are to have an address by DHCP.
    pub(crate) fn leased(&self) -> Vec<&str> {
        let interfaces = self.object["spec"]["desiredState"]["interfaces"].as_array();
        let leased = |it: &&Value| it["ipv4"]["dhcp"] == true;
        let leased = interfaces.into_iter().flatten().filter(leased);
        leased.filter_map(|it| it["name"].as_str()).collect()
    }

    /// The policies it is written to follow, the first first.
    pub(crate) fn earlier(&self) -> Vec<Example> {
        let before = self.noted("keelson.io/comes-after");
        let before = before.into_iter().map(named);
        before
            .flat_map(|it| it.earlier().into_iter().chain([it]))
            .collect()
    }

    fn noted(&self, annotation: &str) -> Vec<&str> {
        let noted = self.object["metadata"]["annotations"][annotation].as_str();
        noted.into_iter().flat_map(|it| it.split(',')).collect()
    }
}
