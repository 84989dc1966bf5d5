//! Policies a host starts with: files of a mounted folder, for a network that has to be there before
//! the API server can be reached.
//!
//! They count only until the API server was heard of. A file that is no policy is named and passed
//! over: the others may be what the host needs.

use std::fs;
use std::path::Path;

use keelson_api::NodeNetworkConfigurationPolicy;
use sha2::{Digest, Sha256};

use super::records::Policy;

/// What the uid of such a policy begins with.
const UID: &str = "bootstrap-";

/// Whether a policy is one of these.
pub fn is_bootstrap(uid: &str) -> bool {
    uid.starts_with(UID)
}

/// The policies of a folder, and what is wrong with the other files.
pub fn read(folder: &Path) -> (Vec<Policy>, Vec<String>) {
    let (mut policies, mut troubles) = (Vec::new(), Vec::new());
    let Ok(files) = fs::read_dir(folder) else {
        // It is optional.
        return (policies, troubles);
    };
    let mut paths: Vec<_> = files.filter_map(|it| Some(it.ok()?.path())).collect();
    paths.sort();
    for path in paths {
        let ending = path.extension().and_then(|it| it.to_str());
        if !matches!(ending, Some("yaml" | "yml" | "json")) {
            continue;
        }
        let text = fs::read_to_string(&path).map_err(|error| error.to_string());
        match text.and_then(|text| policy(&text)) {
            Ok(policy) => policies.push(policy),
            Err(why) => troubles.push(format!("{} is no policy: {why}", path.display())),
        }
    }
    (policies, troubles)
}

fn policy(text: &str) -> Result<Policy, String> {
    let read: NodeNetworkConfigurationPolicy =
        serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
    let name = read.metadata.name.ok_or("it has no metadata.name")?;
    Ok(Policy {
        uid: format!("{UID}{name}"),
        name,
        generation: generation(text),
        created: None,
        revert_on_delete: false,
        unreadable: None,
        spec: read.spec,
    })
}

/// A number that is another for another text.
fn generation(text: &str) -> i64 {
    let digest: [u8; 32] = Sha256::digest(text).into();
    let mut first = [0; 8];
    first.copy_from_slice(&digest[..8]);
    i64::from_be_bytes(first) & i64::MAX
}
