//! An operator that runs inside the test, in the scene's namespace and nowhere else.
#![allow(dead_code, reason = "every test binary uses a part of it")]

use std::sync::Arc;

use k8s_openapi::api::core::v1::ServiceAccount;
use keelson_api::names::FieldManager;
use keelson_cluster::{Calls, Recorder, Standing};
use keelson_operator::metrics::Metrics;
use keelson_operator::node::controller::Controller;
use keelson_operator::node::points::Points;
use keelson_operator::node::world::{Scope, World};
use keelson_operator::platform::{Account, Gateway, Results, Settings};
use keelson_operator::sidecar::{ACCOUNT, Accounts, At, Requested, Sidecars};
use keelson_render::Platform;
use keelson_render::platform::Bucket;
use kube::Client;
use kube::api::PostParams;
use tokio::task::JoinHandle;

use crate::stage::Scene;

/// The settings of a platform in tests.
pub(crate) fn settings(platform: Platform, namespace: &str) -> Settings {
    Settings {
        render: platform,
        issuers: Vec::new(),
        rolls_outdated: false,
        namespace: namespace.to_owned(),
        pod: "operator".to_owned(),
        sidecar_client: Account {
            namespace: namespace.to_owned(),
            name: ACCOUNT.to_owned(),
        },
        gateway: Gateway {
            name: "gateway".to_owned(),
            namespace: "gateway".to_owned(),
            domain: "example.com".to_owned(),
            public_domain: None,
        },
        results: Results {
            bucket: Bucket {
                name: "results".to_owned(),
                region: "us-east-2".to_owned(),
            },
            prefix: "results/".to_owned(),
        },
    }
}

/// An operator; it ends at once when it is dropped, wherever it is.
pub(crate) struct Operator(JoinHandle<()>);

impl Drop for Operator {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Operator {
    /// Starts an operator in this scene.
    pub(crate) async fn start(scene: &Scene, platform: Platform) -> Self {
        let settings = settings(platform, scene.namespace());
        Self::with(scene, scene.operator_client(), settings, Points::default()).await
    }

    /// The same with settings, a client and someone at the points.
    pub(crate) async fn with(
        scene: &Scene,
        client: Client,
        settings: Settings,
        points: Points,
    ) -> Self {
        let scope = Scope::Namespace(scene.namespace().to_owned());
        let set = |controller: &mut Controller| controller.points = points;
        Self::within(scene, client, settings, scope, set).await
    }

    /// The same for all of a scope, with something of the controller set otherwise.
    pub(crate) async fn within(
        scene: &Scene,
        client: Client,
        settings: Settings,
        scope: Scope,
        set: impl FnOnce(&mut Controller),
    ) -> Self {
        let account = ServiceAccount {
            metadata: kube::api::ObjectMeta {
                name: Some(ACCOUNT.to_owned()),
                ..Default::default()
            },
            ..Default::default()
        };
        // Another operator of the scene may have made it.
        let _ = scene
            .api::<ServiceAccount>()
            .create(&PostParams::default(), &account)
            .await;
        let address = scene.stage().address();
        let accounts = Accounts::new(client.clone(), &settings.sidecar_client.namespace);
        let tokens = Requested::new(Arc::new(accounts));
        let sidecars = Sidecars::new(Arc::new(At(address)), Arc::new(tokens));
        let (recorder, scribe) =
            Recorder::new(client.clone(), FieldManager::Node.as_str(), "operator");
        let world = World::new();
        let metrics = Metrics::new(world.clone(), Standing::new());
        let policies = settings.render.access.is_some();
        let mut controller = Controller::new(
            Arc::new(settings),
            Calls::new(client.clone(), FieldManager::Node),
            world.clone(),
            sidecars,
            recorder,
            metrics,
            Points::default(),
        );
        set(&mut controller);
        Self(tokio::spawn(async move {
            let _watches = world.watch(&client, &scope, policies);
            tokio::join!(scribe, controller.run());
        }))
    }
}
