//! The outcome table: §2.1.

use http::{Method, StatusCode};
use keelson_proxy::outcome::{Outcome, PLAIN_HTTP_TO_TLS, Subject};

#[test]
fn outcomes_are_answered_as_the_reference_answers() {
    let subject = Subject {
        user: "u".into(),
        verb: "get".into(),
        resource: "r".into(),
        subresource: "s".into(),
    };
    for (outcome, status, body) in [
        (Outcome::OptionsStar, 200, ""),
        (Outcome::OptionsStarRefused, 400, "Bad Request\n"),
        (Outcome::Ambiguous, 400, "Bad Request\n"),
        (Outcome::NotFound, 404, "404 page not found\n"),
        (Outcome::Unauthorized, 401, "Unauthorized\n"),
        (Outcome::AuthenticationFailed, 401, "Unauthorized\n"),
        (Outcome::UserMissing, 400, "user not in context\n"),
        (
            Outcome::Malformed,
            400,
            "Bad Request. The request or configuration is malformed.\n",
        ),
        (
            Outcome::Forbidden(subject.clone()),
            403,
            "Forbidden (user=u, verb=get, resource=r, subresource=s)\n",
        ),
        (
            Outcome::AuthorizationFailed(subject),
            500,
            "Authorization error (user=u, verb=get, resource=r, subresource=s)\n",
        ),
        (Outcome::Unavailable, 503, "Service Unavailable\n"),
        (Outcome::Internal, 500, "Internal Server Error\n"),
        (Outcome::BadGateway, 502, ""),
    ] {
        let reply = outcome.reply(&Method::GET);
        assert_eq!((reply.status.as_u16(), reply.body.as_str()), (status, body));
        let mut expected = vec![];
        if !body.is_empty() {
            expected = vec![
                ("content-type", "text/plain; charset=utf-8"),
                ("x-content-type-options", "nosniff"),
            ];
        }
        if outcome == Outcome::Unavailable {
            expected.push(("retry-after", "1"));
        }
        let headers: Vec<_> = reply
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
            .collect();
        assert_eq!(headers, expected, "{outcome:?}");
    }
    assert!(
        PLAIN_HTTP_TO_TLS.ends_with(b"\r\n\r\nClient sent an HTTP request to an HTTPS server.\n")
    );
}

#[test]
fn a_redirect_has_a_body_only_for_those_who_read_it() {
    let redirect = Outcome::Redirect("/a?x=1&y='".into());
    let location = ("location", "/a?x=1&y='");
    let html = ("content-type", "text/html; charset=utf-8");
    let body = "<a href=\"/a?x=1&amp;y=&#39;\">Moved Permanently</a>.\n\n";
    for (method, headers, body) in [
        (Method::GET, vec![html, location], body),
        (Method::HEAD, vec![html, location], ""),
        (Method::POST, vec![location], ""),
    ] {
        let reply = redirect.reply(&method);
        assert_eq!(reply.status, StatusCode::MOVED_PERMANENTLY);
        assert_eq!(reply.body, body);
        let got: Vec<_> = reply
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
            .collect();
        assert_eq!(got, headers);
    }
    assert_eq!(
        Outcome::Redirect("/a\n".into()).reply(&Method::GET).status,
        400
    );
}
