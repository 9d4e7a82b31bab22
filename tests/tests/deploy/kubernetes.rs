//! The manifests for Kubernetes.

use std::collections::HashSet;
use std::process::Command;

use nuncio_tests::{Value, installed, json};

use crate::{SECRETS, file, key, said, seconds, shown, text, yaml};

/// Every object, by kind.
fn objects() -> Vec<Value> {
    let list = yaml(&text("deploy/kubernetes/kustomization.yaml")).remove(0);
    let mut names: Vec<&str> = list["resources"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    names.push("secret.example.yaml");
    names.iter().flat_map(|name| yaml(&text(&format!("deploy/kubernetes/{name}")))).collect()
}

fn the(kind: &str) -> Value {
    objects().into_iter().find(|object| object["kind"] == kind).unwrap_or_else(|| panic!("no {kind}"))
}

#[test]
fn every_object_is_one_that_kubernetes_knows() {
    let tools = installed("deploy");
    let mut command = Command::new(tools.join("bin/kubernetes-validate"));
    command.arg("--strict");
    let folder = std::fs::read_dir(file("deploy/kubernetes")).unwrap();
    let files: Vec<_> =
        folder.map(|entry| entry.unwrap().path()).filter(|path| !path.ends_with("kustomization.yaml")).collect();
    let (out, err) = said(command.args(&files));
    let out = out + &err;
    assert_eq!(out.matches(" passed for resource ").count(), objects().len(), "{out}");
    for object in objects() {
        let (namespace, kind) = (&object["metadata"]["namespace"], &object["kind"]);
        assert!(namespace == "nuncio" || kind == "Namespace", "{object}");
    }
}

#[test]
fn the_configuration_is_the_example_and_holds() {
    let map = the("ConfigMap");
    assert_eq!(map["data"]["nuncio.yml"], text("deploy/nuncio.yml"));
    shown(&file("deploy/nuncio.yml"), &SECRETS);
}

#[test]
fn pods_have_what_they_refer_to() {
    let pod = the("Deployment")["spec"]["template"].clone();
    let container = &pod["spec"]["containers"][0];
    for variable in container["env"].as_array().unwrap() {
        let from = &variable["valueFrom"];
        let (kind, reference, field) = match from.get("secretKeyRef") {
            Some(reference) => ("Secret", reference, "stringData"),
            None => ("ConfigMap", &from["configMapKeyRef"], "data"),
        };
        let holder = the(kind);
        assert_eq!(reference["name"], holder["metadata"]["name"], "{variable}");
        assert!(holder[field][reference["key"].as_str().unwrap()].is_string(), "{variable}");
    }
    let given: HashSet<&str> =
        container["env"].as_array().unwrap().iter().filter_map(|one| one["name"].as_str()).collect();
    assert_eq!(given, SECRETS.iter().map(|(name, _)| *name).collect());
    let volumes: HashSet<&Value> = pod["spec"]["volumes"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
    for mount in container["volumeMounts"].as_array().unwrap() {
        assert!(volumes.contains(&mount["name"]), "{mount}");
    }
    assert_eq!(container["args"], json!(["serve", "--config", "/etc/nuncio/nuncio.yml"]));
}

#[test]
fn ports_labels_and_names_agree() {
    let configured = shown(&file("deploy/nuncio.yml"), &SECRETS);
    let deployment = the("Deployment");
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["ports"][0]["containerPort"], key(&configured, "port"));
    let port = &container["ports"][0]["name"];
    for probe in ["startupProbe", "livenessProbe", "readinessProbe"] {
        assert_eq!(&container[probe]["httpGet"]["port"], port, "{probe}");
    }
    assert_eq!(container["livenessProbe"]["httpGet"]["path"], "/health");
    assert_eq!(container["readinessProbe"]["httpGet"]["path"], "/ready");
    let labels = &deployment["spec"]["template"]["metadata"]["labels"];
    assert_eq!(&deployment["spec"]["selector"]["matchLabels"], labels);
    let service = the("Service");
    assert_eq!((&service["spec"]["selector"], &service["spec"]["ports"][0]["targetPort"]), (labels, port));
    assert_eq!(&the("PodDisruptionBudget")["spec"]["selector"]["matchLabels"], labels);
    let policy = the("NetworkPolicy");
    assert_eq!(&policy["spec"]["podSelector"]["matchLabels"], labels);
    assert_eq!(policy["spec"]["ingress"][0]["ports"][0]["port"], key(&configured, "port"));
    let scaled = the("HorizontalPodAutoscaler");
    assert_eq!(scaled["spec"]["scaleTargetRef"]["name"], deployment["metadata"]["name"]);
    assert!(deployment["spec"].get("replicas").is_none(), "the autoscaler decides");
    for ingress in objects().iter().filter(|object| object["kind"] == "Ingress") {
        for path in ingress["spec"]["rules"][0]["http"]["paths"].as_array().unwrap() {
            let backend = &path["backend"]["service"];
            assert_eq!(backend["name"], service["metadata"]["name"]);
            assert_eq!(backend["port"]["name"], service["spec"]["ports"][0]["name"]);
        }
    }
}

#[test]
fn a_pod_has_time_to_drain() {
    let configured = shown(&file("deploy/nuncio.yml"), &SECRETS);
    let pod = the("Deployment")["spec"]["template"]["spec"].clone();
    let before: u64 =
        pod["containers"][0]["lifecycle"]["preStop"]["exec"]["command"][1].as_str().unwrap().parse().unwrap();
    let grace = pod["terminationGracePeriodSeconds"].as_u64().unwrap();
    assert!(grace > before + seconds(&key(&configured, "drain-timeout")), "{grace} s");
}

#[test]
fn nothing_runs_as_root_and_no_secret_is_in_the_example() {
    let pod = the("Deployment")["spec"]["template"]["spec"].clone();
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    let user = &pod["securityContext"]["runAsUser"];
    assert!(text("deploy/Dockerfile").contains(&format!("USER {user}:")), "the image's own user");
    let security = &pod["containers"][0]["securityContext"];
    assert_eq!(
        (&security["allowPrivilegeEscalation"], &security["readOnlyRootFilesystem"]),
        (&json!(false), &json!(true))
    );
    let secret = the("Secret");
    for (name, value) in secret["stringData"].as_object().unwrap() {
        let value = value.as_str().unwrap();
        assert!(["PASSWORD", "TOKEN", "CONTENT"].iter().any(|word| value.contains(word)), "{name}: {value}");
    }
}
