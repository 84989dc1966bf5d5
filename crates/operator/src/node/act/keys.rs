//! Secrets of keys: checked before a pod mounts them, never changed and never shown.

use keelson_plan::Waiting;

use super::{Act, Done, Problem};
use crate::key::{self, Flaw};

impl Act<'_> {
    pub(super) async fn validate_signing_key(&self) -> Done {
        let Some(key) = self.validator().and_then(|it| it.signing_key.as_ref()) else {
            return Ok(());
        };
        let name = &key.secret.secret_name;
        let secret = self.eyes.secret(self.key, name).await?;
        judge(key::signing_key(secret.as_ref().as_ref(), name))
    }

    pub(super) async fn validate_node_key(&self) -> Done {
        let Some(key) = self.validator().and_then(|it| it.node_key.as_ref()) else {
            return Ok(());
        };
        let name = &key.secret.secret_name;
        let secret = self.eyes.secret(self.key, name).await?;
        judge(key::node_key(secret.as_ref().as_ref(), name))
    }

    pub(super) async fn validate_keyring(&self) -> Done {
        let Some(keyring) = self.validator().and_then(|it| it.operator_keyring.as_ref()) else {
            return Ok(());
        };
        let keyring = &keyring.secret;
        let secret = self.eyes.secret(self.key, &keyring.secret_name).await?;
        let at = keyring.passphrase_secret_ref.as_ref();
        let passphrase = match at {
            Some(at) => Some((at, self.eyes.secret(self.key, &at.secret_name).await?)),
            None => None,
        };
        judge(key::keyring(
            secret.as_ref().as_ref(),
            &keyring.secret_name,
            passphrase
                .as_ref()
                .map(|(at, secret)| (*at, secret.as_ref().as_ref())),
            &keyring.key_name,
        ))
    }

    fn validator(&self) -> Option<&keelson_api::validator::ValidatorSpec> {
        self.node.spec.validator.as_ref()
    }
}

fn judge(checked: Result<(), Flaw>) -> Done {
    checked.map_err(|flaw| match flaw.may_pass() {
        true => Waiting::Key {
            why: flaw.to_string(),
        }
        .into(),
        false => Problem::fatal(flaw.to_string()),
    })
}
