//! Condition types of a SeiNode and the reasons they may have.
//!
//! Both are API: tools wait for them and alerts match them. Causes of a plan are not reasons; they
//! stand in the message and in `status.plan.causes`.

use crate::condition::reasons;
use crate::vocabulary::vocabulary;

vocabulary! {
    /// Condition types of a SeiNode. All are present from the first reconcile on.
    pub enum NodeCondition {
        /// The pod is ready and the process serves.
        Ready => "Ready",
        /// The node follows the head of the chain.
        Synced => "Synced",
        /// The operator works towards the spec.
        Reconciling => "Reconciling",
        /// The operator cannot get further by itself; the message names what it waits for.
        Stalled => "Stalled",
        /// The spec can be carried out.
        SpecValid => "SpecValid",
        /// The operator leaves the node as it is.
        Paused => "Paused",
        /// A change of the running node is under way.
        NodeUpdateInProgress => "NodeUpdateInProgress",
        /// The pod was made by another template than today's operator would make; it is left alone
        /// until something else rolls it.
        TemplateOutdated => "TemplateOutdated",
        /// The process runs with the peers of the spec.
        PeersApplied => "PeersApplied",
        /// The sidecar answers and has approved the start of the process.
        SidecarReady => "SidecarReady",
        /// The certificate of the sidecar is there and fits.
        SidecarTlsSecretReady => "SidecarTLSSecretReady",
        /// The imported volume claim can be used.
        ImportPvcReady => "ImportPVCReady",
        /// The Secret of the signing key is there and fits.
        SigningKeyReady => "SigningKeyReady",
        /// The Secret of the node key is there and fits.
        NodeKeyReady => "NodeKeyReady",
        /// The Secrets of the operator's keyring are there and fit.
        OperatorKeyringReady => "OperatorKeyringReady",
    }
}

vocabulary! {
    /// Reasons of a SeiNode's conditions.
    pub enum NodeReason {
        /// The condition does not apply to this spec.
        NotApplicable => "NotApplicable",
        /// Nothing has been observed yet.
        NotObserved => "NotObserved",
        /// The pod is ready.
        NodeReady => "NodeReady",
        /// The pod is not ready.
        PodNotReady => "PodNotReady",
        /// The node is being set up for the first time.
        Initializing => "Initializing",
        /// The node is being deleted.
        Terminating => "Terminating",
        /// The node follows the head of the chain.
        CaughtUp => "CaughtUp",
        /// The node is behind the head of the chain.
        CatchingUp => "CatchingUp",
        /// A plan is being carried out.
        PlanActive => "PlanActive",
        /// The node is as the spec asks.
        Settled => "Settled",
        /// A plan failed; it is tried again after a pause that grows.
        PlanFailed => "PlanFailed",
        /// A task waits past its deadline; the message names what for.
        DeadlineExceeded => "DeadlineExceeded",
        /// An image does not start and was put back.
        ImageNotStarting => "ImageNotStarting",
        /// Nothing holds the node up.
        NotStalled => "NotStalled",
        /// The spec can be carried out.
        Valid => "Valid",
        /// The spec cannot be carried out; the message says what to change.
        Invalid => "Invalid",
        /// Another node of the namespace runs with the same signing key.
        SigningKeyInUse => "SigningKeyInUse",
        /// The spec sets a field that is no longer carried out.
        DeprecatedField => "DeprecatedField",
        /// The spec was changed in something that only sets a node up, and this one is set up.
        UsedAtSetUp => "UsedAtSetUp",
        /// The issuer is not on the platform's list.
        IssuerNotAllowed => "IssuerNotAllowed",
        /// The spec asks for the pause.
        PausedBySpec => "PausedBySpec",
        /// The node is not paused.
        NotPaused => "NotPaused",
        /// The template differs only by what an operator upgrade changed.
        OperatorUpgraded => "OperatorUpgraded",
        /// The pod is of today's template.
        TemplateCurrent => "TemplateCurrent",
        /// The process runs with the peers of the spec.
        PeersCurrent => "PeersCurrent",
        /// The peers are written and take effect when the process next starts.
        EffectiveAtNextStart => "EffectiveAtNextStart",

        /// A change other than TLS began.
        UpdateStarted => "UpdateStarted",
        /// A change of TLS began.
        TlsToggleStarted => "TLSToggleStarted",
        /// A change of TLS and of something else began, as one.
        UpdateAndTlsToggleStarted => "UpdateAndTLSToggleStarted",
        /// The change is complete.
        UpdateComplete => "UpdateComplete",
        /// The change failed.
        UpdateFailed => "UpdateFailed",

        /// The sidecar answered and is ready.
        SidecarReady => "Ready",
        /// The sidecar answered and is not ready.
        SidecarNotReady => "NotReady",
        /// The sidecar did not answer.
        SidecarUnreachable => "Unreachable",

        /// The certificate is there and fits.
        TlsSecretReady => "TLSSecretReady",
        /// There is no such Secret.
        TlsSecretNotFound => "TLSSecretNotFound",
        /// The Secret could not be read.
        TlsSecretUnavailable => "TLSSecretUnavailable",
        /// The Secret holds no usable key pair.
        TlsSecretMalformed => "TLSSecretMalformed",
        /// The certificate does not cover the names it must.
        TlsSecretSansMismatch => "TLSSecretSANsMismatch",
        /// A Secret of the name we would write belongs to someone else.
        TlsSecretNotOwned => "TLSSecretNotOwned",
        /// cert-manager has not issued the certificate yet.
        CertificatePending => "CertificatePending",
        /// cert-manager could not issue the certificate.
        CertificateFailed => "CertificateFailed",
        /// The new certificate is there but the sidecar does not serve it yet.
        CertificateNotLoaded => "CertificateNotLoaded",

        /// The imported claim passes every check.
        PvcValidated => "PVCValidated",
        /// The imported claim is not usable yet.
        PvcNotReady => "PVCNotReady",
        /// The imported claim cannot be used.
        PvcInvalid => "PVCInvalid",

        /// The signing key passes every check.
        SigningKeyValidated => "SigningKeyValidated",
        /// The signing key is not there yet.
        SigningKeyNotReady => "SigningKeyNotReady",
        /// The signing key cannot be used.
        SigningKeyInvalid => "SigningKeyInvalid",
        /// The node key passes every check.
        NodeKeyValidated => "NodeKeyValidated",
        /// The node key is not there yet.
        NodeKeyNotReady => "NodeKeyNotReady",
        /// The node key cannot be used.
        NodeKeyInvalid => "NodeKeyInvalid",
        /// The keyring passes every check.
        OperatorKeyringValidated => "OperatorKeyringValidated",
        /// The keyring is not there yet.
        OperatorKeyringNotReady => "OperatorKeyringNotReady",
        /// The keyring cannot be used.
        OperatorKeyringInvalid => "OperatorKeyringInvalid",
    }
}

reasons!(NodeCondition => NodeReason);
