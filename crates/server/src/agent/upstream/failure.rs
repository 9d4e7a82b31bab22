//! What the agent's errors are called here: in words that our caller may read, without addresses and secrets.

use nuncio_client::ClientError;

use crate::agent::AgentError;

/// The error as the caller reads it. All of it is in the log.
pub(super) fn told(error: &ClientError) -> AgentError {
    tracing::warn!(%error, "the upstream agent failed");
    AgentError::Failed(words(error))
}

fn words(error: &ClientError) -> String {
    let what = match error {
        ClientError::Unreachable { .. } => "cannot be reached. Try again later".into(),
        ClientError::Timeout { .. } => "did not answer in time. Try again later".into(),
        ClientError::Http { status: status @ (408 | 425 | 429 | 500..), .. } => {
            format!("answered with HTTP status {status}. Try again later")
        }
        ClientError::Unauthorized { status: 403, .. } => {
            "does not allow this to this server. Whoever runs this server must ask for the permission".into()
        }
        ClientError::Unauthorized { .. } => {
            "does not accept this server's credentials. Whoever runs this server must set others".into()
        }
        ClientError::Agent(error) => format!("answers: {}", error.message),
        ClientError::TooLarge { limit, .. } => format!("sent an answer of more than {limit} bytes"),
        ClientError::CrossOrigin { .. } | ClientError::Redirect { .. } => {
            "leads to another address, which this server does not trust. Whoever runs this server must set that \
             address as `upstream`, or correct the card of the agent"
                .into()
        }
        ClientError::NoInterface { .. } => {
            "offers no interface that this server speaks: JSONRPC or HTTP+JSON of A2A 1.0 or 0.3".into()
        }
        ClientError::ExtensionsRequired { .. } => "requires extensions that are not activated".into(),
        ClientError::Cut { cause, .. } => match cause.as_deref() {
            Some(cause) => return words(cause),
            None => "ended its answer too early. The task may still go on there".into(),
        },
        ClientError::Http { .. } | ClientError::Protocol { .. } => {
            "does not speak A2A as expected. Whoever runs this server must check `upstream`".into()
        }
        _ => "cannot be used as it is configured. Whoever runs this server must check `upstream`".to_owned(),
    };
    format!("The upstream agent {what}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_what_servers_say_stay_here() {
        let url = || "http://10.0.0.1/secret".to_owned();
        let refused = ClientError::Unauthorized { url: url(), status: 401, sent: true, said: "token-1".into() };
        let broken = ClientError::Http { url: url(), status: 502, said: "at /srv/app.py".into(), retry_after: None };
        let cut = ClientError::Cut {
            task: None,
            cause: Some(Box::new(ClientError::Unreachable { url: url(), cause: "refused".into() })),
        };
        for error in [refused, broken, cut] {
            let words = words(&error);
            assert!(words.starts_with("The upstream agent "), "{words}");
            for secret in ["10.0.0.1", "secret", "token-1", "/srv"] {
                assert!(!words.contains(secret), "{words}");
            }
        }
    }
}
