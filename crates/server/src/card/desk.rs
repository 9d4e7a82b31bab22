//! The cards of a server, made anew when an agent describes itself differently.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};

use http::HeaderMap;
use ipnet::IpNet;
use parking_lot::RwLock;

use super::{CardOptions, CardSigning, Cards, Ways};
use crate::auth::Security;
use crate::engine::EngineOptions;
use crate::engine::roster::Roster;

/// Where the cards lie.
pub(crate) struct Desk {
    roster: Roster,
    engine: EngineOptions,
    options: CardOptions,
    security: Arc<Security>,
    ways: Arc<OnceLock<Ways>>,
    /// With the revision of the agents that they describe.
    cards: RwLock<(u64, Arc<Cards>)>,
}

impl Desk {
    pub(crate) fn new(roster: Roster, engine: &EngineOptions, options: CardOptions, security: Arc<Security>) -> Self {
        let ways = Arc::default();
        let cards = Arc::new(Cards::new(&roster, engine, &options, &security, &ways));
        let cards = RwLock::new((revision(&roster), cards));
        Self { roster, engine: engine.clone(), options, security, ways, cards }
    }

    /// Notes which ways in are open, before anybody can come in.
    pub(crate) fn serving(&self, ways: Ways) {
        // A server runs once.
        let _ = self.ways.set(ways);
    }

    /// What cards are signed with.
    pub(crate) fn signing(&self) -> Option<&CardSigning> {
        self.options.signing.as_deref()
    }

    /// Whom a request comes from: the peer, or where a trusted proxy says that it has it from.
    pub(crate) fn client(&self, headers: &HeaderMap, remote: SocketAddr) -> IpAddr {
        client(&self.options.trusted_proxies, headers, remote.ip())
    }

    /// The cards as they are now.
    pub(crate) fn cards(&self) -> Arc<Cards> {
        let revision = revision(&self.roster);
        {
            let made = self.cards.read();
            if made.0 == revision {
                return made.1.clone();
            }
        }
        let cards = Arc::new(Cards::new(&self.roster, &self.engine, &self.options, &self.security, &self.ways));
        *self.cards.write() = (revision, cards.clone());
        cards
    }
}

/// Every proxy adds the peer that it has, so that the last one who is no proxy of ours is the client.
fn client(proxies: &[IpNet], headers: &HeaderMap, peer: IpAddr) -> IpAddr {
    let is_proxy = |address: &IpAddr| proxies.iter().any(|net| net.contains(&address.to_canonical()));
    if !is_proxy(&peer) {
        return peer;
    }
    let lines: Vec<&str> = headers.get_all("x-forwarded-for").iter().map(|line| line.to_str().unwrap_or("?")).collect();
    let hops = lines.iter().rev().flat_map(|line| line.rsplit(','));
    // What stands before something that no proxy of ours can have written is anybody's word.
    let mut hops = hops.map_while(|hop| hop.trim().parse::<IpAddr>().ok());
    hops.find(|hop| !is_proxy(hop)).unwrap_or(peer)
}

/// Grows when one of the agents has another card.
fn revision(roster: &Roster) -> u64 {
    roster.all().map(|served| served.agent.revision()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_trusted_proxies_name_their_clients() {
        let proxies = ["10.0.0.0/8".parse().expect("a network")];
        let from = |peer: &str, lines: &[&str]| {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append("x-forwarded-for", line.parse().expect("a header"));
            }
            client(&proxies, &headers, peer.parse().expect("an address")).to_string()
        };
        assert_eq!(from("192.0.2.1", &["198.51.100.1"]), "192.0.2.1", "anybody can say so");
        assert_eq!(from("10.0.0.1", &["198.51.100.1"]), "198.51.100.1");
        assert_eq!(from("10.0.0.1", &["203.0.113.9, 198.51.100.1, 10.0.0.2"]), "198.51.100.1");
        assert_eq!(from("10.0.0.1", &["203.0.113.9", "198.51.100.1"]), "198.51.100.1");
        assert_eq!(from("10.0.0.1", &["198.51.100.1, nonsense, 10.0.0.2"]), "10.0.0.1");
        assert_eq!(from("10.0.0.1", &[]), "10.0.0.1");
    }
}
