//! The tenants of a server where only some exist: nobody can use it without naming one, so its card names them.

use std::sync::Arc;

use nuncio_protocol::AgentInterface;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::Ways;
use crate::bind::{grpc, mcp};
use crate::call::Version;
use crate::engine::EngineOptions;
use crate::engine::roster::Roster;
use crate::profile::Profile;

/// One of the only tenants that exist.
#[derive(Clone, Debug)]
pub(super) struct Tenant {
    pub(super) name: Arc<str>,
    /// The path below which it is found, unless its name already means something there.
    pub(super) below: Option<String>,
}

impl Tenant {
    pub(super) fn new(name: Arc<str>, profile: Profile, ws_path: Option<&str>) -> Self {
        let own = !means_more(&name, profile, ws_path);
        let below = own.then(|| format!("/{}", utf8_percent_encode(&name, NON_ALPHANUMERIC)));
        Self { name, below }
    }
}

/// The only tenants that can be used, in the order of their names; `None` where any can.
pub(super) fn only(
    roster: &Roster,
    engine: &EngineOptions,
    profile: Profile,
    ws_path: Option<&str>,
) -> Option<Vec<Tenant>> {
    let allowed = engine.tenants.as_ref()?.iter();
    let mut names: Vec<&String> = allowed.filter(|name| !roster.of_tenant(name).is_empty()).collect();
    names.sort_unstable();
    Some(names.into_iter().map(|name| Tenant::new(name.as_str().into(), profile, ws_path)).collect())
}

/// Whether a path that begins with this name is found at the root.
fn means_more(name: &str, profile: Profile, ws_path: Option<&str>) -> bool {
    const ROOT: [&str; 8] =
        [".well-known", "health", "ready", "metrics", "artifacts", "tasks", "extendedAgentCard", "v1"];
    let path = format!("/{name}");
    let begins = |other: &str| other.strip_prefix(&path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    ROOT.contains(&name)
        || name.starts_with("message:")
        || profile.is_rpc_path(&path)
        || profile.has_mcp() && path == mcp::PATH
        || ws_path.is_some_and(begins)
        || grpc::service(&format!("{path}/")).is_some()
}

/// The interfaces of every tenant. 1.0 has a field for the name; clients of 0.3 know only paths.
pub(super) fn interfaces(
    ways: &Ways,
    base_url: Option<&str>,
    rpc_path: &str,
    tenants: &[Tenant],
) -> Vec<AgentInterface> {
    let of = |version: Version| move |interface: &AgentInterface| interface.protocol_version == version.as_str();
    let named = |tenant: &Tenant| {
        let name = tenant.name.to_string();
        let all = ways.interfaces(base_url, rpc_path, "").into_iter().filter(of(Version::V1));
        all.map(move |interface| AgentInterface { tenant: name.clone(), ..interface }).collect::<Vec<_>>()
    };
    let in_path = |tenant: &Tenant| {
        let base_url = format!("{}{}", base_url?, tenant.below.as_ref()?);
        let all = ways.interfaces(Some(&base_url), rpc_path, &tenant.name).into_iter().filter(of(Version::V03));
        Some(all.filter(|interface| interface.tenant.is_empty()).collect::<Vec<_>>())
    };
    tenants.iter().flat_map(named).chain(tenants.iter().filter_map(in_path).flatten()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_a_path_already_has_no_path_of_its_own() {
        let below = |name: &str, profile, ws_path| Tenant::new(name.into(), profile, ws_path).below;
        let usual = |name: &str| below(name, Profile::Nuncio, Some("/ws"));
        for name in ["tasks", "v1", "health", ".well-known", "message:send", "a2a", "ws", "lf.a2a.v1.A2AService"] {
            assert_eq!(usual(name), None, "{name}");
        }
        for (name, path) in [("acme", "/acme"), ("task", "/task"), ("mcp", "/mcp"), ("a b", "/a%20b")] {
            assert_eq!(usual(name).as_deref(), Some(path));
        }
        assert_eq!(below("mcp", Profile::CodingAgent, None), None);
        let sockets = |name: &str| below(name, Profile::Nuncio, Some("/sockets/a2a"));
        assert_eq!((sockets("sockets"), sockets("ws").as_deref()), (None, Some("/ws")));
    }
}
