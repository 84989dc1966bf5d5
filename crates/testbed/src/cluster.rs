//! A cluster: which components it has, in which order they start, when it is ready, and what a
//! test may ask of it.
//!
//! Three sizes. `ControlPlane` is etcd, the API server and the controller manager: enough for types,
//! admission, watches and most controllers of ours. `Certificates` adds cert-manager, for what orders
//! certificates. `Pods` adds to that a node that runs real containers.
//! Each lives behind walls of its own (see `enclosure`), so any number run side by side.

mod outside;

use crate::components::{Components, NODE};
use crate::enclosure::{self, ADDRESS, Enclosure};
use crate::error::{Doing, Error};
use crate::faults::FaultProxy;
use crate::forward::forward;
use crate::host::Network;
use crate::kubeconfig::{Credential, client_config, kubeconfig};
use crate::kubectl::Kubectl;
use crate::node::{self, Pods};
use crate::packages;
use crate::pki::Authority;
use crate::process::{Launch, Process};
use crate::programs::{Program, Programs, pause};
use crate::state::State;
use crate::wait::until;
use crate::{cache, failure, manifests};
use kube::Client;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::runtime::Runtime;

/// The common name of a cluster's authority.
const AUTHORITY: &str = "keelson-testbed";

/// How much of a cluster.
#[derive(Clone, Debug)]
pub enum Size {
    /// Everything but nodes.
    ControlPlane,
    /// The same, with cert-manager.
    Certificates,
    /// With a node that runs pods.
    Pods(Pods),
}

/// A running cluster; dropping it removes every trace.
#[derive(Debug)]
pub struct Cluster {
    // Declared in the order of dropping: programs, then walls, then files.
    components: Vec<Process>,
    _background: Background,
    enclosure: Arc<Enclosure>,
    authority: Authority,
    token: String,
    api: SocketAddr,
    programs: Programs,
    state: State,
}

impl Cluster {
    /// Starts a cluster under a name of its own and waits until it is ready.
    pub async fn start(size: Size) -> Result<Self, Error> {
        failure::listen();
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        Self::named(&format!("test-{}-{number}", std::process::id()), size).await
    }

    /// Starts a cluster under this name; a second one of the same name is refused.
    pub async fn named(name: &str, size: Size) -> Result<Self, Error> {
        let programs = prepare(&size)?;
        let first = pause()?;
        let state = State::create(&cache::clusters(), name)?;
        let enclosure = Arc::new(Enclosure::raise(&first, enclosure::for_a_cluster)?);
        let background = Background::start()?;
        let target = SocketAddr::from((address(), 6443));
        let forwarder = forward(Arc::downgrade(&enclosure), target);
        let api = background
            .runtime()
            .spawn(forwarder)
            .await
            .unwrap_or_else(|error| {
                Err(Error::System {
                    doing: "the forwarder did not start".into(),
                    source: error.into(),
                })
            })?;
        let mut cluster = Self {
            components: Vec::new(),
            _background: background,
            enclosure,
            authority: Authority::new(AUTHORITY)?,
            token: random_token()?,
            api,
            programs,
            state,
        };
        cluster.state.write("kubeconfig", &cluster.kubeconfig())?;
        cluster.start_control_plane().await?;
        match size {
            Size::ControlPlane => {}
            Size::Certificates => cluster.start_cert_manager().await?,
            Size::Pods(pods) => cluster.start_node(&pods).await?,
        }
        Ok(cluster)
    }

    async fn start_control_plane(&mut self) -> Result<(), Error> {
        let parts = self.parts();
        let controller_manager = parts.kube_controller_manager()?;
        let launches = [parts.etcd(), parts.kube_apiserver()?];
        self.launch(launches)?;
        let client = self.client();
        let ready = http::Request::get("/readyz").body(Vec::new());
        let ready = ready.expect("a constant request");
        self.until("the API server", Duration::from_secs(60), async || {
            let answer = client.request_text(ready.clone()).await;
            answer.map(drop).map_err(|error| error.to_string())
        })
        .await?;
        // It ends where it finds no API server, and where the server's own roles are not there yet.
        self.launch([controller_manager])?;
        self.until(
            "the controller manager",
            Duration::from_secs(30),
            async || manifests::takes_pods(&client, "default").await,
        )
        .await
    }

