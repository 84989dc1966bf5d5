//! Refusals made by the proxy: the caller reads a real `Status`, the API server knows nothing.

use crate::stage::{Stage, chain, code, create};
use anyhow::Result;
use http::{Request, header};
use keelson_testbed::{
    Authority,
    faults::{Fault, FaultProxy, On, Verb},
};
use kube::client::Body;
use std::{net::SocketAddr, time::Duration};

#[tokio::test]
async fn a_refused_write_carries_its_code_and_reason_and_is_not_made() -> Result<()> {
    let stage = Stage::new("refusals").await;
    let maps = stage.through();
    for (fault, expected, reason) in [
        (Fault::Unauthorized, 401, "Unauthorized"),
        (Fault::Forbidden, 403, "Forbidden"),
        (Fault::Conflict, 409, "Conflict"),
        (Fault::Gone, 410, "Expired"),
        (Fault::Unavailable, 503, "ServiceUnavailable"),
    ] {
        let rule = stage.faults.inject(fault, On::every());
        match create(&maps, "never").await {
            Err(kube::Error::Api(status)) => {
                assert_eq!((status.code, status.reason.as_str()), (expected, reason));
                assert_eq!(status.details.unwrap().name, "never");
            }
            other => panic!("{expected} was expected, not {other:?}"),
        }
        assert_eq!(rule.clear(), 1);
        let recorded = format!("create configmaps never {expected}");
        assert_eq!(stage.calls().last(), Some(&recorded));
    }
    assert!(!stage.stored("never").await);
    create(&maps, "never").await?;
    assert!(stage.stored("never").await);
    Ok(())
}

#[tokio::test]
async fn too_many_requests_says_when_to_come_back() -> Result<()> {
    let stage = Stage::new("busy").await;
    let retry_after = Duration::from_secs(3);
    let _busy = stage
        .faults
        .inject(Fault::TooManyRequests { retry_after }, On::every());
    let request = Request::get("/version").body(Body::empty())?;
    let answer = stage.faults.client().send(request).await?;
    assert_eq!(answer.status(), 429);
    assert_eq!(answer.headers()[header::RETRY_AFTER], "3");
    match create(&stage.through(), "never").await {
        Err(kube::Error::Api(status)) => {
            let details = status.details.unwrap();
            assert_eq!(details.retry_after_seconds, 3);
        }
        other => panic!("429 was expected, not {other:?}"),
    }
    assert!(!stage.stored("never").await);
    Ok(())
}

#[tokio::test]
async fn a_conflict_on_the_second_write_leaves_the_first_and_the_third() -> Result<()> {
    let stage = Stage::new("second").await;
    let maps = stage.through();
    let second = stage.faults.inject(Fault::Conflict, On::writes().nth(2));

    create(&maps, "one").await?;
    maps.get("one").await?;
    assert_eq!(code(create(&maps, "two").await), Some(409));
    create(&maps, "three").await?;

    assert_eq!(second.hits(), 1);
    assert!(stage.stored("one").await);
    assert!(!stage.stored("two").await);
    assert!(stage.stored("three").await);
    Ok(())
}

#[tokio::test]
async fn a_rule_meets_only_the_calls_it_selects() -> Result<()> {
    let stage = Stage::new("selected").await;
    let maps = stage.through();
    let on = On::verb(Verb::Create)
        .resource("configmaps")
        .namespace(stage.namespace.name())
        .name("chosen");
    let rule = stage.faults.inject(Fault::Forbidden, on);

    create(&maps, "other").await?;
    assert_eq!(code(create(&maps, "chosen").await), Some(403));
    assert!(maps.get_opt("chosen").await?.is_none());
    assert_eq!(rule.clear(), 1);
    create(&maps, "chosen").await?;
    Ok(())
}

#[tokio::test]
async fn a_client_that_retries_gets_through_when_the_rule_is_spent() -> Result<()> {
    let stage = Stage::new("retries").await;
    let spent = stage
        .faults
        .inject(Fault::Unavailable, On::writes().next(2));
    let mut config = stage.faults.config();
    config.default_retry = true;
    create(&stage.maps(config.try_into()?), "a").await?;
    assert_eq!(spent.hits(), 2);
    assert_eq!(
        stage.calls(),
        [
            "create configmaps a 503",
            "create configmaps a 503",
            "create configmaps a 201"
        ]
    );
    Ok(())
}

#[tokio::test]
async fn an_api_server_that_is_gone_is_named_in_the_answer() -> Result<()> {
    let nobody = SocketAddr::from(([127, 0, 0, 1], 1));
    let authority = Authority::new("nobody's cluster")?;
    let faults = FaultProxy::start(nobody, &authority, "token")?;
    let error = faults.client().apiserver_version().await.unwrap_err();
    let text = chain(&error);
    assert!(
        text.contains("behind the fault proxy did not answer"),
        "{text}"
    );
    assert!(text.contains("refused"), "{text}");
    assert_eq!(faults.calls()[0].code, Some(502));
    Ok(())
}
