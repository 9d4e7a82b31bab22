use nuncio_protocol::json;
use proptest::prelude::*;

use super::choose::{Wish, choose};
use super::{Route, from_json, parse};

fn route(spec: &str) -> Route {
    parse(spec).unwrap()
}

fn two() -> Vec<Route> {
    vec![
        route("ros=http://127.0.0.1:1/;skills=iac_generation;tags=ros,template"),
        route("tf=https://tf.example/a2a;skills=iac_generation,iac_review;tags=Terraform,c++"),
    ]
}

fn taken(wish: Wish<'_>) -> Result<String, String> {
    choose(&two(), &wish).map(|chosen| format!("{}: {}", chosen.route.name, chosen.why))
}

#[test]
fn the_grammar_has_a_new_and_an_old_form() {
    let words = |list: &[&str]| list.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
    let new = route("template=http://127.0.0.1:41242/;skills=iac_generation;tags=ros,template");
    assert_eq!((new.name.as_str(), new.url.as_str()), ("template", "http://127.0.0.1:41242/"));
    assert_eq!((new.skills, new.tags), (words(&["iac_generation"]), words(&["ros", "template"])));
    let old = route("a=http://h/;s1;t1,t2");
    assert_eq!((old.skills, old.tags), (words(&["s1"]), words(&["t1", "t2"])));
    assert_eq!(route("a=http://h/;;t1").tags, ["t1"]);
    assert_eq!(route(" a = http://h/?x=1 ; tags = x , ,y ; ").tags, ["x", "y"]);
    assert_eq!(route("a=http://h/?x=1").url, "http://h/?x=1");
}

#[test]
fn mistakes_are_named() {
    for (spec, message) in [
        ("http://h/", "A2A route must start with name=url."),
        ("", "A2A route must start with name=url."),
        ("=http://h/", "A2A route name and URL are required."),
        ("a=", "A2A route name and URL are required."),
        ("a=http://h/;size=3", "Unknown A2A route segment 'size'. Expected skills or tags."),
        ("a=ftp://h/", "the URL of route `a` is not an http or https address"),
        ("a=http://h/;b;c;d", "An A2A route has a name and URL, skills and tags, and nothing else."),
    ] {
        assert_eq!(parse(spec).unwrap_err(), message, "{spec}");
    }
}

#[test]
fn a_mapping_says_the_same() {
    let value =
        json!({ "name": "ros", "url": "http://127.0.0.1:1/", "skills": "iac_generation", "tags": ["ros", "template"] });
    assert_eq!(from_json(&value).unwrap(), two()[0]);
    let missing = "A2A client route config entries require name and url.";
    assert_eq!(from_json(&json!({ "name": "x" })).unwrap_err(), missing);
    assert_eq!(from_json(&json!(3)).unwrap_err(), missing);
    assert!(from_json(&json!({ "name": "x", "url": "http://h", "tag": "y" })).unwrap_err().contains("`tag`"));
    assert!(from_json(&json!({ "name": "x", "url": "http://h", "tags": [1] })).is_err());
}

#[test]
fn a_name_decides_before_a_skill_before_the_prompt() {
    let wish = Wish { name: Some("tf"), skill: Some("nothing"), prompt: Some("ros") };
    assert_eq!(taken(wish).unwrap(), "tf: it has that name");
    let wish = Wish { skill: Some("iac_review"), prompt: Some("ros"), ..Wish::default() };
    assert_eq!(taken(wish).unwrap(), "tf: it has the skill `iac_review`");
    let prompt = |prompt| taken(Wish { prompt: Some(prompt), ..Wish::default() });
    assert_eq!(prompt("Create a ROS VPC template").unwrap(), "ros: the prompt says `ros`");
    assert_eq!(prompt("Is this terraform?").unwrap(), "tf: the prompt says `terraform`");
    assert_eq!(prompt("some c++, please").unwrap(), "tf: the prompt says `c++`");
}

#[test]
fn ties_and_misses_are_explained() {
    let prompt = |prompt| taken(Wish { prompt: Some(prompt), ..Wish::default() }).unwrap_err();
    assert_eq!(
        prompt("ros and tf"),
        "Ambiguous A2A route. Candidates: ros (`ros`), tf (`tf`). Name one with --route-name."
    );
    let miss = prompt("rosy templates");
    assert!(miss.starts_with("No A2A route matched: no word of the prompt is the name or a tag of one."), "{miss}");
    assert!(miss.contains("ros (skills iac_generation; tags ros template)"), "{miss}");
    let name = taken(Wish { name: Some("x"), ..Wish::default() }).unwrap_err();
    assert_eq!(name, "Unknown A2A route 'x'. Known routes: ros, tf");
    let skill = Wish { skill: Some("iac_generation"), ..Wish::default() };
    let tie = taken(skill).unwrap_err();
    assert!(tie.contains("ros (skill iac_generation), tf (skill iac_generation)"), "{tie}");
    let told = Wish { prompt: Some("a template"), ..skill };
    assert_eq!(taken(told).unwrap(), "ros: it has the skill `iac_generation`, and the prompt says `template`");
    assert!(choose(&[], &Wish { name: Some("x"), ..Wish::default() }).unwrap_err().ends_with("Known routes: none"));
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(
        name in "[a-z][a-z0-9_-]{0,8}",
        path in "[a-z/]{0,8}",
        skills in prop::collection::vec("[a-z_]{1,6}", 0..3),
        tags in prop::collection::vec("[a-z+#]{1,6}", 0..3),
    ) {
        let written = Route { name, url: format!("http://127.0.0.1:1/{path}"), skills, tags };
        prop_assert_eq!(&parse(&written.to_string()).unwrap(), &written);
        prop_assert_eq!(&from_json(&json!(written)).unwrap(), &written);
    }

    #[test]
    fn no_text_is_too_strange(spec in "\\PC{0,40}") {
        if let Ok(route) = parse(&spec) {
            prop_assert!(!route.name.is_empty() && route.url.starts_with("http"));
        }
    }

    #[test]
    fn one_of_its_own_words_finds_a_route(tag in "[a-zA-Z]{3,8}", before in "[0-9 ]{0,6}", after in "[,.!?]? [0-9 ]{0,6}") {
        let routes = [Route { name: "one".into(), url: "http://h/".into(), tags: vec![tag.clone()], ..Route::default() }];
        let prompt = format!("{before} {}{after}", tag.to_uppercase());
        let wish = Wish { prompt: Some(&prompt), ..Wish::default() };
        prop_assert!(choose(&routes, &wish).is_ok());
    }
}
