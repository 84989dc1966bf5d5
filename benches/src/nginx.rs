//! The two nginx there are: the upstream everyone stands before, and the proxy that is an anchor.
//! Configurations as text; nothing is started here.

use crate::cases::Body;
use crate::peers::Doors;
use std::path::Path;

/// The upstream: small answers from memory, larger ones from files, on all three doors.
pub(crate) fn upstream(folder: &Path, doors: Doors) -> String {
    let small = "x".repeat(Body::Tenth.bytes());
    let server = format!(
        "root {}/bodies;\n    location = {} {{ return 200 \"{small}\"; }}\n    location / {{ }}",
        folder.display(),
        Body::Tenth.path()
    );
    page(folder, "upstream", doors, "", &server)
}

/// `proxy_pass` with as many kept connections as ours, doing the same to headers.
pub(crate) fn proxy(folder: &Path, doors: Doors, upstream: u16) -> String {
    let pool = format!(
        "upstream behind {{ server 127.0.0.1:{upstream}; keepalive 256; keepalive_requests 1000000000; }}"
    );
    let server = "proxy_http_version 1.1;\n    proxy_max_temp_file_size 0;\n    \
        proxy_set_header Host $http_host;\n    proxy_set_header Connection \"\";\n    \
        proxy_set_header Authorization \"\";\n    \
        proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;\n    \
        proxy_set_header X-Remote-User \"someone\";\n    \
        proxy_set_header X-Remote-Groups \"somebody\";\n    \
        location / { proxy_pass http://behind; }";
    page(folder, "nginx", doors, &pool, server)
}

fn page(folder: &Path, name: &str, doors: Doors, before: &str, server: &str) -> String {
    let folder = folder.display();
    let Doors { plain, tls, h2c } = doors;
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("  {kind}_temp_path {folder}/{name}-{kind};\n"))
        .concat();
    format!(
        "daemon off;
user root;
worker_processes 1;
pid {folder}/{name}.pid;
error_log {folder}/{name}.log;
events {{ worker_connections 8192; }}
http {{
{temporary}  access_log off;
  keepalive_requests 1000000000;
  keepalive_timeout 600s;
  sendfile on;
  tcp_nopush on;
  open_file_cache max=16 inactive=1h;
  {before}
  server {{
    listen 127.0.0.1:{plain} backlog=1024;
    listen 127.0.0.1:{tls} ssl http2 backlog=1024;
    listen 127.0.0.1:{h2c} http2 backlog=1024;
    ssl_certificate {folder}/tls.crt;
    ssl_certificate_key {folder}/tls.key;
    {server}
  }}
}}
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOORS: Doors = Doors {
        plain: 1,
        tls: 2,
        h2c: 3,
    };

    #[test]
    fn both_run_one_worker_and_never_end_a_connection_for_its_age() {
        let folder = Path::new("/there");
        for page in [upstream(folder, DOORS), proxy(folder, DOORS, 9)] {
            assert!(page.contains("worker_processes 1;"));
            assert!(page.contains("  keepalive_requests 1000000000;"));
            assert_eq!(page.matches('{').count(), page.matches('}').count());
        }
    }

    #[test]
    fn the_proxy_keeps_256_connections_and_drops_the_token() {
        let page = proxy(Path::new("/there"), DOORS, 9);
        assert!(page.contains("server 127.0.0.1:9; keepalive 256;"));
        assert!(page.contains("proxy_set_header Authorization \"\";"));
    }
}
