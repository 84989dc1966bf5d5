#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| keelson_proxy_fuzz::laws::access(data));
