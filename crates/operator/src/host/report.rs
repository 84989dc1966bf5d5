//! The status of an NMState, written where it says something else than before.
//!
//! Always by server-side apply and always the whole list, so that no writer's leftovers stay.

use keelson_api::NMState;
use keelson_api::condition::HostCondition;
use keelson_cluster::Key;
use kube::Resource;
use kube::api::ApiResource;
use serde_json::json;

use super::controller::Controller;
use super::status::same;

/// The conditions an NMState has.
pub(super) fn before(nmstate: &NMState) -> &[HostCondition] {
    nmstate
        .status
        .as_ref()
        .map(|it| it.conditions.as_slice())
        .unwrap_or_default()
}

/// Writes conditions, unless they say what stands there already.
pub(super) async fn write(
    controller: &Controller,
    nmstate: &NMState,
    said: Vec<HostCondition>,
) -> Result<(), String> {
    let generation = nmstate.metadata.generation;
    let observed = nmstate
        .status
        .as_ref()
        .and_then(|it| it.observed_generation);
    if same(before(nmstate), &said) && observed == generation {
        return Ok(());
    }
    let resource = ApiResource::erase::<NMState>(&());
    let status = json!({
        "apiVersion": NMState::api_version(&()),
        "kind": NMState::kind(&()),
        "metadata": {"name": nmstate.metadata.name},
        "status": {"observedGeneration": generation, "conditions": said},
    });
    let written = controller.calls.apply_status_as(&resource, &status).await;
    let Some(written) = written.map_err(|error| error.to_string())? else {
        return Ok(());
    };
    let version = written
        .metadata
        .resource_version
        .clone()
        .unwrap_or_default();
    let written: Option<NMState> = written.try_parse().ok();
    if let Some(written) = written {
        controller
            .world
            .nmstates
            .note(Key::of(&written), &version, written);
    }
    Ok(())
}
