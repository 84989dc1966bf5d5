//! Settings that are said and make no sense.

use keelson_operator::controllers::of_process;
use keelson_operator::platform::read;

use crate::settings::{as_file, only_pod, shipped, with};

/// What is told of these variables and this file.
fn told(changes: &[(&str, &str)], file: Option<&str>) -> Vec<String> {
    let problems = read(&with(changes), file).expect_err("something is wrong");
    problems.to_string().lines().map(str::to_owned).collect()
}

#[test]
fn a_malformed_value_is_shown_with_what_to_write_instead() {
    let quantity =
        "and not a quantity above zero: write a number with a unit, such as 500m or 32Gi";
    let seconds = "and not a number of seconds above zero: write digits only, such as 300";
    let switch = "and not a switch: write true or false";
    let source =
        "which is not a namespace, or a namespace with labels as namespace/key=value;key=value";
    for (variable, value, sentence) in [
        (
            "SEI_STORAGE_SIZE_DEFAULT",
            "2000Gx",
            format!("is \"2000Gx\" {quantity}"),
        ),
        (
            "SEI_STORAGE_SIZE_ARCHIVE",
            "0",
            format!("is \"0\" {quantity}"),
        ),
        (
            "SEI_RESOURCE_CPU_DEFAULT",
            "-4",
            format!("is \"-4\" {quantity}"),
        ),
        (
            "SEI_RESOURCE_MEM_PROXY",
            "much",
            format!("is \"much\" {quantity}"),
        ),
        (
            "SEI_TERMINATION_GRACE_SECONDS",
            "5m",
            format!("is \"5m\" {seconds}"),
        ),
        (
            "SEI_TERMINATION_GRACE_SECONDS",
            "0",
            format!("is \"0\" {seconds}"),
        ),
        ("SEI_NETWORK_POLICY", "yes", format!("is \"yes\" {switch}")),
        ("SEI_OPEN_METRICS", "0", format!("is \"0\" {switch}")),
        (
            "SEI_SIDECAR_RIGHT",
            "seinodes/",
            "is \"seinodes/\", which is no resource or resource/subresource".to_owned(),
        ),
        (
            "SEI_SIDECAR_RIGHT",
            "sei.io/seinodes/sidecar",
            "is \"sei.io/seinodes/sidecar\", which is no resource or resource/subresource"
                .to_owned(),
        ),
        ("SEI_PROXY_RELOADS", "True", format!("is \"True\" {switch}")),
        (
            "SEI_TEMPLATE_UPGRADE",
            "always",
            "is \"always\" and not one of them: write report or roll".to_owned(),
        ),
        (
            "SEI_SIDECAR_IMAGE",
            "keelson sidecar",
            "is \"keelson sidecar\": write it without spaces".to_owned(),
        ),
        (
            "SEI_ISSUERS",
            "pacific-ca",
            "has the entry \"pacific-ca\", which is not Issuer/name or ClusterIssuer/name"
                .to_owned(),
        ),
        (
            "SEI_ISSUERS",
            "Vault/pacific-ca",
            "has the entry \"Vault/pacific-ca\", which is not Issuer/name or ClusterIssuer/name"
                .to_owned(),
        ),
        (
            "SEI_ISSUERS",
            "Issuer/",
            "has the entry \"Issuer/\", which is not Issuer/name or ClusterIssuer/name".to_owned(),
        ),
        (
            "SEI_AUDIENCES",
            "a b",
            "has the entry \"a b\", which is not an audience: write it without spaces".to_owned(),
        ),
        (
            "SEI_OPERATOR_LABELS",
            "keelson",
            "has the entry \"keelson\", which is not a label as key=value".to_owned(),
        ),
        (
            "SEI_SCRAPERS",
            "monitoring/app",
            format!("has the entry \"monitoring/app\", {source}"),
        ),
        (
            "SEI_SCRAPERS",
            "/app=x",
            format!("has the entry \"/app=x\", {source}"),
        ),
    ] {
        assert_eq!(
            told(&[(variable, value)], None),
            [format!("{variable} {sentence}")]
        );
    }
}

#[test]
fn a_proxy_that_is_said_to_be_what_it_is_not_is_refused() {
    for (image, reloads) in [
        ("registry.example/keelson-proxy:1", "false"),
        ("quay.example/brancz/kube-rbac-proxy:v0.19.1", "true"),
    ] {
        let other = if reloads == "true" { "false" } else { "true" };
        let changes = [
            ("SEI_KUBE_RBAC_PROXY_IMAGE", image),
            ("SEI_PROXY_RELOADS", reloads),
        ];
        let told = told(&changes, None);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(
            told[0].starts_with("SEI_PROXY_RELOADS contradicts SEI_KUBE_RBAC_PROXY_IMAGE: ")
                && told[0].contains(image)
                && told[0].contains(&format!("for which it is {other}: leave proxyReloads out")),
            "{told:?}"
        );
    }
}

#[test]
fn everything_wrong_is_told_at_once_and_sorted() {
    let changes = [
        ("SEI_TOLERATION_KEY", " "),
        ("SEI_ISSUERS", "one,Issuer/fine,two"),
        ("SEI_STORAGE_SIZE_DEFAULT", "big"),
        ("SEI_SIDECAR_IMAGE", ""),
    ];
    let file = "openMetric: false\nterminationGraceSeconds: soon\n";
    let problems = read(&with(&changes), Some(file)).expect_err("much is wrong");
    let names: Vec<_> = problems.names().collect();
    let expected = [
        "SEI_ISSUERS",
        "SEI_ISSUERS",
        "SEI_SIDECAR_IMAGE",
        "SEI_STORAGE_SIZE_DEFAULT",
        "SEI_TOLERATION_KEY",
        "openMetric",
        "terminationGraceSeconds",
    ];
    assert_eq!(names, expected, "{problems}");
}