    async fn start_node(&mut self, pods: &Pods) -> Result<(), Error> {
        let parts = self.parts();
        let launches = [
            parts.containerd()?,
            parts.kube_scheduler()?,
            parts.kubelet()?,
            parts.kube_proxy()?,
            parts.coredns()?,
        ];
        node::prepare(&self.state, &self.enclosure)?;
        let [containerd, others @ ..] = launches;
        self.launch([containerd])?;
        self.until("containerd", Duration::from_secs(20), async || {
            node::containerd_answers(&self.enclosure)
        })
        .await?;
        for image in node::images(pods)? {
            self.import(&image)?;
        }
        self.launch(others)?;
        self.start_cert_manager().await?;
        let client = self.client();
        node::storage(&client, &self.state, pods).await?;
        self.until("the node", Duration::from_secs(60), async || {
            node::ready(&client).await
        })
        .await?;
        node::label(&client, &pods.node_labels).await
    }

    /// Its own types first: it gives up where they are missing.
    async fn start_cert_manager(&mut self) -> Result<(), Error> {
        let cert_manager = self.parts().cert_manager()?;
        let client = self.client();
        manifests::apply_crds(&client, &self.programs.cert_manager_crds()).await?;
        manifests::ensure_namespace(&client, "cert-manager").await?;
        self.launch([cert_manager])
    }

    fn parts(&self) -> Components<'_> {
        Components {
            state: &self.state,
            programs: &self.programs,
            authority: &self.authority,
            token: &self.token,
        }
    }

    fn launch(&mut self, launches: impl IntoIterator<Item = Launch>) -> Result<(), Error> {
        for launch in launches {
            let process = Process::new(launch, self.state.folder(), Arc::clone(&self.enclosure));
            process.start()?;
            self.components.push(process);
        }
        Ok(())
    }

    /// Waits, but not for something that a component's end has made impossible.
    async fn until(
        &self,
        what: &str,
        after: Duration,
        look: impl AsyncFnMut() -> Result<(), String>,
    ) -> Result<(), Error> {
        let ended = futures::future::select_all(
            self.components
                .iter()
                .map(|component| Box::pin(component.ended())),
        );
        tokio::select! {
            done = until(what, after, look) => done,
            _ = ended => {
                let failure = self.components.iter().find_map(Process::failure);
                Err(failure.unwrap_or_else(|| Error::Deadline {
                    what: what.into(), after, last: "a component ended".into(),
                }))
            }
        }
    }
}

/// What a test asks of a running cluster.
impl Cluster {
    /// A client that may do everything. It belongs to the runtime it is made on.
    pub fn client(&self) -> Client {
        let config = client_config(self.api, self.authority.certificate(), &self.token);
        Client::try_from(config).expect("a configuration of our own making")
    }

    /// The kubeconfig of the same, for other processes.
    pub fn kubeconfig(&self) -> String {
        let url = format!("https://{}", self.api);
        kubeconfig(
            &url,
            self.authority.certificate(),
            &Credential::Token(&self.token),
        )
    }

    /// A proxy before the API server that misbehaves as the test scripts it.
    pub fn faults(&self) -> Result<FaultProxy, Error> {
        Ok(FaultProxy::start(self.api, &self.authority, &self.token)?)
    }

    /// The same where the hosts of a network find it: behind their gateway, as an API server mostly is,
    /// so that a host may lose one and keep the other. From outside that network nobody reaches it.
    pub fn faults_at(&self, network: &Network) -> Result<FaultProxy, Error> {
        let place = network.beyond()?;
        let (api, authority, token) = (self.api, &self.authority, &self.token);
        Ok(FaultProxy::start_at(place, api, authority, token)?)
    }

    /// The authority that signed the cluster's certificates, for a test's own listeners.
    pub fn authority(&self) -> &Authority {
        &self.authority
    }

    /// A component, to stop, kill, freeze and start again.
    ///
    /// # Panics
    /// Where this size of cluster has no such component.
    pub fn component(&self, name: &str) -> &Process {
        let found = self
            .components
            .iter()
            .find(|component| component.name() == name);
        found.unwrap_or_else(|| panic!("this cluster has no component {name:?}"))
    }

