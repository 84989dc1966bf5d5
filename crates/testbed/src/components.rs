//! The words each component is started with, and the files it reads. Order and waiting are the
//! cluster's; why a flag is there stands beside it.

use crate::enclosure::ADDRESS;
use crate::error::Error;
use crate::kubeconfig::{Credential, kubeconfig};
use crate::pki::{Authority, signing_pair};
use crate::process::Launch;
use crate::programs::{Program, Programs};
use crate::state::State;
use std::path::{Path, PathBuf};

/// The node of a cluster that runs pods.
pub(crate) const NODE: &str = "node-1";
/// The kubelet's container runtime, inside.
pub(crate) const CONTAINERD_SOCKET: &str = "/run/containerd/containerd.sock";
/// What clients inside use; `kubernetes.default` in pods leads to the same server.
pub(crate) const API_SERVER: &str = "https://10.77.0.1:6443";

const ETCD: &str = "http://127.0.0.1:2379";

/// Everything the launches are made from.
#[derive(Debug)]
pub(crate) struct Components<'a> {
    pub(crate) state: &'a State,
    pub(crate) programs: &'a Programs,
    pub(crate) authority: &'a Authority,
    pub(crate) token: &'a str,
}

impl Components<'_> {
    pub(crate) fn etcd(&self) -> Launch {
        self.launch(
            Program::Etcd,
            &[
                // A test's data need not survive a power cut.
                "--unsafe-no-fsync".into(),
                format!("--data-dir={}", self.folder().join("etcd").display()),
                format!("--listen-client-urls={ETCD}"),
                format!("--advertise-client-urls={ETCD}"),
                "--listen-peer-urls=http://127.0.0.1:2380".into(),
                "--log-level=warn".into(),
            ],
        )
    }

    pub(crate) fn kube_apiserver(&self) -> Result<Launch, Error> {
        let names = [
            "127.0.0.1",
            "localhost",
            ADDRESS,
            "10.96.0.1",
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
            "kubernetes.default.svc.cluster.local",
        ];
        let server = self.authority.server(&names)?;
        let kubelet_client = self
            .authority
            .client("kube-apiserver", Some("system:masters"))?;
        let ca = self.write("pki/ca.crt", self.authority.certificate())?;
        let server_certificate = self.write("pki/apiserver.crt", &server.certificate)?;
        let server_key = self.write("pki/apiserver.key", &server.key)?;
        let client_certificate =
            self.write("pki/kubelet-client.crt", &kubelet_client.certificate)?;
        let client_key = self.write("pki/kubelet-client.key", &kubelet_client.key)?;
        let (private, public) = signing_pair()?;
        let accounts_private = self.write("pki/service-accounts.key", &private)?;
        let accounts_public = self.write("pki/service-accounts.pub", &public)?;
        let tokens = format!("{},admin,admin,system:masters\n", self.token);
        let tokens = self.write("pki/tokens.csv", &tokens)?;
        Ok(self.launch(
            Program::KubeApiserver,
            &[
                format!("--etcd-servers={ETCD}"),
                "--secure-port=6443".into(),
                format!("--advertise-address={ADDRESS}"),
                format!("--tls-cert-file={server_certificate}"),
                format!("--tls-private-key-file={server_key}"),
                format!("--client-ca-file={ca}"),
                format!("--token-auth-file={tokens}"),
                "--service-account-issuer=https://kubernetes.default.svc".into(),
                format!("--service-account-key-file={accounts_public}"),
                format!("--service-account-signing-key-file={accounts_private}"),
                "--service-cluster-ip-range=10.96.0.0/16".into(),
                "--authorization-mode=Node,RBAC".into(),
                "--enable-admission-plugins=NodeRestriction".into(),
                "--allow-privileged=true".into(),
                // Without it every component that delegates complains in its log, for ever.
                format!("--requestheader-client-ca-file={ca}"),
                "--requestheader-allowed-names=front-proxy".into(),
                "--requestheader-username-headers=X-Remote-User".into(),
                "--requestheader-group-headers=X-Remote-Group".into(),
                "--requestheader-extra-headers-prefix=X-Remote-Extra-".into(),
                // Webhooks are reached through EndpointSlices, with or without a kube-proxy.
                "--enable-aggregator-routing=true".into(),
                format!("--kubelet-client-certificate={client_certificate}"),
                format!("--kubelet-client-key={client_key}"),
                // A node's name is in no DNS that the API server asks.
                "--kubelet-preferred-address-types=InternalIP".into(),
            ],
        ))
    }

    pub(crate) fn kube_controller_manager(&self) -> Result<Launch, Error> {
        let kubeconfig = self.kubeconfig("system:kube-controller-manager", None)?;
        let pki = self.folder().join("pki");
        let mut args = delegating(&kubeconfig);
        args.extend([
            format!("--root-ca-file={}", pki.join("ca.crt").display()),
            format!(
                "--service-account-private-key-file={}",
                pki.join("service-accounts.key").display()
            ),
            "--use-service-account-credentials=true".into(),
            // The defaults (20 and 30) make a test that creates a hundred objects wait.
            "--kube-api-qps=500".into(),
            "--kube-api-burst=1000".into(),
        ]);
        Ok(self.launch(Program::KubeControllerManager, &args))
    }

    pub(crate) fn kube_scheduler(&self) -> Result<Launch, Error> {
        let kubeconfig = self.kubeconfig("system:kube-scheduler", None)?;
        Ok(self.launch(Program::KubeScheduler, &delegating(&kubeconfig)))
    }

    pub(crate) fn containerd(&self) -> Result<Launch, Error> {
        let folder = self.folder();
        let cni = folder.join("cni");
        std::fs::create_dir_all(&cni).map_err(|source| Error::System {
            doing: format!("{} could not be made", cni.display()),
            source,
        })?;
        self.write(
            "cni/10-testbed.conflist",
            include_str!("../files/cni.conflist"),
        )?;
        let text = include_str!("../files/containerd.toml")
            .replace("@ROOT@", &folder.join("containerd").display().to_string())
            .replace("@SOCKET@", CONTAINERD_SOCKET)
            .replace("@CNI@", &cni.display().to_string());
        let config = self.write("containerd.toml", &text)?;
        Ok(Launch {
            name: "containerd",
            program: PathBuf::from("containerd"),
            args: vec!["--config".into(), config],
            env: Vec::new(),
        })
    }

    pub(crate) fn kubelet(&self) -> Result<Launch, Error> {
        let kubeconfig = self.kubeconfig(&format!("system:node:{NODE}"), Some("system:nodes"))?;
        let folder = self.folder();
        let text = include_str!("../files/kubelet.yaml")
            .replace("@SOCKET@", CONTAINERD_SOCKET)
            .replace("@FOLDER@", &folder.display().to_string())
            .replace("@CGROUP@", &self.state.cgroup())
            .replace("@ADDRESS@", ADDRESS);
        let config = self.write("kubelet.yaml", &text)?;
        Ok(self.launch(
            Program::Kubelet,
            &[
                format!("--config={config}"),
                format!("--kubeconfig={kubeconfig}"),
                format!("--root-dir={}", folder.join("kubelet").display()),
                format!("--cert-dir={}", folder.join("kubelet/pki").display()),
                format!("--hostname-override={NODE}"),
                format!("--node-ip={ADDRESS}"),
            ],
        ))
    }

    pub(crate) fn kube_proxy(&self) -> Result<Launch, Error> {
        let kubeconfig = self.kubeconfig("system:kube-proxy", None)?;
        let text = include_str!("../files/kube-proxy.yaml")
            .replace("@KUBECONFIG@", &kubeconfig)
            .replace("@NODE@", NODE);
        let config = self.write("kube-proxy.yaml", &text)?;
        Ok(self.launch(Program::KubeProxy, &[format!("--config={config}")]))
    }

    pub(crate) fn coredns(&self) -> Result<Launch, Error> {
        let kubeconfig = self.kubeconfig("coredns", Some("system:masters"))?;
        let text = include_str!("../files/Corefile")
            .replace("@KUBECONFIG@", &kubeconfig)
            .replace("@ADDRESS@", ADDRESS);
        let config = self.write("Corefile", &text)?;
        Ok(self.launch(Program::Coredns, &["-conf".into(), config]))
    }

    pub(crate) fn cert_manager(&self) -> Result<Launch, Error> {
        let kubeconfig = self.kubeconfig("cert-manager", Some("system:masters"))?;
        Ok(self.launch(
            Program::CertManager,
            &[format!("--kubeconfig={kubeconfig}")],
        ))
    }

    /// Writes the kubeconfig of a user inside and returns its path.
    fn kubeconfig(&self, user: &str, group: Option<&str>) -> Result<String, Error> {
        let identity = self.authority.client(user, group)?;
        let who = Credential::Certificate(&identity);
        let text = kubeconfig(API_SERVER, self.authority.certificate(), &who);
        self.write(&format!("pki/{}.kubeconfig", user.replace(':', "-")), &text)
    }

    fn launch(&self, program: Program, args: &[String]) -> Launch {
        Launch {
            name: program.name(),
            program: self.programs.path(program),
            args: args.to_vec(),
            // Memory is at hand where tests run, processors are not: a quarter of what an API server
            // does under load is to collect garbage.
            env: vec![("GOGC".to_owned(), "300".to_owned())],
        }
    }

    fn folder(&self) -> &Path {
        self.state.folder()
    }

    fn write(&self, name: &str, text: &str) -> Result<String, Error> {
        self.state.write(name, text)
    }
}

/// Flags of a component that asks the API server who its own callers are. There is one of each,
/// so none needs to be elected.
fn delegating(kubeconfig: &str) -> Vec<String> {
    vec![
        format!("--kubeconfig={kubeconfig}"),
        format!("--authentication-kubeconfig={kubeconfig}"),
        format!("--authorization-kubeconfig={kubeconfig}"),
        "--bind-address=127.0.0.1".into(),
        "--leader-elect=false".into(),
    ]
}
