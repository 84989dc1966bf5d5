//! Keelson on real pods: a real kubelet runs the images that ship, and a real chain makes blocks.

mod access;
mod boot;
mod bootstrap;
mod edits;
mod hosts;
mod keys;
mod kills;
mod mark;
mod original;
mod outages;
mod proxies;
mod quiet;
mod sealed;
mod tls;
mod upgrade;
mod words;
mod world;
