//! Which controllers a process runs: what was asked for, and what has to be said for it.

use keelson_operator::controllers::Half::{Nmstate, Sei};
use keelson_operator::controllers::{Duties, Half, Refusal, read};
use keelson_operator::host::settings::IMAGE;
use keelson_operator::platform::Told;

use crate::settings::{Variables, only_pod, shipped, with};

const HOSTS: (&str, &str) = (IMAGE, "registry.example/keelson-host:1");

fn duties(asked: &[Half], environment: Variables) -> Result<Duties, Refusal> {
    let told = Told {
        environment,
        file: None,
    };
    read(asked, &told)
}

fn only_hosts() -> Variables {
    let mut variables = only_pod();
    variables.insert(HOSTS.0.to_owned(), HOSTS.1.to_owned());
    variables
}

#[test]
fn what_is_asked_for_is_run_and_without_a_word_what_there_are_settings_for() {
    for (asked, variables, nodes, hosts) in [
        (&[] as &[Half], shipped(), true, false),
        (&[], with(&[HOSTS]), true, true),
        (&[Sei], with(&[HOSTS]), true, false),
        (&[Nmstate], with(&[HOSTS]), false, true),
        (&[Nmstate], only_hosts(), false, true),
        (&[Sei, Nmstate], with(&[HOSTS]), true, true),
    ] {
        let duties = duties(asked, variables).expect("duties");
        let runs = (duties.nodes.is_some(), duties.hosts.is_some());
        assert_eq!(runs, (nodes, hosts), "{asked:?}");
        assert_eq!(duties.own.pod, "keelson-operator-0", "{asked:?}");
        assert_eq!(duties.own.source.namespace, "keelson-system", "{asked:?}");
    }
}

#[test]
fn what_is_wrong_of_the_half_that_is_not_wanted_is_no_matter() {
    let nodes = with(&[HOSTS, ("SEI_STORAGE_SIZE_DEFAULT", "much")]);
    duties(&[Nmstate], nodes.clone()).expect("hosts");
    duties(&[Sei], nodes).expect_err("a size");
    let hosts = with(&[HOSTS, ("NNCP_MAX_RETRIES", "many")]);
    duties(&[Sei], hosts.clone()).expect("nodes");
    duties(&[Nmstate], hosts).expect_err("a number");
}

#[test]
fn by_either_half_the_operators_pods_are_known_by_the_same_labels() {
    for changes in [
        [HOSTS, ("SEI_NETWORK_POLICY", "true")],
        [HOSTS, ("SEI_NETWORK_POLICY", "false")],
    ] {
        let own = |asked| duties(asked, with(&changes)).expect("duties").own;
        assert_eq!(own(&[Sei]), own(&[Nmstate]), "{changes:?}");
    }
}

#[test]
fn what_is_missing_is_said_with_the_way_out() {
    let said = |asked, variables| {
        let refusal = duties(asked, variables).expect_err("something is missing");
        refusal.to_string()
    };
    let way_out = "--controllers nmstate if NMStates are all it is to look after";
    assert!(said(&[], only_hosts()).ends_with(way_out));
    assert!(!said(&[], only_pod()).contains("--controllers"));
    assert!(!said(&[Sei], only_hosts()).contains("--controllers"));
    assert_eq!(
        said(&[Sei, Nmstate], shipped()),
        format!(
            "{IMAGE} is not set, and --controllers asks for nmstate: set it to the image of \
             keelson-host, or leave nmstate out"
        )
    );
    let nothing = said(&[Nmstate], Variables::new());
    let named: Vec<_> = nothing.lines().map(|it| it.split(' ').next()).collect();
    assert_eq!(named, [Some("POD_NAME"), Some("POD_NAMESPACE")]);
}
