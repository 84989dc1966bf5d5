//! What the API server says of what it serves, and what is made of its errors.

use keelson_operator::host::platform::{Answer, Capability, ask};
use keelson_testbed::faults::{Fault, On};

use crate::stage::Stage;

#[tokio::test(flavor = "multi_thread")]
async fn a_served_kind_is_there_an_absent_one_is_not_and_an_error_is_neither() {
    let stage = Stage::enter("platform").await;
    assert_eq!(
        ask(&stage.client, Capability::ClusterProfile).await,
        Answer::Served
    );
    assert_eq!(
        ask(&stage.client, Capability::SecurityConstraints).await,
        Answer::Absent
    );
    let faults = stage.cluster.faults().expect("a proxy");
    let client = faults.client();
    let outage = faults.refuse();
    let answer = ask(&client, Capability::ClusterProfile).await;
    assert!(matches!(answer, Answer::Unclear(_)), "{answer:?}");
    outage.clear();
    let busy = faults.inject(Fault::Unavailable, On::every());
    let answer = ask(&client, Capability::ClusterProfile).await;
    assert!(
        matches!(&answer, Answer::Unclear(why) if why.contains("503")),
        "{answer:?}"
    );
    assert!(busy.clear() > 0);
    assert_eq!(
        ask(&client, Capability::ClusterProfile).await,
        Answer::Served
    );
}
