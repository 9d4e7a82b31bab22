//! What a certificate says: whose it is, and until when.

use std::sync::Arc;

use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

/// No name of a caller is longer.
const LONGEST_NAME: usize = 256;

/// Which part of a certificate is the name of its owner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CertificateName {
    /// The common name of the subject.
    #[default]
    Subject,
    /// The first URI, DNS name or address of mail among the alternative names.
    Alternative,
}

/// Whose certificate this is, by a name that nobody without one can have. Nothing if it does not say.
pub(crate) fn owner(der: &[u8], which: CertificateName) -> Option<Arc<str>> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    let name = match which {
        CertificateName::Subject => {
            let mut all = certificate.subject().iter_common_name();
            match (all.next(), all.next()) {
                (Some(one), None) => one.as_str().ok()?.to_owned(),
                // Two names are none: a reader could take the other one.
                _ => return None,
            }
        }
        CertificateName::Alternative => {
            let names = certificate.subject_alternative_name().ok()??;
            names.value.general_names.iter().find_map(|name| match name {
                GeneralName::URI(name) | GeneralName::DNSName(name) | GeneralName::RFC822Name(name) => {
                    Some((*name).to_owned())
                }
                _ => None,
            })?
        }
    };
    let is_plain = !name.is_empty() && name.len() <= LONGEST_NAME && !name.chars().any(char::is_control);
    is_plain.then(|| format!("cert:{name}").into())
}

/// Until when a certificate is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// From when, in seconds since 1970.
    pub from: i64,
    /// Until when, in seconds since 1970.
    pub until: i64,
}

/// Until when a certificate is good; nothing if it cannot be read.
pub fn validity(der: &[u8]) -> Option<Validity> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    let validity = certificate.validity();
    Some(Validity { from: validity.not_before.timestamp(), until: validity.not_after.timestamp() })
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, KeyPair, SanType};

    use super::*;

    fn made(names: &[&str], alternative: Vec<SanType>) -> Vec<u8> {
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        for name in names {
            params.distinguished_name.push(DnType::CommonName, *name);
        }
        params.subject_alt_names = alternative;
        params.self_signed(&KeyPair::generate().expect("a key")).expect("a certificate").der().to_vec()
    }

    #[test]
    fn certificates_name_their_owner() {
        let uri = SanType::URI("spiffe://example/anna".try_into().expect("ASCII"));
        let der = made(&["anna"], vec![uri]);
        assert_eq!(owner(&der, CertificateName::Subject).as_deref(), Some("cert:anna"));
        assert_eq!(owner(&der, CertificateName::Alternative).as_deref(), Some("cert:spiffe://example/anna"));
        let nobody = made(&[], Vec::new());
        assert_eq!(owner(&nobody, CertificateName::Subject), None);
        assert_eq!(owner(&nobody, CertificateName::Alternative), None);
        assert_eq!(owner(&made(&["a\nb"], Vec::new()), CertificateName::Subject), None);
        assert_eq!(owner(b"no certificate", CertificateName::Subject), None);
        let validity = validity(&der).expect("dates");
        assert!(validity.from < validity.until);
    }
}
