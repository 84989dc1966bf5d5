//! Has the linker pack the relocations of the program that ships: read once at the start, they stay in
//! memory from then on. Takes a C library that reads them so, Debian's since 12, and the linker the
//! compiler brings along on the machines this is known for.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|it| it == value);
    let known = is("CARGO_CFG_TARGET_ARCH", "x86_64") && is("CARGO_CFG_TARGET_ENV", "gnu");
    if is("PROFILE", "release") && known {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}
