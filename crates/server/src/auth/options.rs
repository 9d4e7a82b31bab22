//! Everything that decides who may come in.

use std::sync::Arc;

use super::{ApiKey, Issuer, Password, Token};

/// Who may come in. Without any of it, everybody may.
#[derive(Clone, Debug, Default)]
pub struct AuthOptions {
    /// Tokens that the operator hands out.
    pub tokens: Vec<Token>,
    /// Users with passwords.
    pub passwords: Vec<Password>,
    /// API keys.
    pub api_keys: Vec<ApiKey>,
    /// Providers of identities whose tokens are believed.
    pub issuers: Vec<Arc<Issuer>>,
    /// Whether certificates of clients are asked for and believed.
    pub certificates: bool,
    /// Groups whose members see each other's tasks. Whoever is in several of them belongs to the first.
    pub shared_groups: Vec<Arc<str>>,
    /// Whether the card is shown only to those who may come in.
    pub protect_card: bool,
}
