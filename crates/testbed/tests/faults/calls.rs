//! The record of calls: exact, and good for saying what was not called.

use crate::stage::{Stage, begin_create, create, map};
use anyhow::Result;
use keelson_testbed::{
    Program,
    faults::{Fault, On, Verb},
};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::json;
use tokio::process::Command;

#[tokio::test]
async fn every_call_is_recorded_with_verb_object_and_code() -> Result<()> {
    let stage = Stage::new("record").await;
    let client = stage.faults.client();
    let maps = stage.maps(client.clone());
    let apply = PatchParams::apply("test").force();

    client.apiserver_version().await?;
    let made = create(&maps, "a").await?;
    maps.get("a").await?;
    assert!(maps.get_opt("missing").await?.is_none());
    maps.list(&ListParams::default()).await?;
    maps.replace("a", &PostParams::default(), &made).await?;
    let patch = json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": { "k": "v" } });
    maps.patch("a", &apply, &Patch::Apply(patch)).await?;
    assert!(create(&maps, "a").await.is_err());
    maps.delete("a", &DeleteParams::default()).await?;
    let (delete, all) = (DeleteParams::default(), ListParams::default());
    maps.delete_collection(&delete, &all).await?;

    assert_eq!(
        stage.calls(),
        [
            "get /version 200",
            "create configmaps a 201",
            "get configmaps a 200",
            "get configmaps missing 404",
            "list configmaps 200",
            "update configmaps a 200",
            "patch configmaps a 200",
            "create configmaps a 409",
            "delete configmaps a 200",
            "deletecollection configmaps 200",
        ]
    );
    Ok(())
}

#[tokio::test]
async fn what_was_not_called_shows_in_the_record() -> Result<()> {
    let stage = Stage::new("absence").await;
    let maps = stage.through();
    create(&maps, "before").await?;
    assert_eq!(stage.faults.writes().len(), 1);

    stage.faults.forget();
    maps.get("before").await?;
    maps.list(&ListParams::default()).await?;
    assert_eq!(stage.faults.writes(), []);
    assert_eq!(stage.faults.calls().len(), 2);

    create(&maps, "after").await?;
    let writes = stage.faults.writes();
    assert_eq!(writes.len(), 1);
    assert_eq!(writes[0].verb, Verb::Create);
    assert_eq!(writes[0].name.as_deref(), Some("after"));
    assert_eq!(writes[0].namespace.as_deref(), Some(stage.namespace.name()));
    Ok(())
}

#[tokio::test]
async fn a_call_can_be_awaited_and_is_recorded_before_it_is_answered() -> Result<()> {
    let stage = Stage::new("await").await;
    let hole = stage
        .faults
        .inject(Fault::BlackHole, On::writes().name("lost"));
    let lost = begin_create(&stage.through(), "lost");
    let wanted = |call: &keelson_testbed::faults::Call| call.name.as_deref() == Some("lost");
    stage.faults.called("the creation of lost", wanted).await?;
    assert_eq!(stage.calls(), ["create configmaps lost unanswered"]);
    drop(hole);
    assert!(lost.await?.is_err());
    assert_eq!(stage.calls(), ["create configmaps lost unanswered"]);
    Ok(())
}

#[tokio::test]
async fn another_process_calls_through_the_proxy_by_its_kubeconfig() -> Result<()> {
    let stage = Stage::new("kubectl").await;
    create(&stage.past(), "a").await?;
    let file = tempfile(&stage, "proxy.kubeconfig", &stage.faults.kubeconfig())?;
    let output = Command::new(stage.cluster.program(Program::Kubectl))
        .args([
            "get",
            "configmap",
            "a",
            "-o",
            "name",
            "-n",
            stage.namespace.name(),
        ])
        .arg("--kubeconfig")
        .arg(&file)
        .arg("--cache-dir")
        .arg(file.with_extension("cache"))
        .output()
        .await?;
    let errors = String::from_utf8(output.stderr)?;
    assert_eq!(
        String::from_utf8(output.stdout)?,
        "configmap/a\n",
        "{errors}"
    );
    assert!(stage.calls().contains(&"get configmaps a 200".to_string()));
    Ok(())
}

/// A file in the cluster's folder, which goes with the cluster.
fn tempfile(stage: &Stage, name: &str, content: &str) -> Result<std::path::PathBuf> {
    let path = stage.cluster.folder().join(name);
    std::fs::write(&path, content)?;
    Ok(path)
}

#[tokio::test]
async fn an_object_the_server_names_is_created_without_a_name_in_the_record() -> Result<()> {
    let stage = Stage::new("generated").await;
    let mut object = map("");
    object.metadata.name = None;
    object.metadata.generate_name = Some("made-".into());
    let made = stage
        .through()
        .create(&PostParams::default(), &object)
        .await?;
    assert!(stage.stored(&made.metadata.name.unwrap_or_default()).await);
    assert_eq!(stage.faults.calls()[0].name, None);
    Ok(())
}
