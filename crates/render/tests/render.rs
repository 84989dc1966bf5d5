//! The objects of a node from the outside: a SeiNode and a platform in, objects out.

#[path = "render/adoption.rs"]
mod adoption;
#[path = "../../seid-config/tests/config/committed.rs"]
mod committed;
#[path = "render/golden.rs"]
mod golden;
#[path = "render/keys.rs"]
mod keys;
#[path = "render/objects.rs"]
mod objects;
#[path = "render/pods.rs"]
mod pods;
#[path = "render/proxy.rs"]
mod proxy;
#[path = "render/reach.rs"]
mod reach;
#[path = "render/refused.rs"]
mod refused;
#[path = "render/scripts.rs"]
mod scripts;
#[path = "render/start.rs"]
mod start;
#[path = "render/world.rs"]
mod world;