#[test]
fn a_key_of_the_file_that_is_no_setting_is_told_with_the_one_that_was_meant() {
    for (file, sentence) in [
        (
            "snapshotRegions: us-east-2",
            "snapshotRegions of the platform file is no setting: remove it, or write snapshotRegion if that was meant",
        ),
        (
            "SNAPSHOTREGION: us-east-2",
            "SNAPSHOTREGION of the platform file is no setting: remove it, or write snapshotRegion if that was meant",
        ),
        (
            "moonPhase: full",
            "moonPhase of the platform file is no setting: remove it",
        ),
        (
            "podName: me",
            "podName of the platform file is no setting: remove it",
        ),
    ] {
        assert_eq!(told(&[], Some(file)), [sentence]);
    }
}

#[test]
fn a_value_of_the_file_that_is_of_another_kind_is_told_by_its_key() {
    let mut without = shipped();
    for name in ["SEI_SNAPSHOT_REGION", "SEI_STORAGE_SIZE_DEFAULT"] {
        without.remove(name);
    }
    for (file, sentence) in [
        (
            "snapshotRegion: 1\nstorageSizeDefault: 1Ti",
            "snapshotRegion is 1, which is no text in YAML: put it in quotes",
        ),
        (
            "snapshotRegion: [a]\nstorageSizeDefault: 1Ti",
            "snapshotRegion is not one text: write a text",
        ),
        (
            "snapshotRegion: a\nstorageSizeDefault: {of: 1Ti}",
            "storageSizeDefault is \"a list or a map\" and not a quantity above zero: write a number with a unit, such as 500m or 32Gi",
        ),
        (
            "snapshotRegion: a\nstorageSizeDefault: 1Ti\nissuers: {kind: Issuer}",
            "issuers is neither a list of texts nor one text: write a list",
        ),
        (
            "snapshotRegion: a\nstorageSizeDefault: 1Ti\nissuers: [Issuer]",
            "issuers has the entry \"Issuer\", which is not Issuer/name or ClusterIssuer/name",
        ),
    ] {
        let sentence = sentence.replace("\"a list or a map\"", "a list or a map");
        let problems = read(&without, Some(file)).expect_err("something is wrong");
        assert_eq!(problems.to_string(), sentence);
    }
}

/// What is missing might be in the file, so nobody is told it is missing.
#[test]
fn a_file_that_cannot_be_read_is_told_and_what_it_may_say_is_not_called_missing() {
    for file in [
        "- a\n- b\n",
        "a: [",
        "snapshotRegion: a\nsnapshotRegion: b\n",
        "text",
    ] {
        let mut variables = only_pod();
        variables.remove("POD_NAME");
        variables.insert("SEI_OPEN_METRICS".to_owned(), "maybe".to_owned());
        let problems = read(&variables, Some(file)).expect_err("the file is wrong");
        let names: Vec<_> = problems.names().collect();
        let expected = ["POD_NAME", "SEI_OPEN_METRICS", "the platform file"];
        assert_eq!(names, expected, "{file}: {problems}");
        let text = problems.to_string();
        assert_eq!(text.lines().count(), 3, "{text}");
        let last = text.lines().last().expect("a line");
        assert!(
            last.starts_with("the platform file is not a map of settings in YAML ("),
            "{last}"
        );
    }
}

/// The variables of a test have nothing of a platform in them, so all of it comes from the file.
#[test]
fn a_process_reads_the_file_it_was_told_of_or_says_that_it_cannot() {
    let folder = std::env::temp_dir().join(format!("keelson-platform-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("platform.yaml");
    let told = || match of_process(&[], Some(&file)) {
        Ok(_) => String::new(),
        Err(refusal) => refusal.to_string(),
    };

    let absent = told();
    std::fs::write(&file, as_file(&shipped())).expect("a file");
    let written = told();
    std::fs::write(&file, [0xff, 0xfe]).expect("a file");
    let binary = told();
    std::fs::remove_dir_all(&folder).expect("the folder");

    let start = format!("the platform file {} could not be read (", file.display());
    for told in [absent, binary] {
        assert!(told.starts_with(&start), "{told}");
        assert!(told.ends_with("): correct --platform-file"), "{told}");
        assert_eq!(told.lines().count(), 1, "{told}");
    }
    // Where tests run in a pod themselves, it may have been told its name.
    let missing = |line: &str| line.starts_with("POD_NAME") && line.contains(" is missing");
    assert!(written.lines().all(missing), "{written}");
    let nothing = of_process(&[], None).expect_err("nothing").to_string();
    assert!(nothing.lines().count() > 2, "{nothing}");
}

#[test]
fn the_documentation_shows_a_file_that_is_read_and_sentences_that_are_said() {
    let page = include_str!("../../../../docs/platform.md");
    let block = |start| {
        let (_, rest) = page.split_once(start).expect("a block");
        rest.split_once("```").expect("its end").0
    };
    read(&shipped(), Some(block("```yaml\n"))).expect("the example");

    let mut variables = with(&[("SEI_STORAGE_SIZE_DEFAULT", "2000Gx")]);
    variables.remove("SEI_GENESIS_BUCKET");
    let file = "snapshotRegions: us-east-2";
    let problems = read(&variables, Some(file)).expect_err("three things are wrong");
    assert_eq!(block("ends with code 2:\n\n```\n"), format!("{problems}\n"));
}