    /// Every component, in the order they were started.
    pub fn components(&self) -> &[Process] {
        &self.components
    }

    /// A listener inside the cluster's network, where the API server and pods reach it at the
    /// node's address. See [`Cluster::expose`] for a Service before it.
    pub fn listen(&self) -> Result<TcpListener, Error> {
        self.enclosure
            .run(|| TcpListener::bind((address(), 0)))
            .doing(|| "no port could be had inside the cluster's network")
    }

    /// Puts a Service without a selector before a listener made by [`Cluster::listen`]: this is
    /// how a webhook that runs inside the test is reached.
    pub async fn expose(&self, namespace: &str, service: &str, port: u16) -> Result<(), Error> {
        manifests::expose(&self.client(), namespace, service, ADDRESS, port).await
    }

    /// Installs the types of `deploy/crds` and waits until they are served.
    pub async fn install_crds(&self) -> Result<(), Error> {
        manifests::apply_crds(&self.client(), &cache::checkout().join("deploy/crds")).await
    }

    /// Takes an image, an OCI layout in a tar file, into the node's container runtime.
    pub fn import(&self, image: &Path) -> Result<(), Error> {
        node::import(&self.enclosure, image)
    }

    /// Gives an image of the node's container runtime another name besides the one it has.
    pub fn tag(&self, image: &str, also: &str) -> Result<(), Error> {
        node::tag(&self.enclosure, image, also)
    }

    /// kubectl, talking to this cluster.
    pub fn kubectl(&self) -> Kubectl {
        let kubeconfig = self.folder().join("kubeconfig");
        Kubectl::new(self.program(Program::Kubectl), &kubeconfig)
    }

    pub(crate) fn enclosure(&self) -> &Arc<Enclosure> {
        &self.enclosure
    }

    /// The name of the node in a cluster that runs pods.
    pub fn node(&self) -> &'static str {
        NODE
    }

    /// The cluster's files: logs, keys, kubeconfig.
    pub fn folder(&self) -> &Path {
        self.state.folder()
    }

    /// The first process of the cluster's namespaces: `nsenter --target` takes it.
    pub fn first_process(&self) -> i32 {
        self.enclosure.first().as_raw()
    }

    /// The file of one of the cluster's programs.
    pub fn program(&self, program: Program) -> PathBuf {
        self.programs.path(program)
    }

    /// The last lines of every component's log.
    pub fn tails(&self, lines: usize) -> String {
        let tail = |it: &Process| format!("--- {} ---\n{}\n", it.name(), it.tail(lines));
        self.components.iter().map(tail).collect()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        failure::tell(|| self.tails(20));
    }
}

/// Everything slow, before anything is started: packages and programs.
pub(crate) fn prepare(size: &Size) -> Result<Programs, Error> {
    packages::require_root()?;
    packages::provide(packages::CONTROL_PLANE)?;
    match size {
        Size::ControlPlane => Programs::prepare(&Program::CONTROL_PLANE),
        Size::Certificates => Programs::prepare(&Program::CERTIFICATES),
        Size::Pods(_) => {
            packages::provide(packages::PODS)?;
            Programs::prepare(&Program::ALL)
        }
    }
}

/// A runtime of the cluster's own: the forwarder outlives the runtime of the test that happened to
/// start a shared cluster.
#[derive(Debug)]
struct Background(Option<Runtime>);

impl Background {
    fn start() -> Result<Self, Error> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("cluster")
            .enable_all()
            .build()
            .doing(|| "the cluster's own runtime could not be started")?;
        Ok(Self(Some(runtime)))
    }

    fn runtime(&self) -> &Runtime {
        self.0.as_ref().expect("it is there until it is dropped")
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            // A runtime may not wait for its tasks inside another one's.
            runtime.shutdown_background();
        }
    }
}

fn random_token() -> Result<String, Error> {
    let mut bytes = [0_u8; 16];
    std::fs::File::open("/dev/urandom")
        .and_then(|mut source| std::io::Read::read_exact(&mut source, &mut bytes))
        .doing(|| "no randomness could be read for the administrator's token")?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn address() -> Ipv4Addr {
    ADDRESS.parse().expect("a constant address")
}
