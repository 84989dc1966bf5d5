//! Keelson on real pods: a real kubelet runs the images that ship, and a real chain makes blocks.

mod boot;
mod world;
