//! Condition types of the kinds of `nmstate.io` and the reasons they may have.

use crate::condition::reasons;
use crate::vocabulary::vocabulary;

vocabulary! {
    /// Condition types of an NMState.
    pub enum NmstateCondition {
        /// Every workload is in place.
        Available => "Available",
        /// Something is wrong.
        Degraded => "Degraded",
        /// Workloads are being rolled out.
        Progressing => "Progressing",
        /// A part of the TLS profile cannot be carried out; the message names it.
        TlsProfileNotFullyHonored => "TLSProfileNotFullyHonored",
        /// The TLS profile cannot be carried out at all; the last good one stays in force.
        TlsProfileUnusable => "TLSProfileUnusable",
        /// The operator of the original is still there, so ours writes nothing.
        ForeignOperatorPresent => "ForeignOperatorPresent",
    }
}

vocabulary! {
    /// Reasons of an NMState's conditions.
    pub enum NmstateReason {
        /// An object could not be read or written.
        InternalError => "InternalError",
        /// A workload is not settled.
        Deploying => "Deploying",
        /// Every workload is settled.
        SuccessfullyDeployed => "SuccessfullyDeployed",
        /// A part of the TLS profile cannot be carried out.
        TlsProfileNotFullyHonored => "TLSProfileNotFullyHonored",
        /// The TLS profile cannot be carried out at all.
        TlsProfileUnusable => "TLSProfileUnusable",
        /// There is an older NMState, which is the one that counts.
        NotTheOldest => "NotTheOldest",
        /// The TLS profile is in force everywhere.
        TlsProfileHonored => "TLSProfileHonored",
        /// Some pods have not loaded the TLS profile yet.
        TlsProfileLoading => "TLSProfileLoading",
        /// A live Deployment of the original's operator was found.
        ForeignOperatorFound => "ForeignOperatorFound",
        /// No operator of the original was found.
        ForeignOperatorAbsent => "ForeignOperatorAbsent",
    }
}

reasons!(NmstateCondition => NmstateReason);

vocabulary! {
    /// Condition types of a NodeNetworkConfigurationPolicy.
    pub enum PolicyCondition {
        /// Every selected host is configured.
        Available => "Available",
        /// Some host could not be configured.
        Degraded => "Degraded",
        /// Hosts are being configured.
        Progressing => "Progressing",
        /// No host is selected.
        Ignored => "Ignored",
    }
}

vocabulary! {
    /// Reasons of a NodeNetworkConfigurationPolicy's conditions.
    pub enum PolicyReason {
        /// Some host could not be configured.
        FailedToConfigure => "FailedToConfigure",
        /// Every selected host is configured.
        SuccessfullyConfigured => "SuccessfullyConfigured",
        /// Hosts are being configured.
        ConfigurationProgressing => "ConfigurationProgressing",
        /// No host is selected.
        NoMatchingNode => "NoMatchingNode",
    }
}

reasons!(PolicyCondition => PolicyReason);

vocabulary! {
    /// Condition types of a NodeNetworkConfigurationEnactment.
    pub enum EnactmentCondition {
        /// The host is configured.
        Available => "Available",
        /// The host could not be configured.
        Failing => "Failing",
        /// The host is being configured.
        Progressing => "Progressing",
        /// The host waits for its turn.
        Pending => "Pending",
        /// The change was given up before it began.
        Aborted => "Aborted",
    }
}

vocabulary! {
    /// Reasons of a NodeNetworkConfigurationEnactment's conditions.
    pub enum EnactmentReason {
        /// The host could not be configured.
        FailedToConfigure => "FailedToConfigure",
        /// The host is configured.
        SuccessfullyConfigured => "SuccessfullyConfigured",
        /// The host is being configured.
        ConfigurationProgressing => "ConfigurationProgressing",
        /// The change failed and is tried again.
        Retrying => "Retrying",
        /// As many hosts as may be are being configured already.
        MaxUnavailableLimitReached => "MaxUnavailableLimitReached",
        /// The change was given up, because others failed.
        ConfigurationAborted => "ConfigurationAborted",
        /// Another policy configures the same interface.
        PolicyConflict => "PolicyConflict",
    }
}

reasons!(EnactmentCondition => EnactmentReason);

vocabulary! {
    /// Condition types of a NodeNetworkState.
    pub enum StateCondition {
        /// The state is the host's as it is.
        Available => "Available",
    }
}

vocabulary! {
    /// Reasons of a NodeNetworkState's conditions.
    pub enum StateReason {
        /// NetworkManager answers, and the network can be read.
        NetworkRead => "NetworkRead",
        /// It cannot; the state is the last that was read.
        NetworkUnreadable => "NetworkUnreadable",
    }
}

reasons!(StateCondition => StateReason);
