//! The commands of the node's own containers.
//!
//! What a person writes (the chain's name) reaches a shell in a variable and never as a part of the
//! script. No script contains `$(`, which Kubernetes would read before the shell does.

use crate::container::HOME;
use crate::node::Node;
use crate::pod::Kind;

/// Variable the chain's name is in.
pub(crate) const CHAIN_VARIABLE: &str = "SEI_CHAIN_ID";

/// Exit status of a node that stopped at its halt height.
const HALTED: i32 = 130;

/// Makes the home of a node that has none.
pub(crate) fn init() -> Vec<String> {
    let script = format!(
        r#"set -e
if [ -f {HOME}/config/genesis.json ]; then
  echo "there is a home in {HOME}, nothing to do"
else
  seid init "${CHAIN_VARIABLE}" --chain-id "${CHAIN_VARIABLE}" --home {HOME} --overwrite
fi
mkdir -p {HOME}/tmp
"#
    );
    ["/bin/sh", "-c", &script].map(str::to_owned).to_vec()
}

/// Waits at the gate, then becomes the node; a bootstrap pod stops at its height, which is success.
pub(crate) fn start(node: &Node<'_>, kind: Kind<'_>) -> Vec<String> {
    let port = node.sidecar_port;
    let last = match kind {
        Kind::Node => format!("exec seid start --home {HOME}\n"),
        Kind::Bootstrap(replay) => format!(
            r#"trap 'kill -TERM "$seid" 2>/dev/null' TERM INT
seid start --home {HOME} --halt-height {height} &
seid=$!
# A signal ends a wait and not the node: wait until it is gone.
while :; do
  wait "$seid"
  status=$?
  kill -0 "$seid" 2>/dev/null || break
done
if [ "$status" -eq {HALTED} ]; then
  echo "halted at height {height}"
  exit 0
fi
exit "$status"
"#,
            height = replay.halt_height,
        ),
    };
    let script = format!(
        r#"gate_is_open() (
  exec 3<>/dev/tcp/127.0.0.1/{port} || exit 1
  printf 'GET /v0/healthz HTTP/1.0\r\nHost: localhost\r\n\r\n' >&3
  read -r -t 5 _ status _ <&3 && [ "$status" = 200 ]
)
echo "waiting until the sidecar lets the node start"
until gate_is_open 2>/dev/null; do sleep 1; done
echo "starting the node"
{last}"#
    );
    ["/bin/bash", "-c", &script].map(str::to_owned).to_vec()
}
