//! The tenants of a server where only some exist: nobody can use it without naming one, so its card names them.

use std::sync::Arc;

use nuncio_protocol::AgentInterface;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::Ways;
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

/// The only tenants that can be used, in the order of their names; `None` where any can.
pub(super) fn only(roster: &Roster, engine: &EngineOptions, profile: Profile) -> Option<Vec<Tenant>> {
    let allowed = engine.tenants.as_ref()?.iter();
    let mut names: Vec<&String> = allowed.filter(|name| !roster.of_tenant(name).is_empty()).collect();
    names.sort_unstable();
    let tenant =
        |name: &String| Tenant { name: name.as_str().into(), below: (!means_more(name, profile)).then(|| below(name)) };
    Some(names.into_iter().map(tenant).collect())
}

/// The path of a tenant.
pub(super) fn below(name: &str) -> String {
    format!("/{}", utf8_percent_encode(name, NON_ALPHANUMERIC))
}

/// Whether a path that begins with this name is found at the root.
fn means_more(name: &str, profile: Profile) -> bool {
    const ROOT: [&str; 10] =
        [".well-known", "health", "ready", "metrics", "artifacts", "tasks", "extendedAgentCard", "v1", "ws", "mcp"];
    ROOT.contains(&name) || name.starts_with("message:") || profile.is_rpc_path(&format!("/{name}"))
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
